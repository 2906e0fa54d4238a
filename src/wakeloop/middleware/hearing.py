"""Listens to a request that others make."""

from asyncio import get_running_loop
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import set_config_context
from langgraph.types import TracePolicy

from wakeloop.model.broken_stream import Hearing
from wakeloop.model.redaction import Discreet
from wakeloop.model.usage import name_of


def _told(inputs: Any) -> Any:
    request = inputs.get("request") if isinstance(inputs, dict) else None
    if not isinstance(request, dict):
        return inputs
    said = {key: request.get(key) for key in ("system_message", "messages")}
    return {"request": {"model": name_of(request["model"]), **said}}


TOLD = TracePolicy(process_inputs=_told)
"""What LangSmith is told of a request: LangChain would tell it all that a model is made with."""


def heard(handler: Callable[[Any], Any], request: Any, ear: Hearing, config: RunnableConfig) -> Any:
    """Return a reply; None where it was not read. What is raised tells no key."""
    with Discreet(ear.config, request.model) as told, ear:
        if told is None or told is config:
            return handler(request)
        with set_config_context(told) as context:
            return context.run(handler, request)
    return heard(handler, _whole(request), ear, config) if ear.silent else None


async def aheard(
    handler: Callable[[Any], Awaitable[Any]], request: Any, ear: Hearing, config: RunnableConfig
) -> Any:
    """Return the same; the model is awaited."""
    with Discreet(ear.config, request.model) as told, ear:
        if told is None or told is config:
            return await handler(request)
        with set_config_context(told) as context:
            return await get_running_loop().create_task(_coroutine(handler, request), context=context)
    return await aheard(handler, _whole(request), ear, config) if ear.silent else None


def _whole(request: Any) -> Any:
    """Return a request that is not streamed: its stream never began, and may be a body that is none."""
    return request.override(model_settings={**request.model_settings, "stream": False})


async def _coroutine(handler: Callable[[Any], Awaitable[Any]], request: Any) -> Any:
    return await handler(request)
