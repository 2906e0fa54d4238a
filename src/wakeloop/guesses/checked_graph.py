"""A compiled graph that says what LangGraph drops in silence."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from wakeloop.guesses.runs import check_run


class CheckedGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """An agent, compiled: a mistyped key of an input or a config is an `InputError` with the right one."""

    def stream(self, input: Any, config: Any = None, **more: Any) -> Iterator[Any]:  # noqa: A002 - LangGraph's own word
        """Run; `invoke` comes by here, too."""
        check_run(input, config, self.builder.input_schema.__annotations__)
        return super().stream(input, config, **more)

    def astream(self, input: Any, config: Any = None, **more: Any) -> AsyncIterator[Any]:  # noqa: A002
        """Run in an event loop; `ainvoke` comes by here, too."""
        check_run(input, config, self.builder.input_schema.__annotations__)
        return super().astream(input, config, **more)
