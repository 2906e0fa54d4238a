"""A graph whose nodes know the saver it was compiled with.

LangGraph does not pass the saver to nodes. A config bound to the compiled graph would reach them, but also
every snapshot that is read by the id of its checkpoint.
"""

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from langgraph.channels import UntrackedValue
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

from wakeloop.platform.channels import use_safe_text_channels
from wakeloop.platform.child_processes import free_locks_in_children


class SaverAwareGraph(StateGraph[Any, Any, Any, Any]):
    """A `StateGraph` each of whose compilations has its own nodes, with that compilation's saver.

    It compiles to the class `compiles_to`. Channels that are `textless` never hold a string.
    """

    compiles_to: type[CompiledStateGraph[Any, Any, Any, Any]] = CompiledStateGraph
    textless: Collection[str] = ()

    def compile(self, checkpointer: Any = None, **kwargs: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Compile, with the arguments of `StateGraph`."""
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
        use_safe_text_channels(compiled.channels, self.textless)
        self.compiled = own.compiled
        return compiled


def stored_channels(channels: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the channels whose values a checkpoint stores."""
    return frozenset(key for key, channel in channels.items() if not isinstance(channel, UntrackedValue))
