"""A graph whose nodes know the saver it was compiled with.

LangGraph tells no node of its saver. A configuration bound to the compiled graph would reach the node, but
also every snapshot that is read by its checkpoint's id.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from langgraph.channels import UntrackedValue
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

from wakeloop.platform.child_processes import free_locks_in_children
from wakeloop.platform.safe_text_channels import use_safe_text_channels


class SaverAwareGraph(StateGraph[Any, Any, Any, Any]):
    """A `StateGraph` that gives each compilation nodes of its own, with that compilation's saver.

    What it compiles to is of the class `compiles_to`.
    """

    compiles_to: type[CompiledStateGraph[Any, Any, Any, Any]] = CompiledStateGraph

    def compile(self, checkpointer: Any = None, **kwargs: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Compile; the arguments are `StateGraph`'s own."""
        free_locks_in_children()
        own = copy(self)
        if isinstance(checkpointer, BaseCheckpointSaver):
            own.nodes = {**self.nodes}
            stored = stored_channels(self.channels)
            for name, more in (("finalization_guard", {}), ("run_tools", {"stored": stored})):
                spec = self.nodes[name]
                runnable: Any = spec.runnable
                own.nodes[name] = replace(spec, runnable=replace(runnable, saver=checkpointer, **more))
        compiled = StateGraph.compile(own, checkpointer, **kwargs)
        compiled.__class__ = self.compiles_to
        use_safe_text_channels(compiled.channels.values())
        self.compiled = own.compiled
        return compiled


def stored_channels(channels: Mapping[str, Any]) -> frozenset[str]:
    """Name the channels whose values a checkpoint takes."""
    return frozenset(key for key, channel in channels.items() if not isinstance(channel, UntrackedValue))
