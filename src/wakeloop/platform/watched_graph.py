"""A graph whose nodes know the saver it was compiled with.

LangGraph tells no node of its saver. A configuration bound to the compiled graph would reach the node, but
also every snapshot that is read by its checkpoint's id.
"""

from copy import copy
from dataclasses import replace
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

from wakeloop.platform.child_processes import free_locks_in_children
from wakeloop.platform.whole_texts import hold_whole_texts

WATCH = ("finalization_guard", "run_tools")


class WatchedGraph(StateGraph[Any, Any, Any, Any]):
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
            for name in WATCH:
                spec = self.nodes[name]
                runnable: Any = spec.runnable
                own.nodes[name] = replace(spec, runnable=replace(runnable, saver=checkpointer))
        compiled = StateGraph.compile(own, checkpointer, **kwargs)
        compiled.__class__ = self.compiles_to
        hold_whole_texts(compiled.channels.values())
        self.compiled = own.compiled
        return compiled
