"""A thread of the server, as a graph of this process reads it."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import convert_to_messages
from langgraph.types import Interrupt, PregelTask, StateSnapshot


def make_snapshot(state: Mapping[str, Any]) -> StateSnapshot:
    """Make of a thread's JSON what `graph.get_state` returns."""
    values = dict(state["values"] or {}) if isinstance(state["values"], Mapping) else {}
    if "messages" in values:
        values["messages"] = convert_to_messages(values["messages"])
    asked = tuple(one for task in state["tasks"] for one in _read_interrupts(task))
    tasks = tuple(
        PregelTask(
            t["id"], t["name"], (), t.get("error"), _read_interrupts(t), t.get("state"), t.get("result")
        )
        for t in state["tasks"]
    )
    about = (state.get("metadata"), state.get("created_at"))
    return StateSnapshot(values, tuple(state["next"]), {}, *about, None, tasks, asked)


def _read_interrupts(task: Mapping[str, Any]) -> tuple[Interrupt, ...]:
    found = task.get("interrupts") or ()
    return tuple(Interrupt(value=i.get("value"), id=str(i.get("id") or i.get("interrupt_id"))) for i in found)
