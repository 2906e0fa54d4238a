"""The steps of a script, and how each becomes a reply."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message

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
