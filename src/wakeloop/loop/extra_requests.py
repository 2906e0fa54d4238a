"""Extra requests that may follow a turn or precede an end."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from wakeloop.loop.case import Case
from wakeloop.loop.gates import DONE, GUARDED, is_done
from wakeloop.stream import EndReason, StopReason

GOAL_ENDS: Mapping[str | None, EndReason] = MappingProxyType(
    {"met": "goal_met", "impossible": "blocked", "wait": "waiting"}
)
"""How a run ends by what `done_when` says."""


def find_obstacle(case: Case, steps: int) -> StopReason | None:
    """Return what forbids one more request: a drain, fewer than `steps` supersteps, or a spent budget."""
    if case.drained:
        return "drained"
    return "step_limit" if case.steps_left < steps else case.spent_budget


def may_steer(case: Case) -> bool:
    """Tell whether a person's words that have arrived meanwhile may continue the run (gate 2).

    Not where something has ended it or asks again, and not where one more turn would be one too many: then
    they stay for the next run.
    """
    answered = case.end or case.again or case.asking or case.closed
    return not answered and not find_obstacle(case, case.costs.correction)


def format_or_end(case: Case, reason: EndReason) -> Literal["format", EndReason]:
    """Ask for the answer in the caller's format where the run ends with one."""
    if reason in DONE and case.unformatted:
        return find_obstacle(case, case.costs.request) or "format"
    return reason


def end_by_goal(case: Case) -> Literal["format", EndReason] | None:
    """Return how the run ends by the verdict on its goal; None where it does not (rule 24).

    The answer is asked for in the caller's format, unless a spent budget, a drain or the steps forbid that:
    the goal is met all the same.
    """
    if not case.judged or case.goal not in GOAL_ENDS:
        return None
    asked = format_or_end(case, GOAL_ENDS[case.goal])
    return asked if asked == "format" else GOAL_ENDS[case.goal]


def ask_about_list(case: Case) -> Literal["ask", "audit"] | None:
    """Ask what is left after a turn that worked without any list, or about suspects (rule 25).

    This comes before the gates: without a list nothing is open, and nobody knows what is missing. It takes
    steps for one more turn.
    """
    quiet = case.suppressed or case.waiting or not case.settings.auto_continue
    if quiet or find_obstacle(case, case.costs.correction):
        return None
    if case.lacks_list:
        return "ask"
    return "audit" if case.suspects and is_done(case) else None


def may_correct_loop(case: Case) -> bool:
    """Tell whether a correction follows rounds without anything new (rule 18)."""
    if not case.open or case.suppressed or not case.settings.auto_continue:
        return False
    return case.retries < case.settings.guard_retries and not find_obstacle(case, case.costs.correction)


def may_report(case: Case) -> bool:
    """Tell whether the one closing request may follow the end by a budget.

    The budget that is spent does not forbid this request: it is the one that is made in spite of it.
    """
    if not case.open or case.reported or case.drained or not case.settings.auto_continue:
        return False
    return case.settings.on_budget == "report" and case.steps_left >= case.costs.request


def is_guarded(case: Case, reason: EndReason) -> bool:
    """Tell whether the guard has a say in this end."""
    if case.called_by is not None:
        return reason == case.called_by
    if case.suppressed or not case.open:
        return False
    return reason in GUARDED and case.settings.auto_continue


def correct_or_end(case: Case, reason: EndReason) -> Literal["correct", "explain", EndReason]:
    """Ask the model to update its list while retries last, then end or demand an explanation."""
    allowed = case.settings.guard_retries
    if case.retries < allowed:
        return find_obstacle(case, case.costs.correction) or "correct"
    if not allowed or case.settings.on_guard_exhausted == "proceed" or case.drained:
        return reason
    return find_obstacle(case, case.costs.request) or "explain"
