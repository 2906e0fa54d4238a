"""The agent that a LangGraph server loads."""

import os
from asyncio import to_thread
from collections.abc import Sequence
from functools import cache
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from pydantic import ConfigDict

from wakeloop.agent import create_todo_agent
from wakeloop.errors import ModelSetupError
from wakeloop.model.bindings import bind_tools
from wakeloop.model.chat_models import create_model
from wakeloop.platform.computed_once import computed_once


@cache
def make_graph() -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the agent for `langgraph.json`, without a checkpointer. Every call returns the same graph.

    A server calls this at its start and for each read, and uses its own saver. That needs neither a key nor a
    network: the model that `WAKELOOP_MODEL` names is created at the first request.

    Example:
        >>> make_graph().name
        'wakeloop'
    """
    return create_todo_agent(EnvironmentModel())


class EnvironmentModel(BaseChatModel):
    """The model that `WAKELOOP_MODEL` names, such as `openai:NAME`, created at the first request.

    A request raises `ModelSetupError` if no model is named, or if the named one cannot be created.
    """

    model_config = ConfigDict(ignored_types=(computed_once,))

    tools: Sequence[Any] = ()

    @property
    def _llm_type(self) -> str:
        return "by-environment"

    @computed_once
    def _real(self) -> Runnable[Any, Any]:
        name = os.environ.get("WAKELOOP_MODEL", "")
        if not name:
            raise ModelSetupError("No model is set. Set WAKELOOP_MODEL, for example to openai:NAME.")
        return bind_tools(create_model(name), self.tools)

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> "EnvironmentModel":
        """Return the same model with tools, which are bound when the model is created."""
        return EnvironmentModel(tools=tools)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:  # noqa: A002 - LangChain's own word
        """Ask the real model."""
        reply: AIMessage = self._real.invoke(input, config, **kwargs)
        return reply

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:  # noqa: A002 - LangChain's own word
        """Ask the real model. Creating it reads files, which is done outside the event loop."""
        real = await to_thread(lambda: self._real)
        reply: AIMessage = await real.ainvoke(input, config, **kwargs)
        return reply

    def _generate(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.invoke(messages, **kwargs))])
