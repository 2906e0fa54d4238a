"""What a model's reply is: cut, empty, malformed, or fine."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from langchain_core.messages import AIMessage, ToolCall

from wakeloop.checks.tools import has_no_required_arguments
from wakeloop.dialects.base import Dialect, InvalidArguments
from wakeloop.model.finish_reasons import refusal_text, reply_problem
from wakeloop.model.reply_watcher import BrokenArguments
from wakeloop.model.storable_values import make_storable, storable_fields, storage_problem
from wakeloop.model.tool_calls import LONGEST_ID, Pair, legal_name, set_calls, with_legal_speaker
from wakeloop.text.characters import fix_surrogates, shorten
from wakeloop.text.marks import new_call_id, new_id, remove_mark, text_of
from wakeloop.todos.items import MAX_REFUSAL_LENGTH, OperationRefused

EMPTY_ARGUMENTS = frozenset(
    ("", "null", '""', "None", "undefined")
)  # arguments that servers send for none at all


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply, ready to be stored, and what it alone shows.

    `calls` counts its calls, `todo_calls` are the ids of those to todo tools; `faults` the error results of
    calls that will not be run, by call id; `wrote` whether a todo call that writes is among them, well-formed
    or not. Of a `refused` one only its words are kept; of an `unfit` one the provider could not read a call.
    """

    message: AIMessage
    text: str
    cut: bool = False
    refused: bool = False
    unfit: bool = False
    wrote: bool = False
    todo_calls: tuple[str, ...] = ()
    faults: dict[str, str] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """How many calls it holds, malformed ones too."""
        return len(self.message.tool_calls)


def read_reply(
    raw: AIMessage,
    dialect: Dialect | None,
    tools: Mapping[str, Any],
    used: Callable[[str], bool],
    known: Callable[[str], bool],
    cut_call: str,
    no_text: str,
    halves: BrokenArguments = MappingProxyType({}),
    *,
    must_finish: bool = False,
) -> Reply:
    """Give a reply's calls sound ids, and find what is wrong with it.

    `dialect` is None where the model has no todo tools; `tools` are its own, by name; `used` tells whether a
    call id is taken in the thread, `known` whether a message id is; `cut_call` is the result of a call in a
    reply that was cut off, `no_text` stands for a refusal without words;
    `halves` holds arguments that broke off in a stream and were parsed as if they were whole; `must_finish`
    tells that the reply is a stream which has to say how it ended.
    """
    sign = reply_problem(raw, must_finish=must_finish)
    if sign == "refused":
        return _read_refusal(raw, known, no_text)
    names = dialect.tool_names if dialect is not None else frozenset()
    pairs, broken = _pair_calls(
        raw, used, halves, {*names, *tools}, lambda name: _needs_no_arguments(name, dialect, tools)
    )
    calls = {call["id"] or "": (fix_surrogates(given["name"] or "unknown"), call) for given, call in pairs}
    faults: dict[str, str] = {}
    for key, (name, call) in calls.items():
        fault = cut_call if sign == "cut" else _find_fault(name, call, broken.get(key), dialect, names, tools)
        if fault:
            faults[key] = shorten(fix_surrogates(fault), MAX_REFUSAL_LENGTH)
    return Reply(
        message=_make_stored_message(raw, pairs, known),
        text=text_of(raw),
        cut=sign == "cut",
        unfit=sign == "unfit",
        wrote=dialect is not None and any(name in dialect.writes for name, _ in calls.values()),
        todo_calls=tuple(key for key, (name, _) in calls.items() if name in names),
        faults=faults,
    )


def _read_refusal(raw: AIMessage, known: Callable[[str], bool], no_text: str) -> Reply:
    """Keep the words of a refused reply, without calls, thoughts and blocks."""
    words = fix_surrogates("\n\n".join(part for part in (text_of(raw), refusal_text(raw)) if part))
    message = raw.model_copy(update={"content": words or no_text})
    return Reply(_make_stored_message(message, [], known), words, refused=True)


def _pair_calls(
    raw: AIMessage,
    used: Callable[[str], bool],
    halves: BrokenArguments,
    there: Collection[str],
    bare: Callable[[str], bool],
) -> tuple[list[Pair], dict[str, str]]:
    """Pair every call with one that can be stored, under an id that is there and unique in the thread.

    The names of tools that are `there` stay as they are; `bare` tells which need no arguments. Also say what
    is wrong with those whose arguments are no JSON object, by that id.
    """
    calls: dict[str, Pair] = {}
    broken: dict[str, str] = {}
    for call in [*raw.tool_calls, *raw.invalid_tool_calls]:
        key = call["id"]
        if not key or key in calls or used(key) or fix_surrogates(key) != key or len(key) > LONGEST_ID:
            key = next(new for new in iter(new_call_id, "") if new not in calls and not used(new))
        args = halves.get((call["id"], call["name"]), call["args"]) if halves else call["args"]
        nothing = args is None or (isinstance(args, str) and args.strip() in EMPTY_ARGUMENTS)
        if nothing and bare(call["name"] or ""):
            args = {}
        if not isinstance(args, dict):
            broken[key] = f"the arguments are no JSON object: {shorten(str(args), 200)}"
        elif (why := storage_problem(args, "the arguments")) is not None:
            broken[key] = why
        sound: dict[str, Any] = {} if key in broken else fix_surrogates(args)
        name = legal_name(call["name"])
        if (own := call["name"]) and own in there:
            name = own
        calls[key] = (call, ToolCall(name=name, args=sound, id=key, type="tool_call"))
    return list(calls.values()), broken


def _needs_no_arguments(name: str, dialect: Dialect | None, tools: Mapping[str, Any]) -> bool:
    if dialect is not None and name in dialect.tool_names:
        return misfit_error(dialect, name, {}) is None
    return name in tools and has_no_required_arguments(tools[name])


def _find_fault(
    name: str,
    call: ToolCall,
    why: str | None,
    dialect: Dialect | None,
    names: Collection[str],
    tools: Collection[str],
) -> str | None:
    if dialect is not None and name in names:
        if why is not None:
            return dialect.render_error(why)
        return misfit_error(dialect, name, call["args"])
    if why is not None:
        return f"Error: {why}"
    if name not in tools:
        known = ", ".join((*sorted(names), *sorted(tools))) or "none"
        return f"Error: there is no tool {shorten(name)!r}; there are {known}."
    return None


def misfit_error(dialect: Dialect, name: str, args: Mapping[str, Any]) -> str | None:
    """Return the error result of a todo call whose arguments do not fit, or None."""
    try:
        dialect.parse_call(name, args)
    except InvalidArguments as misfit:
        return dialect.render_error(str(misfit))
    except OperationRefused:
        return None  # a soft error: for the round to say
    return None


def _make_stored_message(raw: AIMessage, pairs: Sequence[Pair], known: Callable[[str], bool]) -> AIMessage:
    """Return the reply as it goes into the history: these calls everywhere, an id of its own, no mark."""
    update: dict[str, Any] = storable_fields(raw)
    if (content := make_storable(raw.content)) != raw.content:
        update["content"] = content
    if not raw.id or known(raw.id) or fix_surrogates(raw.id) != raw.id:
        update["id"] = new_id()
    reply = raw.model_copy(update=update) if update else raw
    return remove_mark(with_legal_speaker(reply.model_copy(update=set_calls(reply, pairs))))  # type: ignore[return-value]


def with_speaker(name: str | None, message: AIMessage) -> AIMessage:
    """Return a reply under the agent's name, as it was given; what goes out again has a legal one."""
    return message if name is None else message.model_copy(update={"name": name})


def drop_calls(raw: AIMessage, no_text: str = "") -> AIMessage:
    """Return a reply without its calls: where none was allowed, none is stored; `no_text` stands for none."""
    kept = raw.model_copy(update=set_calls(raw, []))
    return kept.model_copy(update={"content": no_text}) if no_text and not text_of(kept) else kept
