"""The graph without a model: reads, edits, its picture."""

import sqlite3
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import StateSnapshot

from wakeloop.agent import create_todo_agent
from wakeloop.cli.agent import settings_of
from wakeloop.cli.failures import CommandError
from wakeloop.cli.recipe import Recipe
from wakeloop.cli.run import Graph
from wakeloop.thread.standing import session_of


class Unasked(BaseChatModel):
    """Stands where a graph needs a model and is only looked at."""

    @property
    def _llm_type(self) -> str:
        return "wakeloop-unasked"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[Any, AIMessage]:  # noqa: ARG002 - the interface's
        """Take any tools."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise NotImplementedError("This graph is only looked at.")


def reader(saver: BaseCheckpointSaver[Any] | None = None, recipe: Recipe | None = None) -> Graph:
    """The graph without tools and without a model: for states, edits and the picture.

    Where a list is edited, the `recipe` of its thread tells of its numbers. Nothing is asked, nothing costs.
    """
    settings = settings_of(recipe).model_copy(update={"max_cost": None}) if recipe else None
    return create_todo_agent(Unasked(), settings=settings or "wakeloop", checkpointer=saver)


def picture() -> str:
    """The graph as Mermaid text."""
    return reader().get_graph().draw_mermaid()


def state(graph: Graph, thread: str) -> StateSnapshot:
    """How a thread is stored, by a `reader`. Raises `CommandError` where its rows cannot be read."""
    try:
        snapshot = graph.get_state({"configurable": {"thread_id": thread}})
        session_of(snapshot)  # it looks at what the channels hold
    except sqlite3.Error:
        raise
    except Exception as error:
        raise CommandError(
            f"The thread {thread!r} cannot be read: what is stored of it is damaged."
        ) from error
    return snapshot
