"""How a thread stands, and what it answered."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.types import StateSnapshot

from wakeloop.loop.soundness import check_channels, check_ledger
from wakeloop.model.wire_order import text_of
from wakeloop.stream import Session
from wakeloop.text.marks import by_model, by_user, opens
from wakeloop.todos.items import count_open


def session_of(snapshot: StateSnapshot) -> Session:
    """Read how a thread stands from `graph.get_state(config)`.

    A thread parked at an interrupt is `waiting`, `interrupted`, on a human; one that broke off, or is being
    run, is `running`; one that has not begun is `dormant`, or `idle` with items by hand, without a reason.
    """
    values = snapshot.values or {}
    check_channels(values)
    todos = values.get("todos") or []
    check_ledger(values.get("todo_ledger") or {})
    left = count_open(todos)
    fresh: Session = {
        "state": "idle" if left else "dormant",
        "reason": None,
        "open": 0,
        "wakes": 0,
        "budget": 0,
    }
    session: Session = {**fresh, **(values.get("todo_session") or {}), "open": left}
    ledger = values.get("todo_ledger") or {}
    if unfinished(snapshot) and not ledger.get("refused"):  # a refused input leaves the session as it was
        session |= {"state": "running", "reason": None, "wakes": ledger.get("wake_cycles", 0)}
    if snapshot.interrupts:
        session |= {"state": "waiting", "reason": "interrupted", "on": "human"}
    return session


def unfinished(snapshot: StateSnapshot) -> bool:
    """Tell whether a thread is in mid-run.

    `next` would not: it leaves out tasks whose results are stored, as after a kill between two supersteps.
    """
    return bool(snapshot.tasks)


def answer_of(state: Mapping[str, Any] | StateSnapshot) -> str:
    """Return the last text of the newest activation that the model wrote itself; "" where there is none.

    Takes a run's output, a state, or a snapshot. Structured results and the graph's own lines do not count.
    """
    values = state.values if isinstance(state, StateSnapshot) else state
    messages: list[AnyMessage] = list(values.get("messages") or ())
    for message in reversed(messages):
        if by_user(message) or opens(message):
            return ""
        if by_model(message) and (text := text_of(message)):
            return text
    return ""
