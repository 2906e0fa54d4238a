"""Nodes and routers that run without a thread hop."""

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig


class Node(Runnable[Any, Any]):
    """A node whose body is `__call__`; one that waits for something overrides `acall` too.

    For a plain function LangGraph would start a thread in an asynchronous graph, even if it only computes.
    """

    def __call__(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        """Return the node's update."""
        raise NotImplementedError

    async def acall(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        """Return the node's update: by default that of the same body."""
        return self(state, config)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run in a synchronous graph."""
        return self(input, config or {})

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run in an asynchronous graph."""
        return await self.acall(input, config or {})


class Router(Runnable[Any, Any]):
    """A pure function from state (and `more`) to the next node; LangGraph reads its annotations."""

    def __init__(self, choose: Callable[..., Any], **more: Any) -> None:
        self.choose = partial(choose, **more) if more else choose
        self.name = choose.__name__
        update_wrapper(self, choose)

    def __call__(self, state: Any) -> Any:
        """Choose the next node."""
        return self.choose(state)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Choose in a synchronous graph."""
        return self.choose(input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Choose in an asynchronous graph."""
        return self.choose(input)


def read_step(config: RunnableConfig) -> int:
    """Return the number of the current superstep; 0 outside a graph."""
    return int(config.get("metadata", {}).get("langgraph_step", 0))
