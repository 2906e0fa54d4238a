"""The ordered reasons to stop, and the counts they read; pure."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2s
from typing import Any, Literal

from wakeloop.settings import LoopSettings
from wakeloop.stream import Ending, StopReason
from wakeloop.todos.items import Todo, is_open

WAKE_STEPS = 5  # guard, wake, call_model, a round, guard: a node that sees 0 left raises whatever follows
CORRECTION_STEPS = 4  # guard, call_model, a round, guard
ROUND_STEPS = 6  # call_model, its round, a nag, call_model, a round, guard
REQUEST_STEPS = 3  # guard, call_model without tools, guard
REMEMBERED = 64  # calls of an activation that count as seen; the oldest are forgotten
PRINT = 3  # characters of a call's print: they stand in every row; one call in 4,000 is taken for a seen one


@dataclass(frozen=True, slots=True)
class Case:
    """What the gates read when a turn has ended: plain values."""

    open: int
    settings: LoopSettings
    wakes: int = 0
    idle_wakes: int = 0
    waiting: bool = False
    owed: bool = False
    drained: bool = False
    steps_left: int = 10_000
    repeated: bool = False


def waiting(case: Case) -> StopReason | None:
    """Parked on something that will wake it."""
    return "waiting" if case.waiting else None


def settled(case: Case) -> StopReason | None:
    """Nothing is open and no reply is owed."""
    return None if case.open or case.owed else "settled"


def disabled(case: Case) -> StopReason | None:
    """No re-entry is wanted, or the budget is 0."""
    return None if case.settings.auto_continue and case.settings.max_wake_cycles else "disabled"


def drained(case: Case) -> StopReason | None:
    """The process is asked to come to rest."""
    return "drained" if case.drained else None


def step_limit(case: Case) -> StopReason | None:
    """Too few supersteps are left for one more turn."""
    return "step_limit" if case.steps_left < WAKE_STEPS else None


def wake_budget(case: Case) -> StopReason | None:
    """The activation's wakes are spent."""
    return "wake_budget" if case.wakes >= case.settings.max_wake_cycles else None


def repeated_reply(case: Case) -> StopReason | None:
    """The same text over the same list as at the last wake (loki)."""
    return "repeated_reply" if case.settings.stop_on_repeat and case.repeated else None


def stalled(case: Case) -> StopReason | None:
    """Too many wakes in a row without progress."""
    limit = case.settings.max_idle_wakes
    return "stalled" if limit and case.idle_wakes >= limit else None


GATES = (waiting, settled, disabled, drained, step_limit, wake_budget, repeated_reply, stalled)
GUARDED = frozenset(("wake_budget", "repeated_reply", "stalled"))


def first_stop(case: Case) -> StopReason | None:
    """Return the first reason to stop, or None where the graph wakes."""
    return next((reason for gate in GATES if (reason := gate(case))), None)


def hindered(case: Case, steps: int) -> StopReason | None:
    """Tell why not one more request may follow, be it a correction: a drain, or fewer than `steps` left."""
    if case.drained:
        return "drained"
    return "step_limit" if case.steps_left < steps else None


def may_correct(reason: Ending, case: Case) -> bool:
    """Tell whether the guard has a say in an end: open items, and a budget of 0 or one of the last gates."""
    if not case.open:
        return False
    return reason in GUARDED or (reason == "disabled" and case.settings.auto_continue)


def yields(reason: Ending, open_count: int) -> Literal["waiting", "dormant", "idle"]:
    """Return the state that an ending leaves a session in."""
    if reason == "waiting":
        return "waiting"
    return "idle" if open_count else "dormant"


# -- what a round and a turn count -----------------------------------------------------------------------


def count_stale(stale: int, *, wrote: bool, open_count: int, settings: LoopSettings) -> int:
    """Count rounds without a todo write while items are open; a write, also a rejected one, begins anew."""
    if wrote:
        return 0
    return stale + 1 if open_count or settings.nag_when == "always" else stale


def nag_due(stale: int, settings: LoopSettings) -> bool:
    """Tell whether a reminder is due at this count: at `nag_after`, then at every `nag_every` more."""
    over = stale - settings.nag_after
    if not settings.nag_after or over < 0:
        return False
    return over == 0 or bool(settings.nag_every and over % settings.nag_every == 0)


def made_progress(
    todos: Sequence[Todo], open_before: Collection[int | str], peak: int, *, worked: bool
) -> bool:
    """Tell whether a wake's turn brought the work on.

    Either a call not seen before succeeded (`worked`), or an item that was open when the wake began is
    settled and more are settled than ever before in this activation (`peak`).
    """
    if worked:
        return True
    settled_now = [todo["id"] for todo in todos if not is_open(todo)]
    return len(settled_now) > peak and any(key in open_before for key in settled_now)


def fingerprint(name: str, args: Mapping[str, Any]) -> str:
    """Return a short print of a call, the same for the same name and arguments."""
    return urlsafe_b64encode(_digest(name, args, 3)).decode()[:PRINT]


def _digest(name: str, args: Mapping[str, Any], size: int) -> bytes:
    text = json.dumps([name, args], sort_keys=True, default=str)  # nothing but ASCII
    return blake2s(text.encode(), digest_size=size).digest()


def seen_before(seen: str, prints: Sequence[str]) -> tuple[str, set[str]]:
    """Remember the prints of calls, bounded, and return those that were not known before."""
    known = [seen[i : i + PRINT] for i in range(0, len(seen), PRINT)]
    new = [p for p in dict.fromkeys(prints) if p not in set(known)]
    return "".join((known + new)[-REMEMBERED:]), set(new)


def same_again(text: str, todos: Sequence[Todo]) -> str:
    """Return a print of a reply over a list, to see whether the next one repeats it."""
    return _digest(text, {"todos": list(todos)}, 6).hex()
