"""Ends, holds and releases a thread from outside."""

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from wakeloop.loop.goal import is_unmet
from wakeloop.loop.ledger import Ledger, read_notes
from wakeloop.loop.silences import HOLD_WAIT, QUESTION_WAIT
from wakeloop.loop.spending import add_round, report_spent
from wakeloop.loop.turn import choose_state, drop_run_notes
from wakeloop.loop.waits import WAIT_KEYS, describe_waiting
from wakeloop.stream import EndReason
from wakeloop.thread.edits import EditTarget, refuse_unfinished
from wakeloop.thread.inputs import read_waits
from wakeloop.thread.thread_status import find_resting_node, is_unfinished, read_session
from wakeloop.todos.items import count_items

Graph = CompiledStateGraph[Any, Any, Any, Any]


def end_run(graph: Graph, config: RunnableConfig, failure: str | None = None) -> bool:
    """End a run that waits at an interrupt or broke off. Return False if the thread has no such run.

    The thread is left as a drained run leaves it, or, with a `failure`, as `failed`. Results of finished
    tool calls are kept; the next message answers the calls that are still open.

    Args:
        graph: The agent, compiled with a checkpointer.
        config: Names the thread.
        failure: The words of the exception that the run raised; None where a person ends a run.

    Raises:
        EditError: `graph` is not an agent, but for example the parent of one.

    Example:
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from wakeloop import create_todo_agent
        >>> from wakeloop.testing import ScriptedModel
        >>> agent = create_todo_agent(ScriptedModel([]), checkpointer=InMemorySaver())
        >>> end_run(agent, {"configurable": {"thread_id": "1"}})
        False
    """
    before = graph.get_state(config)
    if not is_unfinished(before):
        return False
    graph.update_state(config, None, as_node=END)
    update = build_ended_update(before, graph.get_state(config).values, failure)
    graph.update_state(config, update, as_node=find_resting_node(graph))
    return True


async def aend_run(graph: Graph, config: RunnableConfig, failure: str | None = None) -> bool:
    """End a run that waits at an interrupt or broke off: `end_run` for asynchronous savers."""
    before = await graph.aget_state(config)
    if not is_unfinished(before):
        return False
    await graph.aupdate_state(config, None, as_node=END)
    update = build_ended_update(before, (await graph.aget_state(config)).values, failure)
    await graph.aupdate_state(config, update, as_node=find_resting_node(graph))
    return True


def drop_question(graph: Graph, config: RunnableConfig) -> bool:
    """Take back the question with which a thread waits, unanswered. Return False if it waits with none."""
    values = graph.get_state(config).values
    session = values.get("todo_session") or {}
    if session.get("state") != "waiting" or "question" not in session:
        return False
    graph.update_state(config, build_dropped_question(session, "drained"), as_node=find_resting_node(graph))
    return True


def build_dropped_question(session: Mapping[str, Any], reason: EndReason) -> dict[str, Any]:
    """Return the update that takes back the question with which a thread waits, and ends it for a reason."""
    kept = {key: value for key, value in session.items() if key not in WAIT_KEYS}
    ended = {**kept, "reason": reason, "state": choose_state(reason, kept["open"])}
    return {"waiting_on": {"drop": [QUESTION_WAIT]}, "todo_session": ended}


def build_ended_update(
    before: StateSnapshot, values: Mapping[str, Any], failure: str | None = None
) -> dict[str, Any]:
    """Return the update that leaves a thread as a drained run leaves it, or as one that raised."""
    reason: EndReason = "failed" if failure else "drained"
    notes: Ledger = {**read_notes(values)}
    messages = values.get("messages") or ()
    add_round(notes, messages)
    rest = drop_run_notes(notes)
    rest.pop("refused", None)
    rest["ruling"] = reason
    update: dict[str, Any] = {"todo_ledger": rest}
    if (values.get("todo_session") or {}).get("state") != "running":
        return update  # `activate` had not run yet, so the session is still that of the run before
    counts = count_items(values.get("todos") or ())
    session: dict[str, Any] = {
        **read_session(before),
        **counts,
        "reason": reason,
        "state": choose_state(reason, counts["open"] + is_unmet(rest)),
        "list": rest.get("writes", 0),
        "spent": report_spent(rest),
    }
    for key in (*WAIT_KEYS, "error"):
        session.pop(key, None)
    if failure:
        session["error"] = failure
    if "missing" in rest:
        session["missing"] = rest["missing"]
    update["todo_session"] = session
    if messages:
        rest["tail"] = messages[-1].id or ""
    return update


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
    session = {key: value for key, value in read_session(before).items() if key != "until"}
    entry = {"id": HOLD_WAIT, "on": "hold", "reason": session["reason"]}  # why the last run had ended
    held = {**session, "state": "waiting", "reason": "waiting", "on": "hold"}
    update = {"waiting_on": [entry], "todo_session": held}
    graph.update_state(config, update, as_node=find_resting_node(graph))
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
    return next((wait for wait in read_waits(values) if wait.get("id") == HOLD_WAIT), None)


def build_release(before: StateSnapshot, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the update that releases a thread: its session is as it was before the hold."""
    session: dict[str, Any] = {key: value for key, value in read_session(before).items() if key != "on"}
    rest = [wait for wait in read_waits(before.values) if wait is not entry]
    reason = entry.get("reason")
    if rest:
        session |= {**describe_waiting(rest), "state": "waiting", "reason": "waiting"}
    else:
        fresh = "idle" if session["open"] else "dormant"
        session |= {"reason": reason, "state": choose_state(reason, session["open"]) if reason else fresh}
    return {"waiting_on": {"drop": [HOLD_WAIT]}, "todo_session": session}
