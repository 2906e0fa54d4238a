"""How a thread stands, and what it answered."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AnyMessage

from wakeloop.errors import EditError
from wakeloop.loop.ledger import read_notes
from wakeloop.loop.spending import report_spent
from wakeloop.stream import Session
from wakeloop.text.marks import is_model_reply, is_user_message, opens_activation, text_of
from wakeloop.thread.thread_views import ThreadView, read_messages, read_thread
from wakeloop.todos.items import count_open

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot

LAST_NODE = "finalization_guard"
AFTER_AGENT_SUFFIX = ".after_agent"
NUMBER_KEYS = ("open", "wakes", "budget", "list", "items", "spent")
SESSION_KEYS = frozenset(("state", "reason", "on", "error", *NUMBER_KEYS))


def session_of(given: object) -> Session:
    """Read how a thread stands from `graph.get_state(config)`, a run's result, or another view of it.

    A thread parked at an interrupt is `waiting`, `interrupted`, on an approval where the value of the (first)
    interrupt says `"on": "approval"`, else on a human; one that broke off, or is being run, is `running`,
    without numbers; one that has not begun is `dormant`, or `idle` with items by hand, without a reason. Of a
    result of a run that is parked, the numbers are there that it shows; of a parent's values without a list
    there are none. Where the last input was refused, `error` says why, until one is taken; for clients of a
    server, which keeps the exception's words to itself.

    Args:
        given: A snapshot, a run's result, a state, or a thread's state as the SDK has it. Of a parent graph
            that is parked in the agent: `parent.get_state(config, subgraphs=True)`.

    Raises:
        ArgumentError: Something else.
        DamagedError: What is stored is nothing that a run of the graph has left.
    """
    if isinstance(given, Mapping) and {"state", "reason"} <= given.keys() <= SESSION_KEYS:
        return cast(Session, dict(given))  # a session itself
    view = read_thread(given)
    session = cast(dict[str, Any], read_session(view))
    if refused := read_notes(view.values).get("refused"):
        session["error"] = refused
    if session["state"] == "running" or not view.is_agent:
        return cast(Session, {key: session[key] for key in session if key not in NUMBER_KEYS})
    if session["reason"] == "interrupted" and "todo_ledger" not in view.values:  # a result has no counters
        return cast(Session, {key: session[key] for key in session if key not in NUMBER_KEYS[1:]})
    return cast(Session, session)


def read_session(given: "ThreadView | StateSnapshot") -> Session:
    """Read how a thread stands, with its numbers also while it is running."""
    view = given if isinstance(given, ThreadView) else read_thread(given)
    todos, ledger = view.values.get("todos") or [], read_notes(view.values)
    stored: Mapping[str, Any] = view.values.get("todo_session") or {}
    left = count_open(todos)
    fresh: Session = {
        "state": "idle" if left else "dormant",
        "reason": None,
        "open": 0,
        "wakes": ledger.get("wake_cycles", 0),
        "budget": ledger.get("budget", 0),
        "list": ledger.get("writes", 0),
        "items": 0,
        "spent": report_spent(ledger),
    }
    session: Session = {**fresh, **stored, "open": left, "items": len(todos)}  # type: ignore[typeddict-item]
    refused = ledger.get("refused")  # such an input leaves the session as it was
    if (view.mid_run and not refused) or session["state"] == "running":
        session |= {"state": "running", "reason": None, "wakes": fresh["wakes"], "list": fresh["list"]}
        session["spent"] = fresh["spent"]
    if view.parked:
        session |= {"state": "waiting", "reason": "interrupted", "on": view.waiting_on}
    return session


def find_last_node(graph: "CompiledStateGraph[Any, Any, Any, Any]") -> tuple[str, Any] | None:
    """Return the node after which a run ends, and what has its rules; None for a graph that has none.

    In an agent with the middleware that is the last of its hooks.
    """
    for name, spec in graph.builder.nodes.items():
        owner = getattr(getattr(spec.runnable, "func", None), "__self__", spec.runnable)
        if name == LAST_NODE or (name.endswith(AFTER_AGENT_SUFFIX) and hasattr(owner, "dialect")):
            return name, owner
    return None


def find_resting_node(graph: "CompiledStateGraph[Any, Any, Any, Any]") -> str:
    """Return the node that an ended thread is written as: the one after which a run ends.

    Raises `EditError` for a graph that has none, such as the parent of an agent.
    """
    if (last := find_last_node(graph)) is None:
        raise EditError(
            f"The graph {graph.name!r} is no todo agent: edit the list by the agent's own graph, or the "
            "parent's channel by its own update_state."
        )
    return last[0]


def is_unfinished(snapshot: "StateSnapshot") -> bool:
    """Tell whether a thread is in mid-run.

    `next` would not: it leaves out tasks whose results are stored, as after a kill between two supersteps.
    """
    return bool(snapshot.tasks)


def answer_of(given: object) -> str:
    """Return the last text of the newest activation that the model wrote itself; "" where there is none.

    Structured results and the graph's own lines do not count.

    Args:
        given: A run's output, a state, a snapshot, a list of messages, or a thread's state as the SDK has it.

    Raises:
        ArgumentError: Something else.
    """
    messages: list[AnyMessage] = (
        read_messages(given)
        if isinstance(given, list)
        else list(read_thread(given).values.get("messages") or ())
    )
    for message in reversed(messages):
        if is_user_message(message) or opens_activation(message):
            return ""
        if is_model_reply(message) and (text := text_of(message)):
            return text
    return ""
