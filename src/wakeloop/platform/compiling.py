"""A graph whose guard knows the saver it is compiled with."""

from copy import copy
from dataclasses import replace
from typing import Any

from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

from wakeloop.nodes.finalization_guard import FinalizationGuard
from wakeloop.thread.other_runs import Witness


class TodoGraph(StateGraph[Any, Any, Any, Any]):
    """A `StateGraph` that gives each compilation a guard of its own, with that compilation's saver."""

    def compile(self, *args: Any, **kwargs: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Compile; the arguments are `StateGraph`'s own."""
        own, witness = copy(self), Witness()
        own.nodes = {
            name: replace(spec, runnable=replace(spec.runnable, witness=witness))
            if isinstance(spec.runnable, FinalizationGuard)
            else spec
            for name, spec in self.nodes.items()
        }
        compiled = StateGraph.compile(own, *args, **kwargs)
        self.compiled = own.compiled
        if not isinstance(compiled.checkpointer, bool):
            witness.saver = compiled.checkpointer
        return compiled
