"""What a model's reply is: cut, empty, malformed, or fine."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from langchain_core.messages import AIMessage, ToolCall

from wakeloop.dialects.base import Dialect, Misfit
from wakeloop.model.broken_stream import Halves
from wakeloop.model.storable import DEEPEST, GREATEST, beside, storable
from wakeloop.text.characters import shorten, whole
from wakeloop.text.marks import new_id, text_of, unmarked
from wakeloop.todos.items import LONGEST, Refused

_CUT = frozenset(("length", "max_tokens", "max_output_tokens", "incomplete"))
_WHY = ("finish_reason", "stop_reason", "done_reason", "status")


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply, ready to be stored, and what it alone shows.

    `calls` counts its calls, `todo_calls` are the ids of those to todo tools; `faults` the error results of
    calls that will not be run, by call id; `wrote` whether a todo call that writes is among them, well-formed
    or not.
    """

    message: AIMessage
    text: str
    cut: bool = False
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
    tools: Collection[str],
    used: Callable[[str], bool],
    known: Callable[[str], bool],
    cut_call: str,
    halves: Halves = MappingProxyType({}),
) -> Reply:
    """Give a reply's calls sound ids, and find what is wrong with it.

    `dialect` is None where the model has no todo tools; `used` tells whether a call id is taken in the
    thread, `known` whether a message id is; `cut_call` is the result of a call in a reply that was cut off;
    `halves` holds arguments that broke off in a stream and were parsed as if they were whole.
    """
    cut = is_cut(raw)
    calls, broken = _sound_calls(raw, used, halves)
    faults: dict[str, str] = {}
    names = dialect.names if dialect is not None else frozenset()
    for key, call in calls.items():
        if fault := cut_call if cut else _fault(call, broken.get(key), dialect, names, tools):
            faults[key] = shorten(whole(fault), LONGEST)
    return Reply(
        message=_stored(raw, list(calls.values()), known),
        text=text_of(raw),
        cut=cut,
        wrote=dialect is not None and any(call["name"] in dialect.writes for call in calls.values()),
        todo_calls=tuple(key for key, call in calls.items() if call["name"] in names),
        faults=faults,
    )


def is_cut(message: AIMessage) -> bool:
    """Tell whether a reply was cut off: at the length limit, or in mid-stream without any finish reason.

    langchain-openai raises nothing for a stream that just ends; other providers and fakes send no reason.
    """
    told = message.response_metadata
    if any(str(told.get(name, "")).lower() in _CUT for name in _WHY):
        return True
    return told.get("model_provider") == "openai" and not any(
        told.get(name) for name in ("finish_reason", "status")
    )


def _sound_calls(
    raw: AIMessage, used: Callable[[str], bool], halves: Halves
) -> tuple[dict[str, ToolCall], dict[str, str]]:
    """Return every call by an id that is there and unique, and what is wrong with those of no JSON."""
    calls: dict[str, ToolCall] = {}
    broken: dict[str, str] = {}
    for call in [*raw.tool_calls, *raw.invalid_tool_calls]:
        key = call["id"]
        if not key or key in calls or used(key) or whole(key) != key:
            key = f"call_{new_id()}"
        args = halves.get((call["id"], call["name"]), call["args"]) if halves else call["args"]
        if not isinstance(args, dict):
            broken[key] = f"the arguments are no JSON object: {shorten(str(args), 200)}"
        elif (why := _unstorable(args)) is not None:
            broken[key] = why
        sound: dict[str, Any] = {} if key in broken else whole(args)
        calls[key] = ToolCall(name=whole(call["name"] or "unknown"), args=sound, id=key, type="tool_call")
    return calls, broken


def _unstorable(value: object, room: int = DEEPEST) -> str | None:
    """Say why no checkpoint takes a value, or return None: its numbers and its depth are limited."""
    if isinstance(value, dict | list):
        if not room:
            return f"the arguments are nested more than {DEEPEST} deep; send them flat"
        parts = value.values() if isinstance(value, dict) else value
        return next((why for part in parts if (why := _unstorable(part, room - 1)) is not None), None)
    if isinstance(value, int) and not -GREATEST <= value < GREATEST:
        return "a number in the arguments is too large; send it as a text"
    return None


def _fault(
    call: ToolCall,
    why: str | None,
    dialect: Dialect | None,
    names: Collection[str],
    tools: Collection[str],
) -> str | None:
    name = call["name"]
    if dialect is not None and name in names:
        if why is not None:
            return dialect.error(why)
        try:
            dialect.read(name, call["args"])
        except Misfit as misfit:
            return dialect.error(str(misfit))
        except Refused:
            return None  # a soft error: for the round to say
    elif why is not None:
        return f"Error: {why}"
    elif name not in tools:
        known = ", ".join((*sorted(names), *sorted(tools))) or "none"
        return f"Error: there is no tool {shorten(name)!r}; there are {known}."
    return None


def _stored(raw: AIMessage, calls: list[ToolCall], known: Callable[[str], bool]) -> AIMessage:
    """Return the reply as it goes into the history: parsed calls only, an id of its own, no mark."""
    update: dict[str, Any] = {"tool_calls": calls, "invalid_tool_calls": [], **beside(raw)}
    if (content := storable(raw.content)) != raw.content:
        update["content"] = content
    if not raw.id or known(raw.id) or whole(raw.id) != raw.id:
        update["id"] = new_id()
    if "tool_calls" in raw.additional_kwargs:
        kept = update.get("additional_kwargs", raw.additional_kwargs)
        update["additional_kwargs"] = {k: v for k, v in kept.items() if k != "tool_calls"}
    if isinstance(raw.content, list) and len(calls) != len(raw.tool_calls):
        update["content"] = [
            b for b in content if not (isinstance(b, dict) and b.get("type") == "invalid_tool_call")
        ]
    return unmarked(raw.model_copy(update=update))  # type: ignore[return-value]


def without_calls(raw: AIMessage) -> AIMessage:
    """Return a reply without its calls: where none was allowed, none is stored."""
    kept = {key: value for key, value in raw.additional_kwargs.items() if key != "tool_calls"}
    return raw.model_copy(update={"tool_calls": [], "invalid_tool_calls": [], "additional_kwargs": kept})
