"""What follows the end of a turn: the wake loop, its budget.

A turn is over when the model replies without a tool call. Then the gates are asked in their order. If one
answers, the run ends with its name, once the guard has had its say; if none does, the graph wakes the model,
which spends one of the activation's `max_wake_cycles`: `wake_budget` is the gate that bounds the loop.
"""

from typing import Literal

from wakeloop.loop.gates import (
    BORNE,
    Case,
    disabled,
    drained,
    find_earlier_end,
    find_obstacle,
    format_or_end,
    may_ask,
    may_correct_loop,
    may_report,
    over_budget,
    repeated_reply,
    settled,
    stalled,
    step_limit,
    waiting,
    wake_budget,
)
from wakeloop.stream import BUDGETS, EndReason, StopReason

Ruling = Literal["wake", "correct", "explain", "report", "format", "retry", "ask", EndReason]
"""What follows: another turn, one more request of some kind, or the end of that name."""

GATES = (waiting, settled, disabled, drained, step_limit, over_budget, wake_budget, repeated_reply, stalled)
GUARDED = frozenset(("wake_budget", "repeated_reply", "stalled"))


def rule(case: Case) -> Ruling:
    """Say what follows; before an end by a spent budget that may be the one closing request."""
    ruling = rule_without_report(case)
    if case.fell is not None and ruling in BORNE:
        return case.fell
    return "report" if ruling in BUDGETS and may_report(case) else ruling


def rule_without_report(case: Case) -> Ruling:
    """Say what follows, were there no closing request.

    What has ended the run already (rounds that brought nothing may be corrected), what is asked again, the
    end of a correction's turn (for which only the first two gates and a spent budget have a say), the gates.
    """
    if (end := find_earlier_end(case)) is not None:
        return "correct" if end == "looping" and may_correct_loop(case) else end
    if case.asking == "explain":
        return "guard_blocked"
    if case.again is not None:
        return find_obstacle(case, case.costs.correction) or "retry"
    if case.asking == "format" or may_ask(case):
        return "settled" if case.asking == "format" else "ask"
    reason = find_stop(case)
    if reason is None:
        return "wake"
    return correct_or_end(case, reason) if is_guarded(case, reason) else format_or_end(case, reason)


def find_stop(case: Case) -> EndReason | None:
    """Return why the run would end, were there no guard; None where it wakes."""
    if case.called_by is not None:
        return waiting(case) or settled(case) or case.over or case.called_by
    return find_first_gate(case)


def find_first_gate(case: Case) -> StopReason | None:
    """Return the first gate's answer; None where the graph wakes."""
    return next((reason for gate in GATES if (reason := gate(case))), None)


def is_guarded(case: Case, reason: EndReason) -> bool:
    """Tell whether the guard has a say in an end: open items, and a budget of 0 or one of the last gates."""
    if case.called_by is not None:
        return reason == case.called_by
    if case.suppressed or not case.open:
        return False
    return reason in GUARDED or (reason == "disabled" and case.settings.auto_continue)


def correct_or_end(case: Case, reason: EndReason) -> Ruling:
    """Ask for the list to be brought up to date while retries last, then end or demand an explanation."""
    allowed = case.settings.guard_retries
    if case.retries < allowed:
        return find_obstacle(case, case.costs.correction) or "correct"
    if not allowed or case.settings.on_guard_exhausted == "proceed" or case.drained:
        return reason
    return find_obstacle(case, case.costs.request) or "explain"
