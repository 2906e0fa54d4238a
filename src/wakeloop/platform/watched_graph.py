"""A graph whose runs know the saver it was compiled with."""

from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

SAVER = "wakeloop_saver"  # under `configurable`: no text or number, so it is copied into no metadata


class WatchedGraph(StateGraph[Any, Any, Any, Any]):
    """A `StateGraph` whose runs carry their saver, for the look at the thread when one ends."""

    def compile(self, *args: Any, **kwargs: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Compile; the arguments are `StateGraph`'s own."""
        compiled = super().compile(*args, **kwargs)
        if not isinstance(compiled.checkpointer, BaseCheckpointSaver):
            return compiled
        return compiled.with_config(configurable={SAVER: compiled.checkpointer})
