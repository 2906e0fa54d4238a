"""Holds a thread from outside, and releases it."""

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from wakeloop.loop.silences import HOLD_WAIT
from wakeloop.loop.turn import choose_state
from wakeloop.loop.waits import describe_waiting
from wakeloop.thread.edit_target import EditTarget, refuse_unfinished
from wakeloop.thread.thread_status import find_resting_node, read_session

Graph = CompiledStateGraph[Any, Any, Any, Any]


def hold_thread(graph: Graph, config: RunnableConfig) -> bool:
    """Put a thread on hold. Return False if it is already.

    No kick, clock or peer moves it then, and it does not wake. A person's message or `release_thread` does.

    Raises:
        EditError: The thread is in mid-run, waits at an interrupt, or belongs to a graph without a list.
        ArgumentError: `graph` is not a compiled graph, or the config names no thread.

    Example:
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from wakeloop import create_todo_agent, hold_thread, release_thread
        >>> from wakeloop.testing import ScriptedModel
        >>> agent = create_todo_agent(ScriptedModel([]), checkpointer=InMemorySaver())
        >>> config = {"configurable": {"thread_id": "1"}}
        >>> hold_thread(agent, config), release_thread(agent, config)
        (True, True)
    """
    EditTarget.find(graph, config)
    before = graph.get_state(config)
    refuse_unfinished(before, then="hold it")
    if find_hold(before.values) is not None:
        return False
    graph.update_state(config, build_hold(before), as_node=find_resting_node(graph))
    return True


def release_thread(graph: Graph, config: RunnableConfig) -> bool:
    """Release a thread that is on hold. Return False if it is not. It does not run by itself.

    Example:
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from wakeloop import create_todo_agent, release_thread
        >>> from wakeloop.testing import ScriptedModel
        >>> agent = create_todo_agent(ScriptedModel([]), checkpointer=InMemorySaver())
        >>> release_thread(agent, {"configurable": {"thread_id": "1"}})
        False
    """
    EditTarget.find(graph, config)
    before = graph.get_state(config)
    entry = find_hold(before.values)
    if entry is None:
        return False
    graph.update_state(config, build_release(before, entry), as_node=find_resting_node(graph))
    return True


def find_hold(values: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the entry of `waiting_on` that holds a thread, or None."""
    for entry in (values or {}).get("waiting_on") or ():
        if isinstance(entry, Mapping) and entry.get("id") == HOLD_WAIT:
            return entry
    return None


def build_hold(before: StateSnapshot) -> dict[str, Any]:
    """Return the update that holds a thread; its entry keeps why the last run had ended."""
    session = {key: value for key, value in read_session(before).items() if key != "until"}
    entry = {"id": HOLD_WAIT, "on": "hold", "reason": session["reason"]}
    held = {**session, "state": "waiting", "reason": "waiting", "on": "hold"}
    return {"waiting_on": [entry], "todo_session": held}


def build_release(before: StateSnapshot, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the update that releases a thread: its session is as it was before the hold."""
    session: dict[str, Any] = {key: value for key, value in read_session(before).items() if key != "on"}
    rest = [one for one in before.values["waiting_on"] if one is not entry]
    reason = entry.get("reason")
    if rest:
        session |= {**describe_waiting(rest), "state": "waiting", "reason": "waiting"}
    else:
        fresh = "idle" if session["open"] else "dormant"
        session |= {"reason": reason, "state": choose_state(reason, session["open"]) if reason else fresh}
    return {"waiting_on": {"drop": [HOLD_WAIT]}, "todo_session": session}
