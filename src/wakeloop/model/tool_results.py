"""The results of calls that were not run, or that failed."""

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.tools import ToolException
from pydantic import ValidationError

from wakeloop.errors import ToolError
from wakeloop.model.storable_values import make_storable
from wakeloop.text.characters import fix_surrogates, shorten
from wakeloop.text.marks import find_last, new_id, remove_mark
from wakeloop.todos.items import MAX_REFUSAL_LENGTH

_KEPT = ("content", "artifact", "additional_kwargs", "response_metadata", "name")


def tool_result(call: Mapping[str, Any], text: str, status: Any = "success") -> ToolMessage:
    """Return the result of a call."""
    return ToolMessage(text, id=new_id(), name=call["name"], tool_call_id=call["id"], status=status)


def error_result(call: Mapping[str, Any], text: str) -> ToolMessage:
    """Return an error result, which says so and is of bounded length."""
    text = text if text.startswith("Error: ") else f"Error: {text}"
    return tool_result(call, shorten(fix_surrogates(text), MAX_REFUSAL_LENGTH), "error")


def clean_tool_message(message: BaseMessage) -> BaseMessage:
    """Return a tool's message as a checkpoint takes it: with an id, and without the graph's mark."""
    update: dict[str, Any] = {} if message.id else {"id": new_id()}
    for name in _KEPT:
        value = getattr(message, name, None)
        if value is not None and (kept := make_storable(value)) is not value and kept != value:
            update[name] = kept
    return remove_mark(message.model_copy(update=update) if update else message)


def find_unanswered(calls: Sequence[Any], messages: Sequence[AnyMessage]) -> list[Any]:
    """Return those of the last reply's calls that have no result yet."""
    behind = takewhile(lambda message: not isinstance(message, AIMessage), reversed(messages))
    there = (
        {message.tool_call_id for message in behind if isinstance(message, ToolMessage)} if calls else set()
    )
    return [call for call in calls if call["id"] not in there]


def last_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """Return the calls of the last reply."""
    reply = find_last(AIMessage, messages)
    return reply.tool_calls if reply else []


def unknown_tool_error(name: str, known: Collection[str]) -> str:
    """Say of a stored call that this build has no tool for it: an older one wrote it."""
    there = ", ".join(sorted(known)) or "none"
    return f"there is no tool {shorten(name)!r} any more; there are {there}."


def error_text(error: Exception) -> str:
    """Return what an error says of itself; its class where it cannot."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whoever wrote it
        return type(error).__name__


def describe_tool_error(error: Exception) -> str:
    """Say what a tool has raised: its own words, or its type and what it says."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "arguments"
        return f"the arguments do not fit: {where}: {first['msg']}"
    said = error_text(error) or type(error).__name__
    return said if isinstance(error, ToolError | ToolException) else f"{type(error).__name__}: {said}"
