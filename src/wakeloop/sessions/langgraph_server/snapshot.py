"""Converts a server thread's state to a `StateSnapshot`."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import convert_to_messages
from langgraph.types import Interrupt, PregelTask, StateSnapshot


def make_snapshot(state: Mapping[str, Any]) -> StateSnapshot:
    """Convert a thread's JSON to what `graph.get_state` returns."""
    values = dict(state["values"]) if isinstance(state["values"], Mapping) else {}
    if "messages" in values:
        values["messages"] = convert_to_messages(values["messages"])
    tasks: list[PregelTask] = []
    interrupts: list[Interrupt] = []
    for task in state["tasks"]:
        asked = _read_interrupts(task)
        interrupts += asked
        more = (task.get("error"), asked, task.get("state"), task.get("result"))
        tasks.append(PregelTask(task["id"], task["name"], (), *more))
    about = (state.get("metadata"), state.get("created_at"))
    return StateSnapshot(values, tuple(state["next"]), {}, *about, None, tuple(tasks), tuple(interrupts))


def _read_interrupts(task: Mapping[str, Any]) -> tuple[Interrupt, ...]:
    interrupts: list[Interrupt] = []
    for one in task.get("interrupts") or ():
        key = str(one.get("id") or one.get("interrupt_id"))  # the name differs between versions of the server
        interrupts.append(Interrupt(value=one.get("value"), id=key))
    return tuple(interrupts)
