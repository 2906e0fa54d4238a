"""How a run ends: its session, and what remains of its notes."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import BaseMessage

from wakeloop.loop.case import Case
from wakeloop.loop.earned_wakes import count_earned_wakes
from wakeloop.loop.gates import ENDINGS
from wakeloop.loop.ledger import RUN_KEYS, Ledger, drop_keys
from wakeloop.loop.spending import report_spent
from wakeloop.settings import LoopSettings
from wakeloop.stream import EndReason, Session
from wakeloop.todos.items import Todo, count_open


def choose_state(reason: EndReason, open_count: int) -> Literal["waiting", "dormant", "idle"]:
    """Return the state in which an ending leaves the session."""
    if ENDINGS[reason].state == "waiting":
        return "waiting"
    return "idle" if open_count else "dormant"


def build_session(case: Case, reason: EndReason, waiting_on: Sequence[Any] = (), writes: int = 0) -> Session:
    """Return the session of a run that ends for this reason.

    `waiting_on` is the channel's value; `writes` is the number of the list.
    """
    session: Session = {
        "state": choose_state(reason, case.open),
        "reason": reason,
        "open": case.open,
        "wakes": case.wakes,
        "budget": case.budget,
        "list": writes,
        "items": case.items,
    }
    if session["state"] == "waiting":
        session["on"] = find_waiting_party(waiting_on)
    return session


def build_session_from_notes(
    notes: Ledger,
    todos: Sequence[Todo],
    settings: LoopSettings,
    reason: EndReason,
    waiting_on: Sequence[Any] = (),
) -> Session:
    """Return the same from an activation's notes, with what it has spent."""
    wakes = notes.get("wake_cycles", 0)
    case = Case(
        count_open(todos), settings, wakes, earned=count_earned_wakes(notes, settings), items=len(todos)
    )
    return {**build_session(case, reason, waiting_on, notes.get("writes", 0)), "spent": report_spent(notes)}


def find_waiting_party(waiting_on: Sequence[Any]) -> str:
    """Return whom a session waits for, by the first entry; a peer if it does not say."""
    first = next(iter(waiting_on), None)
    return str(first.get("on", "peer")) if isinstance(first, Mapping) else "peer"


def drop_run_notes(notes: Ledger, messages: Sequence[BaseMessage] = ()) -> Ledger:
    """Return what the end of a run leaves of its notes, and the id of the last message.

    By that id the next run sees whether the conversation has grown since.
    """
    rest = drop_keys(notes, RUN_KEYS)
    if messages:
        rest["tail"] = messages[-1].id or ""
    return rest
