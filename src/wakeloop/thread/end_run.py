"""Ends a run from outside, as a drained one ends."""

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from wakeloop.loop.ledger import Ledger, read_notes
from wakeloop.loop.run_end import choose_state, drop_run_notes
from wakeloop.loop.spending import add_round
from wakeloop.loop.spending import report_spent as spent_of
from wakeloop.thread.thread_status import find_resting_node, is_unfinished, read_session
from wakeloop.todos.items import count_open

Graph = CompiledStateGraph[Any, Any, Any, Any]


def end_run(graph: Graph, config: RunnableConfig) -> bool:
    """End a run that waits or was broken off, as a drained one ends; False where there is none.

    What its finished calls brought is kept; the next message closes the others.
    """
    before = graph.get_state(config)
    if not is_unfinished(before):
        return False
    graph.update_state(config, None, as_node=END)
    graph.update_state(
        config, build_drained_update(before, graph.get_state(config).values), as_node=find_resting_node(graph)
    )
    return True


async def aend_run(graph: Graph, config: RunnableConfig) -> bool:
    """End a run that waits or was broken off: `end_run` for asynchronous savers."""
    before = await graph.aget_state(config)
    if not is_unfinished(before):
        return False
    await graph.aupdate_state(config, None, as_node=END)
    after = await graph.aget_state(config)
    await graph.aupdate_state(
        config, build_drained_update(before, after.values), as_node=find_resting_node(graph)
    )
    return True


def build_drained_update(before: StateSnapshot, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run that is ended from outside leaves in its thread."""
    notes: Ledger = {**read_notes(values)}
    add_round(notes, values.get("messages") or ())
    rest = drop_run_notes(notes)
    rest.pop("refused", None)
    rest["ruling"] = "drained"
    update: dict[str, Any] = {"todo_ledger": rest}
    if (values.get("todo_session") or {}).get("state") == "running":  # else nothing of it was begun
        still = count_open(values.get("todos") or ())
        told: dict[str, Any] = {"open": still, "reason": "drained", "state": choose_state("drained", still)}
        told |= {"list": rest.get("writes", 0), "spent": spent_of(rest)}
        update["todo_session"] = {k: v for k, v in {**read_session(before), **told}.items() if k != "on"}
        rest["tail"] = values["messages"][-1].id or ""
    return update
