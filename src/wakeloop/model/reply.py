"""Reads a reply: sound ids, faulty calls, cut or refused."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall

from wakeloop.checks.argument_values import has_no_required_arguments
from wakeloop.dialects.base import Dialect, InvalidArguments
from wakeloop.loop.replies import ReplyFacts
from wakeloop.model.finish_reasons import promises_call, refusal_text, reply_problem
from wakeloop.model.reply_kinds import ReplyEnd, classify_reply
from wakeloop.model.reply_watcher import BrokenArguments
from wakeloop.model.storable_values import make_storable, storable_fields, storage_problem
from wakeloop.model.tool_calls import (
    LONGEST_ID,
    Pair,
    find_repeated_name,
    legal_name,
    set_calls,
    with_legacy_call,
    with_legal_speaker,
)
from wakeloop.platform.openai_replies import join_reasoning, read_wrapped_arguments
from wakeloop.text.characters import fix_surrogates, shorten
from wakeloop.text.marks import new_call_id, new_id, remove_mark, text_of
from wakeloop.text.thoughts import answer_text
from wakeloop.todos.items import MAX_REFUSAL_LENGTH, OperationRefused

EMPTY_ARGUMENTS = frozenset(("", "null", '""', "None", "undefined"))  # as servers send them for no arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(ReplyFacts):
    """A reply ready to be stored, and what it shows by itself."""

    message: AIMessage


def read_reply(
    raw: AIMessage,
    dialect: Dialect | None,
    tools: Mapping[str, Any],
    used: Callable[[str], bool],
    known: Callable[[str], bool],
    fill: Callable[[str], str],
    broken_arguments: BrokenArguments = MappingProxyType({}),
    *,
    must_finish: bool = False,
    may_call: bool = True,
    prompts: Mapping[str, str] = MappingProxyType({}),
    is_copied: Callable[[str], bool] = lambda _: False,
    runs_printed: bool = False,
) -> Reply:
    """Give a reply's calls sound ids, and find what is wrong with each; classify a reply without calls.

    Args:
        raw: The reply, as its client returned it.
        dialect: The dialect of the todo tools, or None if the model has none.
        tools: The model's other tools, by name.
        used: Whether the thread already has a call id.
        known: Whether the thread already has a message id.
        fill: Return one of the package's prompts by its name.
        broken_arguments: Arguments that broke off in a stream and were parsed as if they were whole.
        must_finish: Whether the reply is a stream that has to say how it ended.
        may_call: Whether the request allowed calls.
        prompts: The caller's own words in place of the package's prompts.
        is_copied: Whether a string is the result of a todo call that was not made in this turn.
        runs_printed: Whether calls that are printed as text become real ones.
    """
    if may_call and not raw.tool_calls and promises_call(raw):
        raw = with_legacy_call(raw)
    problem = reply_problem(raw, must_finish=must_finish)
    if problem == "refused":
        return _read_refusal(raw, known, fill("no_text"))
    todo_names = dialect.tool_names if dialect is not None else frozenset()
    there = {*todo_names, *tools}
    end: ReplyEnd | None = None
    if problem != "cut" and not (raw.tool_calls or raw.invalid_tool_calls):
        end = classify_reply(raw, there, prompts, is_copied, may_call=may_call)
        if end.printed and runs_printed:
            raw, end = _make_printed_calls(raw, end), None
    pairs, names, faults = _read_calls(raw, used, broken_arguments, dialect, tools)
    if problem == "cut":
        faults = dict.fromkeys(names, shorten(fill("cut_call"), MAX_REFUSAL_LENGTH))
    return Reply(
        message=_make_stored_message(raw, pairs, known),
        text=answer_text(raw) if end is None else end.text,
        cut=problem == "cut",
        unfit=problem == "unfit",
        kind="answer" if end is None else end.kind,
        wrote=dialect is not None and not dialect.writes.isdisjoint(names.values()),
        calls=len(pairs),
        todo_calls=tuple([key for key, name in names.items() if name in todo_names]),
        faults=faults,
    )


def _read_refusal(raw: AIMessage, known: Callable[[str], bool], no_text: str) -> Reply:
    """Keep the text of a refused reply, without calls, thoughts and blocks."""
    text = fix_surrogates("\n\n".join(filter(None, (text_of(raw), refusal_text(raw)))))
    message = raw.model_copy(update={"content": text or no_text})
    return Reply(message=_make_stored_message(message, [], known), text=text, refused=True)


def _make_printed_calls(raw: AIMessage, end: ReplyEnd) -> AIMessage:
    """Return a reply whose printed calls are real ones; the text before them stays."""
    made: list[ToolCall] = []
    broken: list[InvalidToolCall] = []
    for call in end.printed:
        if isinstance(call.args, dict):
            made.append(ToolCall(name=call.name, args=call.args, id=None, type="tool_call"))
        else:
            broken.append(
                InvalidToolCall(name=call.name, args=call.args, id=None, error=None, type="invalid_tool_call")
            )
    content: Any = end.before
    if isinstance(raw.content, list):
        content = [block for block in raw.content if not _is_text(block)]
        if end.before:
            content.append({"type": "text", "text": end.before})
    return raw.model_copy(update={"content": content, "tool_calls": made, "invalid_tool_calls": broken})


def _is_text(block: object) -> bool:
    return isinstance(block, str) or (isinstance(block, dict) and block.get("type") == "text")


def _read_calls(
    raw: AIMessage,
    used: Callable[[str], bool],
    broken_arguments: BrokenArguments,
    dialect: Dialect | None,
    tools: Mapping[str, Any],
) -> tuple[list[Pair], dict[str, str], dict[str, str]]:
    """Pair every call with one that can be stored, under an id that is unique in the thread.

    Also return the calls' names and faults by id. A name that repeats a known one is that one.
    """
    todo_names = dialect.tool_names if dialect is not None else frozenset()
    there = {*todo_names, *tools}
    pairs: list[Pair] = []
    names: dict[str, str] = {}
    faults: dict[str, str] = {}
    for call in [*raw.tool_calls, *raw.invalid_tool_calls]:
        key = call["id"]
        if not key or key in names or used(key) or fix_surrogates(key) != key or len(key) > LONGEST_ID:
            key = new_call_id()
            while key in names or used(key):
                key = new_call_id()
        name = call["name"] or "unknown"
        if name not in there:
            name = fix_surrogates(find_repeated_name(name, there))
        names[key] = name
        args = broken_arguments.get((call["id"], call["name"]), call["args"])
        wrapped = read_wrapped_arguments(args) if isinstance(args, str) else None
        args = args if wrapped is None else wrapped
        missing = args is None or (isinstance(args, str) and args.strip() in EMPTY_ARGUMENTS)
        if missing and _needs_no_arguments(name, dialect, tools):
            args = {}
        if isinstance(args, dict):
            broken = storage_problem(args, "the arguments") or ""
        else:
            broken = f"the arguments are not a JSON object: {shorten(str(args), 200)}"
        args = {} if broken else fix_surrogates(args)
        kept = name if name in there else legal_name(name)
        pairs.append((call, ToolCall(name=kept, args=args, id=key, type="tool_call")))
        if fault := _find_fault(name, args, broken, dialect, tools):
            faults[key] = shorten(fix_surrogates(fault), MAX_REFUSAL_LENGTH)
    return pairs, names, faults


def _needs_no_arguments(name: str, dialect: Dialect | None, tools: Mapping[str, Any]) -> bool:
    if dialect is not None and name in dialect.tool_names:
        return misfit_error(dialect, name, {}) is None
    return name in tools and has_no_required_arguments(tools[name])


def _find_fault(
    name: str, args: Any, broken: str, dialect: Dialect | None, tools: Collection[str]
) -> str | None:
    """Return the error result of a call that cannot run, or None; `broken` names a fault of its arguments."""
    if dialect is not None and name in dialect.tool_names:
        return dialect.render_error(broken) if broken else misfit_error(dialect, name, args)
    if broken:
        return f"Error: {broken}"
    if name not in tools:
        todo_names = sorted(dialect.tool_names) if dialect is not None else []
        available = ", ".join((*todo_names, *sorted(tools))) or "none"
        return f"Error: unknown tool {shorten(name)!r}. Available: {available}."
    return None


def misfit_error(dialect: Dialect, name: str, args: Mapping[str, Any]) -> str | None:
    """Return the error result of a todo call whose arguments do not fit its schema, or None."""
    try:
        dialect.parse_call(name, args)
    except InvalidArguments as misfit:
        return dialect.render_error(str(misfit))
    except OperationRefused:
        return None  # well-formed: the round answers it
    return None


def _make_stored_message(raw: AIMessage, pairs: Sequence[Pair], known: Callable[[str], bool]) -> AIMessage:
    """Return the reply as the history stores it: with these calls, a new id if needed, and no mark."""
    update: dict[str, Any] = storable_fields(raw)
    content = make_storable(raw.content) if raw.content else raw.content
    if content is not raw.content:
        update["content"] = content
    if not raw.id or known(raw.id) or fix_surrogates(raw.id) != raw.id:
        update["id"] = new_id()
    reply = join_reasoning(raw.model_copy(update=update) if update else raw)
    reply = reply.model_copy(update=set_calls(reply, pairs))
    return remove_mark(with_legal_speaker(reply) if reply.name else reply)  # type: ignore[return-value]


def with_speaker(name: str | None, message: AIMessage) -> AIMessage:
    """Return a reply under the agent's name, as it was given; a request makes it legal."""
    return message if name is None else message.model_copy(update={"name": name})


def drop_calls(raw: AIMessage, no_text: str = "") -> AIMessage:
    """Return a reply without its calls, for requests that allow none; `no_text` replaces an empty text."""
    reply = raw.model_copy(update=set_calls(raw, []))
    if no_text and not text_of(reply):
        return reply.model_copy(update={"content": no_text})
    return reply
