"""Replies for a script, and how each is played."""

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from itertools import count
from types import EllipsisType
from typing import Any, TypeAlias, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
    message_chunk_to_message,
)

Call: TypeAlias = tuple[str, Mapping[str, Any]] | tuple[str, Mapping[str, Any], str | None] | InvalidToolCall

_numbers = count(1)


def says(text: str, *, finish_reason: str | None = None, **fields: Any) -> AIMessage:
    """Make a reply that is only text.

    `finish_reason="length"` marks it as cut at the token limit (it is kept in `response_metadata`). Other
    `fields` are those of `AIMessage`, such as `id`, `usage_metadata` or `additional_kwargs`.

    Example:
        >>> says("Hello!", finish_reason="length").response_metadata
        {'finish_reason': 'length'}
    """
    return AIMessage(content=text, **_with_finish_reason(finish_reason, fields))


def calls(*made: Call, text: str = "", finish_reason: str | None = None, **fields: Any) -> AIMessage:
    """Make a reply that calls tools: `calls(("search", {"query": "x"}), ("read", {"path": "a"}, "id-7"))`.

    A pair gets an id that is unique in this process (`call_1`, …); a third element sets the id, or leaves it
    out if it is None. A `malformed_call(…)` becomes one of the reply's `invalid_tool_calls`. Raises TypeError
    for anything else. `text`, `finish_reason` and `fields` are as in `says`.

    Example:
        >>> calls(("search", {"query": "x"}, "id-1")).tool_calls
        [{'name': 'search', 'args': {'query': 'x'}, 'id': 'id-1', 'type': 'tool_call'}]
    """
    valid, invalid = [], []
    for one in made:
        if isinstance(one, tuple):
            valid.append(_tool_call(one))
        elif _is_malformed(one):
            invalid.append(one)
        else:
            raise TypeError(
                f"A call is a tuple (name, arguments), as in calls(('search', {{'query': 'x'}})), or a "
                f"malformed_call(…); got {one!r}."
            )
    return AIMessage(
        content=text,
        tool_calls=valid,
        invalid_tool_calls=invalid,
        **_with_finish_reason(finish_reason, fields),
    )


def malformed_call(
    name: str | None,
    args: str | None,
    id: str | EllipsisType | None = ...,  # noqa: A002 - the message's own word
) -> InvalidToolCall:
    """Make a call whose arguments are not JSON, for `calls(…)`.

    `args` is the raw text that the model wrote. Without `id` it gets a fresh one; None leaves it out.

    Example:
        >>> calls(malformed_call("search", "{not json")).invalid_tool_calls[0]["args"]
        '{not json'
    """
    key = _new_id() if isinstance(id, EllipsisType) else id
    return InvalidToolCall(type="invalid_tool_call", name=name, args=args, id=key, error=None)


def _new_id() -> str:
    return f"call_{next(_numbers)}"


def _tool_call(made: tuple[Any, ...]) -> ToolCall:
    if len(made) not in (2, 3) or not isinstance(made[0], str) or not isinstance(made[1], Mapping):
        raise TypeError(f"A call is (name, arguments) or (name, arguments, id), not {made!r}.")
    name, args = made[:2]
    return ToolCall(type="tool_call", name=name, args=dict(args), id=made[2] if made[2:] else _new_id())


def _is_malformed(made: object) -> bool:
    return isinstance(made, Mapping) and made.get("type") == "invalid_tool_call"


def _with_finish_reason(reason: str | None, fields: dict[str, Any]) -> dict[str, Any]:
    for name in fields.keys() - AIMessage.model_fields.keys():
        raise TypeError(f"A reply has no field {name!r}. A call is a tuple: calls(({name!r}, {{…}})).")
    if reason is None:
        return fields
    return {**fields, "response_metadata": {"finish_reason": reason, **fields.get("response_metadata", {})}}


Step: TypeAlias = str | AIMessage | BaseException | type[BaseException] | Callable[[list[BaseMessage]], Any]


def is_step(value: object) -> bool:
    """Return whether this value can be a step of a script."""
    return isinstance(value, (str, AIMessage, BaseException)) or callable(value)


def step_error(value: object, where: str) -> TypeError:
    """Return the error for a value that is not a step."""
    text = (
        f"{where} must be a string, an AIMessage, an exception to raise or a callable of the request, "
        f"not {type(value).__name__}: {value!r:.80}."
    )
    if isinstance(value, dict):
        text += " Wrap it in calls(…)."
    return TypeError(text)


def resolve_step(step: Any, request: list[BaseMessage]) -> AIMessage | Awaitable[Step]:
    """Return the reply as a fresh copy, or an awaitable of the next step. Raise an exception step."""
    while True:
        if isinstance(step, str):
            return AIMessage(content=step)
        if isinstance(step, AIMessage):
            return copy_reply(step)
        if isinstance(step, BaseException) or (isinstance(step, type) and issubclass(step, BaseException)):
            raise step
        if isawaitable(step):
            return cast("Awaitable[Step]", step)
        if not callable(step):
            raise step_error(step, "What a scripted callable returns")
        step = step(list(request))


def copy_reply(message: AIMessage) -> AIMessage:
    """Return a deep copy, so that a graph may change the message without changing the script."""
    if isinstance(message, AIMessageChunk):
        return cast("AIMessage", message_chunk_to_message(message)).model_copy(deep=True)
    return message.model_copy(deep=True)
