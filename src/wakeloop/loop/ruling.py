"""What follows the end of a turn: the wake loop, its budget.

A turn is over when the model replies without a tool call. Then the gates are asked in their order. If one
answers, the run ends with its name, once the guard has had its say; if none does, the graph wakes the model,
which spends one of the activation's `max_wake_cycles`: `wake_budget` is the gate that bounds the loop.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from wakeloop.loop.case import Case
from wakeloop.loop.extra_requests import (
    GOAL_ENDS,
    continue_steered,
    correct_or_end,
    end_by_goal,
    find_obstacle,
    format_or_end,
    is_guarded,
    may_ask_for_list,
    may_audit,
    may_correct_loop,
    may_report,
)
from wakeloop.loop.gates import BEARS_BAD_REPLY, LIMITS, find_earlier_end, find_first_gate, find_stop
from wakeloop.stream import EndReason

Ruling = Literal[
    "wake", "correct", "explain", "report", "format", "retry", "ask", "audit", "steer", EndReason
]
"""What follows: another turn, one more request of some kind, or the end of that name."""


def rule(case: Case) -> Ruling:
    """Say what follows the end of a turn."""
    ruling = rule_without_report(case)
    if case.bad_reply_end is not None and ruling in BEARS_BAD_REPLY:
        return case.bad_reply_end
    return "report" if ruling in LIMITS and may_report(case) else ruling


def rule_without_report(case: Case) -> Ruling:
    """Say what follows without the closing request before an end by a spent budget."""
    if (by_goal := end_by_goal(case)) is not None:
        return by_goal
    if (end := find_earlier_end(case)) is not None:
        return "correct" if end == "looping" and may_correct_loop(case) else end
    if case.asking == "explain":
        return "guard_blocked"
    if case.again is not None:
        return find_obstacle(case, case.costs.correction) or "retry"
    return rule_on_turn(case)


def rule_on_turn(case: Case) -> Ruling:
    """Say what follows a turn that ended with a sound reply: the first step that answers decides."""
    for step in STEPS:
        ruling = step(case)
        if ruling is not None:
            return ruling
    return "wake"


def end_formatted(case: Case) -> Ruling | None:
    """End the run, where nothing was left to do, once its answer has come in the caller's format."""
    if case.asking != "format":
        return None
    return GOAL_ENDS.get(case.goal) or find_first_gate(replace(case, open=0, owed=False, waiting=False))


def ask_about_list(case: Case) -> Ruling | None:
    """Ask what is left after a turn that worked without any list, or about items that were closed unseen."""
    if may_ask_for_list(case):
        return "ask"
    return "audit" if may_audit(case) else None


def stop(case: Case) -> Ruling | None:
    """Ask the gates. Where one answers, the guard may have its say before the run ends."""
    reason = find_stop(case)
    if reason is None:
        return None
    return correct_or_end(case, reason) if is_guarded(case, reason) else format_or_end(case, reason)


STEPS: tuple[Callable[[Case], Ruling | None], ...] = (end_formatted, continue_steered, ask_about_list, stop)
"""The questions at a turn's end, in this order. A step that spends a request or a cycle comes before `stop`,
and says by itself where a gate would answer first."""
