"""The agent as a LangGraph server loads it."""

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
from wakeloop.errors import ModelError
from wakeloop.model.chat_models import bind_tools, create_model
from wakeloop.platform.computed_once import computed_once


@cache
def make_graph() -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the agent of `langgraph.json`: the same at each call, without a checkpointer.

    A server calls this when it starts and for each read, and brings its own saver. Neither key nor network is
    needed for that: the model, the one that `WAKELOOP_MODEL` names, is made at the first request.
    """
    return create_todo_agent(EnvironmentModel())


class EnvironmentModel(BaseChatModel):
    """Stands for the model that `WAKELOOP_MODEL` names, such as `openai:NAME`.

    A request raises `ModelError` where no model is named, or the named one cannot be made.
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
            raise ModelError("There is no model to ask: set WAKELOOP_MODEL, for example to openai:NAME.")
        return bind_tools(create_model(name), self.tools)

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> "EnvironmentModel":
        """Return the same model with tools; it is told of them when it is made."""
        return EnvironmentModel(tools=tools)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:  # noqa: A002 - LangChain's own word
        """Ask the model itself."""
        reply: AIMessage = self._real.invoke(input, config, **kwargs)
        return reply

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:  # noqa: A002 - LangChain's own word
        """Ask the model itself; making it reads files, so that is done beside the event loop."""
        real = await to_thread(lambda: self._real)
        reply: AIMessage = await real.ainvoke(input, config, **kwargs)
        return reply

    def _generate(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.invoke(messages, **kwargs))])
