"""How a run ends: its session, and what remains of its notes."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from wakeloop.loop.earned_wakes import count_earned_wakes
from wakeloop.loop.gates import ENDINGS
from wakeloop.loop.goal import is_unmet
from wakeloop.loop.ledger import RUN_KEYS, Ledger, drop_keys
from wakeloop.loop.list_writes import has_verified_item
from wakeloop.loop.spending import report_spent
from wakeloop.loop.waits import describe_waiting
from wakeloop.settings import LoopSettings
from wakeloop.stream import EndReason, Session, State
from wakeloop.todos.items import Todo, count_items


def choose_state(reason: EndReason, open_count: int) -> State:
    """Return the state in which an ending leaves the session. An unmet goal counts as open."""
    state = ENDINGS[reason].state
    return "dormant" if state == "idle" and not open_count else state


def build_session(
    notes: Ledger,
    todos: Sequence[Todo],
    settings: LoopSettings,
    reason: EndReason,
    waiting_on: Sequence[Any] = (),
    *,
    needs_proof: bool = False,
) -> Session:
    """Return the session of a run that ends for this reason.

    `waiting_on` is the channel's value. With `needs_proof` the session says whether an item of the list
    passed the verifier.
    """
    counts = count_items(todos)
    session: Session = {
        "state": choose_state(reason, counts["open"] + is_unmet(notes)),
        "reason": reason,
        **counts,  # type: ignore[typeddict-item]
        "wakes": notes.get("wake_cycles", 0),
        "budget": settings.max_wake_cycles + count_earned_wakes(notes, settings),
        "list": notes.get("writes", 0),
        "spent": report_spent(notes),
    }
    if needs_proof:
        session["verified"] = has_verified_item(notes, todos)
    if "missing" in notes:
        session["missing"] = notes["missing"]
    if session["state"] == "waiting":
        session |= describe_waiting(waiting_on)  # type: ignore[typeddict-item]
    return session


def waits_for_limit(notes: Ledger) -> bool:
    """Tell whether the run ends because its request was refused for a limit (rule 29)."""
    return notes.get("end") == "waiting"


def drop_run_notes(notes: Ledger, messages: Sequence[BaseMessage] = ()) -> Ledger:
    """Return what the end of a run leaves of its notes, and the id of the last message.

    By that id the next run sees whether the conversation has grown since. Where a request was refused for a
    limit, they stay: the same request is made again later.
    """
    rest: Ledger = {**notes} if waits_for_limit(notes) else drop_keys(notes, RUN_KEYS)
    if messages:
        rest["tail"] = messages[-1].id or ""
    return rest
