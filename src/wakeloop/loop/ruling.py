"""What follows the end of a turn: the wake loop, its budget.

A turn is over when the model replies without a tool call. Then the gates are asked in their order. If one
answers, the run ends with its name, once the guard has had its say; if none does, the graph wakes the model,
which spends one of the activation's `max_wake_cycles`: `wake_budget` is the gate that bounds the loop.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from wakeloop.loop import extra_requests as extra
from wakeloop.loop.case import Case
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
    return "report" if ruling in LIMITS and extra.may_report(case) else ruling


def rule_without_report(case: Case) -> Ruling:
    """Say what follows without the closing request before an end by a spent budget."""
    if (by_goal := extra.end_by_goal(case)) is not None:
        return by_goal
    if (end := find_earlier_end(case)) is not None:
        return "correct" if end == "looping" and extra.may_correct_loop(case) else end
    if case.asking == "explain":
        return "guard_blocked"
    if case.again is not None:
        return extra.find_obstacle(case, case.costs.correction) or "retry"
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
    return extra.GOAL_ENDS.get(case.goal) or find_first_gate(replace(case, open=0, owed=False, waiting=False))


def continue_steered(case: Case) -> Ruling | None:
    """Continue with the words that a person has steered in since the last request."""
    return "steer" if case.steered and extra.may_steer(case) else None


def stop(case: Case) -> Ruling | None:
    """Ask the gates. Where one answers, the guard may have its say before the run ends."""
    reason = find_stop(case)
    if reason is None:
        return None
    return (
        extra.correct_or_end(case, reason)
        if extra.is_guarded(case, reason)
        else extra.format_or_end(case, reason)
    )


STEPS: tuple[Callable[[Case], Ruling | None], ...] = (
    end_formatted,
    continue_steered,
    extra.ask_about_list,
    stop,
)
"""The questions at a turn's end, in this order. A step that spends a request or a cycle comes before `stop`,
and says by itself where a gate would answer first."""
