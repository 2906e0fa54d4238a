"""Which graph an edit by hand goes to, and as which node."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.errors import InvalidUpdateError
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from wakeloop.checks.run_inputs import require_thread
from wakeloop.errors import ArgumentError, EditError
from wakeloop.loop.ledger import read_notes
from wakeloop.platform.channel_overwrite import overwrite_value
from wakeloop.thread.thread_status import LAST_NODE, find_last_node, is_unfinished

Graph = CompiledStateGraph[Any, Any, Any, Any]
SESSION_CHANNELS = ("todo_session", "todo_goal")


@dataclass(frozen=True)
class EditTarget:
    """A thread that is edited: of an agent, of one that a parent keeps, or of a parent that shares the list.

    `node` is what it is written as: the agent's last, or None for a parent, where LangGraph finds it.
    `renumbers` says that its numbers begin anew in an empty list.
    """

    graph: Graph
    config: RunnableConfig
    node: str | None
    renumbers: bool = False

    @classmethod
    def find(cls, graph: Graph, config: RunnableConfig) -> Self:
        """Find out which it is. Raises `ArgumentError` or `EditError` with what is due."""
        if not isinstance(graph, CompiledStateGraph):
            raise ArgumentError(
                f"The list is edited by a compiled graph, as in update_todos(agent, config, add=['…']), and "
                f"the first argument is a {type(graph).__name__}."
            )
        place = str(require_thread(config).get("checkpoint_ns") or "")
        if graph.checkpointer is True:
            raise EditError(
                f"The graph {graph.name!r} keeps its threads with its parent's: edit the list by the parent, "
                f"with {{'thread_id': …, 'checkpoint_ns': 'NODE'}}, where NODE is its name there."
            )
        if not graph.checkpointer:
            raise EditError(
                f"The graph {graph.name!r} keeps no threads: build it with checkpointer=…, such as "
                "InMemorySaver()."
            )
        last = find_last_node(_find_nested_agent(graph, place) if place else graph)
        if last is not None:
            return cls(graph, config, last[0], last[1].dialect.renumbers)
        if "todos" in graph.channels:
            return cls(graph, config, None)
        raise EditError(_explain_missing_list(graph))

    def build_update(self, update: Mapping[str, Any], todos: list[Any]) -> dict[str, Any]:
        """Return an update as this graph takes it: a parent's channels, where it shares them."""
        if self.node is not None:
            return dict(update)
        if "todo_goal" in update and "todo_goal" not in self.graph.channels:
            raise EditError(f"Nothing was changed: the graph {self.graph.name!r} has no channel todo_goal.")
        shared = {
            key: update[key] for key in SESSION_CHANNELS if key in update and key in self.graph.channels
        }
        if "todos" in update:
            shared["todos"] = overwrite_value(self.graph.channels["todos"], todos)
        return shared

    def make_update_error(self, error: InvalidUpdateError) -> EditError:
        """Say that LangGraph does not know which node of a parent has written last."""
        return EditError(
            f"Nothing was changed: the thread of {self.graph.name!r} cannot be edited as it is ({error}); "
            "send the list with the next input, under 'todos'."
        )


def _find_nested_agent(graph: Graph, place: str) -> Any:
    """Return the agent that a namespace names, where its parent keeps its threads."""
    name = "|".join(part.split(":")[0] for part in place.split("|"))
    below: dict[str, Any] = dict(graph.get_subgraphs(recurse=True))
    child = below.get(name)
    if child is None or LAST_NODE not in child.nodes:
        there = ", ".join(repr(key) for key, one in below.items() if LAST_NODE in one.nodes) or "none"
        raise EditError(f"The graph {graph.name!r} has no agent at {name!r}; those beneath it are: {there}.")
    if child.checkpointer is not True:
        raise EditError(
            f"The agent {name!r} keeps nothing between its parent's runs (checkpointer=True keeps it): edit "
            "the parent's own list."
        )
    return child


def _explain_missing_list(graph: Graph) -> str:
    """Say which graph has the list."""
    below: dict[str, Any] = dict(graph.get_subgraphs(recurse=True))
    kept = [key for key, one in below.items() if LAST_NODE in one.nodes and one.checkpointer is True]
    if not kept:
        return (
            f"The graph {graph.name!r} is no todo agent and has no channel 'todos': edit the list by the "
            "agent's own graph."
        )
    where = f"{{'configurable': {{'thread_id': …, 'checkpoint_ns': {kept[0]!r}}}}}"
    return f"The list belongs to an agent within {graph.name!r}: name it in the config, as {where}."


def refuse_unfinished(snapshot: StateSnapshot) -> None:
    """Refuse an edit of a thread in mid-run with what to do first."""
    if snapshot.interrupts:
        raise EditError(
            "This thread waits for an answer to an interrupt: resume it first, then edit its list."
        )
    if not is_unfinished(snapshot):
        return
    if read_notes(snapshot.values).get("refused"):
        raise EditError("This thread's last input was refused: send it a message first, then edit its list.")
    raise EditError("This thread has not finished its run: resume it first, then edit its list.")
