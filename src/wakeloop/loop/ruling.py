"""What follows the end of a turn: the wake loop, its budget.

A turn is over when the model replies without a tool call. Then the gates are asked in their order. If one
answers, the run ends with its name, once the guard has had its say; if none does, the graph wakes the model,
which spends one of the activation's `max_wake_cycles`: `wake_budget` is the gate that bounds the loop.
"""

from typing import Literal

from wakeloop.loop.case import Case
from wakeloop.loop.extra_requests import (
    find_obstacle,
    format_or_end,
    may_ask_for_list,
    may_correct_loop,
    may_report,
)
from wakeloop.loop.gates import BEARS_BAD_REPLY, GUARDED, LIMITS, find_first_gate, is_settled
from wakeloop.stream import EndReason

Ruling = Literal["wake", "correct", "explain", "report", "format", "retry", "ask", EndReason]
"""What follows: another turn, one more request of some kind, or the end of that name."""


def rule(case: Case) -> Ruling:
    """Say what follows the end of a turn."""
    ruling = rule_without_report(case)
    if case.bad_reply_end is not None and ruling in BEARS_BAD_REPLY:
        return case.bad_reply_end
    return "report" if ruling in LIMITS and may_report(case) else ruling


def rule_without_report(case: Case) -> Ruling:
    """Say what follows without the closing request before an end by a spent budget."""
    end = find_earlier_end(case)
    if end is not None:
        return "correct" if end == "looping" and may_correct_loop(case) else end
    if case.asking == "explain":
        return "guard_blocked"
    if case.again is not None:
        return find_obstacle(case, case.costs.correction) or "retry"
    return rule_on_turn(case)


def rule_on_turn(case: Case) -> Ruling:
    """Say what follows a turn that ended with a sound reply."""
    if case.asking == "format":
        return "settled"
    if may_ask_for_list(case):
        return "ask"
    reason = find_stop(case)
    if reason is None:
        return "wake"
    return correct_or_end(case, reason) if is_guarded(case, reason) else format_or_end(case, reason)


def find_earlier_end(case: Case) -> EndReason | None:
    """Return what has ended the run already.

    Where that happened in the middle of a turn, a session that waits for somebody is `waiting` all the same:
    the answer will wake it.
    """
    asks_again = case.end is None and case.again is not None and case.asking != "explain"
    reason = case.spent_budget if asks_again else case.end
    in_mid_turn = reason in LIMITS or reason == "looping"
    return "waiting" if in_mid_turn and case.waiting else reason


def find_stop(case: Case) -> EndReason | None:
    """Return why the run would end without the guard; None if it would wake.

    After a correction's turn only the first two gates and a spent budget are asked again: else the gate that
    called the guard has answered already.
    """
    if case.called_by is None:
        return find_first_gate(case)
    if case.waiting:
        return "waiting"
    return "settled" if is_settled(case) else case.spent_budget or case.called_by


def is_guarded(case: Case, reason: EndReason) -> bool:
    """Tell whether the guard has a say in this end."""
    if case.called_by is not None:
        return reason == case.called_by
    if case.suppressed or not case.open:
        return False
    return reason in GUARDED and case.settings.auto_continue


def correct_or_end(case: Case, reason: EndReason) -> Ruling:
    """Ask the model to update its list while retries last, then end or demand an explanation."""
    allowed = case.settings.guard_retries
    if case.retries < allowed:
        return find_obstacle(case, case.costs.correction) or "correct"
    if not allowed or case.settings.on_guard_exhausted == "proceed" or case.drained:
        return reason
    return find_obstacle(case, case.costs.request) or "explain"
