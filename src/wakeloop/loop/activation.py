"""How an activation begins, or continues."""

from collections.abc import Collection, Sequence

from wakeloop.loop.case import Case
from wakeloop.loop.gates import has_no_wakes_left, is_disabled
from wakeloop.loop.ledger import THREAD_KEYS, Ledger, drop_keys
from wakeloop.loop.progress import begin_measuring, count_settled
from wakeloop.loop.spending import count_earned_wakes, find_spent_budget
from wakeloop.settings import LoopSettings
from wakeloop.todos.items import Todo

OUTCOME_KEYS = ("wrote", "given_up")  # notes of what was done, by which a run ends


def begin_activation(old: Ledger, todos: Sequence[Todo], keep: Collection[str] = ()) -> Ledger:
    """Return the notes of a new activation: budget, the guard's retries and progress start again.

    `keep` names notes of the activation before that stay.
    """
    names = {*THREAD_KEYS, *keep}
    kept: Ledger = {key: value for key, value in old.items() if key in names}  # type: ignore[assignment]
    peak = count_settled(todos)
    new: Ledger = {
        "todo_stale_iterations": 0,
        "todo_guard_suppressed": False,
        **kept,
        "wake_cycles": 0,
        "idle_wakes": 0,
        "todo_guard_retries": {},
        "todo_guard_blocked": None,
        "todo_finalization_correction": None,
    }
    if peak:
        new["peak"] = peak
    return new


def continue_activation(
    old: Ledger, todos: Sequence[Todo], settings: LoopSettings, *, waiting: bool
) -> Ledger:
    """Return the notes with which a subagent's result continues an activation: as a wake, for one cycle.

    While the thread is `waiting` for more it does not wake; where the budget is spent, the end is noted.
    """
    notes = drop_keys(
        old, frozenset(("refused", "idle_rounds", "settings"))
    )  # `activate` notes those in force
    if waiting:
        return notes
    spent = notes.get("wake_cycles", 0)
    notes["end"] = find_spent_budget(notes, settings)
    case = Case(open=0, settings=settings, wakes=spent, earned=count_earned_wakes(notes, settings))
    if is_disabled(case):
        notes["end"] = "disabled"
    elif has_no_wakes_left(case):
        notes["end"] = notes["end"] or "wake_budget"
    return notes if notes["end"] else begin_wake(notes, spent + 1, todos)


def begin_wake(notes: Ledger, cycle: int, todos: Sequence[Todo]) -> Ledger:
    """Return the notes at the beginning of a wake's turn."""
    return {**begin_measuring(notes, todos), "wake_cycles": cycle}
