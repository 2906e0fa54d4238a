"""Listens to a request that others make."""

from asyncio import get_running_loop
from collections.abc import Awaitable, Callable
from typing import Any, Self

from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain.agents.structured_output import StructuredOutputError, ToolStrategy
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import set_config_context
from langgraph.types import TracePolicy

from wakeloop.model.redaction import RedactingTracer
from wakeloop.model.reply_watcher import ReplyWatcher
from wakeloop.model.usage import model_name_of


def _trim_traced_inputs(inputs: Any) -> Any:
    request = inputs.get("request") if isinstance(inputs, dict) else None
    if not isinstance(request, dict):
        return inputs
    said = {key: request.get(key) for key in ("system_message", "messages")}
    return {"request": {"model": model_name_of(request["model"]), **said}}


TRACE_POLICY = TracePolicy(process_inputs=_trim_traced_inputs)
"""What LangSmith is told of a request: LangChain would tell it all that a model is made with."""


class SentMessages(BaseCallbackHandler):
    """What truly goes to the model: the ids of its messages, behind all that others have taken out."""

    run_inline = True

    def __init__(self) -> None:
        self.ids: frozenset[str | None] = frozenset()

    def on_chat_model_start(self, serialized: Any, messages: Any, **_: Any) -> None:  # noqa: ARG002 - langchain's own
        """Keep the last request's: of a wrapper that asks a model of its own too, it is the agent's."""
        self.ids = frozenset(message.id for message in messages[0])


class FormatErrorCatcher:
    """An answer that is not in the provider's format: `said` without a result, where LangChain raises.

    A `ToolStrategy` has a way of its own, `handle_errors`.
    """

    def __init__(self, request: ModelRequest[Any]) -> None:
        self.asked = request.response_format
        self.said: ModelResponse[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, StructuredOutputError) or isinstance(self.asked, ToolStrategy):
            return False
        self.said = ModelResponse([error.ai_message])
        return True


def call_handler(
    handler: Callable[[Any], Any], request: Any, ear: ReplyWatcher, config: RunnableConfig
) -> Any:
    """Return a reply; None where it was not read. What is raised tells no key."""
    with RedactingTracer(ear.config, request.model) as told, ear, FormatErrorCatcher(request) as unfit:
        if told is None or told is config:
            return handler(request)
        with set_config_context(told) as context:
            return context.run(handler, request)
    if unfit.said is not None:
        return unfit.said
    return call_handler(handler, _without_streaming(request), ear, config) if ear.never_began else None


async def acall_handler(
    handler: Callable[[Any], Awaitable[Any]], request: Any, ear: ReplyWatcher, config: RunnableConfig
) -> Any:
    """Return the same; the model is awaited."""
    with RedactingTracer(ear.config, request.model) as told, ear, FormatErrorCatcher(request) as unfit:
        if told is None or told is config:
            return await handler(request)
        with set_config_context(told) as context:
            return await get_running_loop().create_task(_await_handler(handler, request), context=context)
    if unfit.said is not None:
        return unfit.said
    return await acall_handler(handler, _without_streaming(request), ear, config) if ear.never_began else None


def _without_streaming(request: Any) -> Any:
    """Return a request that is not streamed: its stream never began, and may be a body that is none."""
    return request.override(model_settings={**request.model_settings, "stream": False})


async def _await_handler(handler: Callable[[Any], Awaitable[Any]], request: Any) -> Any:
    return await handler(request)
