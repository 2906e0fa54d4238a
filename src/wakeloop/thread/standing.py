"""How a thread stands, and what it answered."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from wakeloop.errors import EditError
from wakeloop.loop.ledger import notes_of
from wakeloop.state import check_channels
from wakeloop.stream import Session
from wakeloop.text.marks import by_model, by_user, opens, text_of
from wakeloop.todos.items import count_open

LAST = "finalization_guard"


def session_of(snapshot: StateSnapshot) -> Session:
    """Read how a thread stands from `graph.get_state(config)`.

    A thread parked at an interrupt is `waiting`, `interrupted`, on an approval where the value of the (first)
    interrupt says `"on": "approval"`, else on a human; one that broke off, or is being run, is `running`; one
    that has not begun is `dormant`, or `idle` with items by hand, without a reason.
    """
    values = snapshot.values or {}
    check_channels(values)
    todos, ledger = values.get("todos") or [], notes_of(values)
    left = count_open(todos)
    fresh: Session = {
        "state": "idle" if left else "dormant",
        "reason": None,
        "open": 0,
        "wakes": 0,
        "budget": 0,
    }
    session: Session = {**fresh, **(values.get("todo_session") or {}), "open": left}
    if unfinished(snapshot) and not ledger.get("refused"):  # a refused input leaves the session as it was
        session |= {"state": "running", "reason": None, "wakes": ledger.get("wake_cycles", 0)}
    if snapshot.interrupts:
        value = snapshot.interrupts[0].value
        approval = isinstance(value, Mapping) and value.get("on") == "approval"
        on = "approval" if approval else "human"
        session |= {"state": "waiting", "reason": "interrupted", "on": on}
    return session


def resting_node(graph: CompiledStateGraph[Any, Any, Any, Any]) -> str:
    """Return the node that an ended thread is written as: the one after which a run ends.

    Raises `EditError` for a graph that has none, such as the parent of an agent.
    """
    if LAST not in graph.nodes:
        raise EditError(
            f"The graph {graph.name!r} is no todo agent: edit the list by the agent's own graph, or the "
            "parent's channel by its own update_state."
        )
    return LAST


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
