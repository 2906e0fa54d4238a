"""Edit targets: which graph and node an edit goes to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.errors import InvalidUpdateError
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from wakeloop.checks.argument_values import check_graph
from wakeloop.checks.run_inputs import require_thread
from wakeloop.errors import EditError
from wakeloop.loop.ledger import read_notes
from wakeloop.platform.channel_overwrite import overwrite_value
from wakeloop.thread.thread_status import LAST_NODE, find_last_node, is_unfinished

Graph = CompiledStateGraph[Any, Any, Any, Any]
SESSION_CHANNELS = ("todo_session", "todo_goal")


@dataclass(frozen=True)
class EditTarget:
    """The thread to edit: an agent's own, a nested agent's, or that of a parent that shares the list.

    `node` is the node that the update is attributed to: the agent's last one, or None for a parent, where
    LangGraph works it out. `renumbers` says that ids restart at 1 once the list has been cleared.
    """

    graph: Graph
    config: RunnableConfig
    node: str | None
    renumbers: bool = False

    @classmethod
    def find(cls, graph: Graph, config: RunnableConfig) -> Self:
        """Find the target. Raises `ArgumentError` or `EditError` if this graph's list cannot be edited."""
        check_graph(graph)
        namespace = str(require_thread(config).get("checkpoint_ns") or "")
        if graph.checkpointer is True:
            raise EditError(
                f"The graph {graph.name!r} keeps its threads with its parent's. Pass the parent graph, with "
                f"{{'thread_id': …, 'checkpoint_ns': 'NODE'}}, where NODE is this graph's name in it."
            )
        if not graph.checkpointer:
            raise EditError(
                f"The graph {graph.name!r} keeps no threads. Build it with a checkpointer, such as "
                "checkpointer=InMemorySaver()."
            )
        last = find_last_node(_find_nested_agent(graph, namespace) if namespace else graph)
        if last is not None:
            return cls(graph, config, last[0], last[1].dialect.renumbers)
        if "todos" in graph.channels:
            return cls(graph, config, None)
        raise EditError(_explain_missing_list(graph))

    def build_update(self, update: Mapping[str, Any], todos: list[Any]) -> dict[str, Any]:
        """Return the update as this graph accepts it; a parent gets only the channels that it shares."""
        if self.node is not None:
            return dict(update)
        channels = self.graph.channels
        if "todo_goal" in update and "todo_goal" not in channels:
            raise EditError(f"Nothing was changed: the graph {self.graph.name!r} has no channel 'todo_goal'.")
        shared = {key: update[key] for key in SESSION_CHANNELS if key in update and key in channels}
        if "todos" in update:
            # A parent's channel may have no reducer, or one of its own, so the list is written whole.
            shared["todos"] = overwrite_value(channels["todos"], todos)
        return shared

    def make_update_error(self, error: InvalidUpdateError) -> EditError:
        """Return the error for a parent of which LangGraph cannot tell which node wrote last."""
        return EditError(
            f"Nothing was changed: the thread of {self.graph.name!r} cannot be edited as it is ({error}). "
            "Send the list with the next input, under 'todos'."
        )


def _find_nested_agent(graph: Graph, namespace: str) -> Any:
    """Return the agent that a namespace names, if its parent keeps its threads."""
    name = "|".join(part.split(":")[0] for part in namespace.split("|"))  # without the ids of tasks
    subgraphs: dict[str, Any] = dict(graph.get_subgraphs(recurse=True))
    child = subgraphs.get(name)
    if child is None or LAST_NODE not in child.nodes:
        agents = [repr(key) for key, one in subgraphs.items() if LAST_NODE in one.nodes]
        raise EditError(
            f"The graph {graph.name!r} has no agent at {name!r}. Its agents: {', '.join(agents) or 'none'}."
        )
    if child.checkpointer is not True:
        raise EditError(
            f"The agent {name!r} keeps nothing between its parent's runs (checkpointer=True would). Edit the "
            "parent's own list."
        )
    return child


def _explain_missing_list(graph: Graph) -> str:
    """Say where the list is."""
    subgraphs: dict[str, Any] = dict(graph.get_subgraphs(recurse=True))
    kept = [key for key, one in subgraphs.items() if LAST_NODE in one.nodes and one.checkpointer is True]
    if not kept:
        return (
            f"The graph {graph.name!r} is not a todo agent and has no channel 'todos'. Pass the agent's own "
            "graph."
        )
    config = f"{{'configurable': {{'thread_id': …, 'checkpoint_ns': {kept[0]!r}}}}}"
    return f"The list belongs to an agent inside {graph.name!r}. Name it in the config: {config}."


def refuse_unfinished(snapshot: StateSnapshot, then: str = "edit its list") -> None:
    """Raise `EditError` if the thread is in the middle of a run, and say what to do first."""
    if snapshot.interrupts:
        raise EditError(f"This thread is waiting at an interrupt. Resume it first, then {then}.")
    if not is_unfinished(snapshot):
        return
    if read_notes(snapshot.values).get("refused"):
        raise EditError(f"This thread's last input was refused. Send it a message first, then {then}.")
    raise EditError(f"This thread has not finished its run. Resume it first, then {then}.")
