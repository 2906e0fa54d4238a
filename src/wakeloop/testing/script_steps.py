"""What a script may hold, and how a step becomes a reply."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message

Step: TypeAlias = str | AIMessage | BaseException | type[BaseException] | Callable[[list[BaseMessage]], Any]


def is_step(value: object) -> bool:
    """Return whether a script may hold this value."""
    return isinstance(value, (str, AIMessage, BaseException)) or callable(value)


def step_error(value: object, where: str) -> TypeError:
    """Return the error for a value that is not a step."""
    hint = " Wrap it in calls(…)." if isinstance(value, dict) else ""
    return TypeError(
        f"{where} must be a string, an AIMessage, an exception to raise or a callable of the request, "
        f"not {type(value).__name__}: {value!r:.80}.{hint}"
    )


def resolve_step(step: Any, request: list[BaseMessage]) -> AIMessage | Awaitable[Step]:
    """Return the reply as a fresh copy, or what must be awaited first. Raise what the step says."""
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
    """Return a copy that shares nothing with the script, so that a graph may change it."""
    if isinstance(message, AIMessageChunk):
        return cast("AIMessage", message_chunk_to_message(message)).model_copy(deep=True)
    return message.model_copy(deep=True)
