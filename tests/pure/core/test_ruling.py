"""The whole truth table of what follows the end of a turn."""

from itertools import product
from typing import Any, get_args

import pytest
from agents import settings

from wakeloop.loop.case import Case, Costs
from wakeloop.loop.ruling import Ruling, rule

DONE = [  # what a reply or a tool has brought about: `end`, `again`, `asking`
    {},
    {"end": "malformed_calls"},
    {"end": "looping"},
    {"end": "refused", "asking": "explain"},
    {"end": "token_budget"},  # in mid-turn, or a subagent's result that is not answered
    {"end": "cost_budget", "asking": "report"},
    {"end": "truncated", "again": "cut"},
    {"again": "unread", "asking": "explain"},
    {"bad_reply_end": "truncated"},  # the last of bad replies, with open items
    {"lacks_list": True},
    {"again": "empty"},
    {"again": "format: x", "asking": "format"},
    {"asking": "format"},
    {"asking": "explain"},
]
GUARD = [
    (0, 0, "proceed"),
    (1, 0, "proceed"),
    (1, 1, "proceed"),
    (2, 2, "block"),
    (2, 1, "block"),
    (0, 0, "block"),
]
STEPS = [2, 3, 4, 5]
FLAGS = (
    "open",
    "owed",
    "waiting",
    "drained",
    "spent",
    "repeated",
    "idle",
    "suppressed",
    "called",
    "unformatted",
    "over",
)
BORNE = ("disabled", "drained", "step_limit", "wake_budget", "repeated_reply", "stalled")
BUDGETS = ("request_budget", "token_budget", "cost_budget", "time_budget")


def few(steps: int, needed: int, flag: dict[str, bool]) -> str | None:
    """What keeps one more request from being made."""
    spent = "time_budget" if flag["over"] else None
    return "drained" if flag["drained"] else "step_limit" if steps < needed else spent


def first_gate(steps: int, switches: Any, flag: dict[str, bool]) -> str:
    """The gates behind the first two, in their order; none of them answers where it wakes."""
    auto, budget = switches
    gates = {
        "disabled": not auto or not budget,
        "drained": flag["drained"],
        "step_limit": steps < 5,
        "time_budget": flag["over"],
        "wake_budget": flag["spent"],
        "repeated_reply": flag["repeated"],
        "stalled": flag["idle"],
        "wake": True,
    }
    return next(name for name, answers in gates.items() if answers)


def guarded(reason: str, steps: int, guard: Any, flag: dict[str, bool]) -> str:
    """What the guard makes of an end in which it has a say."""
    allowed, retries, exhausted = guard
    if retries < allowed:
        return few(steps, 4, flag) or "correct"
    if not allowed or exhausted == "proceed" or flag["drained"]:
        return reason
    return few(steps, 3, flag) or "explain"


def wanted(done: Any, steps: int, guard: Any, switches: Any, flag: dict[str, bool]) -> str:
    """Read the rules aloud, the first that holds; then whether the closing request is made."""
    ruling = unreported(done, steps, guard, switches, flag)
    if ruling in BORNE and "bad_reply_end" in done:
        return str(done["bad_reply_end"])
    reports = flag["open"] and switches[0] and steps >= 3 and not flag["drained"]
    reports = reports and not flag["repeated"] and not flag["idle"]  # they stand for `reported` and `stop`
    return "report" if ruling in BUDGETS and reports else ruling


def unreported(done: Any, steps: int, guard: Any, switches: Any, flag: dict[str, bool]) -> str:
    """The same, were there no closing request."""
    corrected = "time_budget" if flag["over"] else "stalled"
    reason = corrected if flag["called"] else first_gate(steps, switches, flag)
    guards = reason in ("wake_budget", "repeated_reply", "stalled") or (reason == "disabled" and switches[0])
    has_a_say = reason != "time_budget" and flag["called"]
    has_a_say = has_a_say or (not flag["called"] and guards and flag["open"] and not flag["suppressed"])
    closed = not flag["open"] and not flag["owed"]
    may_be_corrected = flag["open"] and switches[0] and not flag["suppressed"] and guard[1] < guard[0]
    may_ask = switches[0] and not flag["suppressed"]
    rules = (
        (done.get("end") == "looping" and flag["waiting"], "waiting"),
        (
            done.get("end") == "looping" and may_be_corrected and steps >= 4 and not flag["drained"],
            "correct",
        ),
        (done.get("end") in BUDGETS and flag["waiting"], "waiting"),
        (done.get("end"), done.get("end")),
        (done.get("asking") == "explain", "guard_blocked"),
        (done.get("again") and flag["over"], "waiting" if flag["waiting"] else "time_budget"),
        (done.get("again"), few(steps, 4, flag) or "retry"),
        (done.get("asking") == "format", "settled"),
        (flag["waiting"], "waiting"),
        (done.get("lacks_list") and may_ask and few(steps, 4, flag) is None, "ask"),
        (closed and flag["unformatted"], few(steps, 3, flag) or "format"),
        (closed, "settled"),
        (has_a_say, guarded(reason, steps, guard, flag)),
        (True, reason),
    )
    return next(str(ruling) for holds, ruling in rules if holds)


def asks(done: Any) -> bool:
    """Whether the guard may be asked at all."""
    return "end" not in done and done.get("asking") != "explain"


@pytest.mark.parametrize(
    ("done", "guard"), [(d, g) for d in DONE for g in (GUARD if asks(d) else GUARD[3:4])], ids=repr
)
def test_every_ruling(done: Any, guard: Any) -> None:
    seen = set()
    for switches in product([True, False], [0, 25]):
        auto, budget = switches
        allowed, retries, exhausted = guard
        loop = settings(
            auto_continue=auto, max_wake_cycles=budget, guard_retries=allowed, on_guard_exhausted=exhausted,
            stop_on_repeat=True, max_idle_wakes=3,
        )  # fmt: skip
        silent = loop.model_copy(update={"on_budget": "stop"})
        for steps, values in product(STEPS, product([False, True], repeat=len(FLAGS))):
            flag = dict(zip(FLAGS, values, strict=True))
            if flag["over"] and flag["spent"]:  # of two gates in a row one is enough
                continue
            case = Case(
                open=int(flag["open"]), owed=flag["owed"], waiting=flag["waiting"], drained=flag["drained"],
                spent_budget="time_budget" if flag["over"] else None, reported=flag["repeated"],
                settings=silent if flag["idle"] else loop, wakes=25 if flag["spent"] else 24,
                idle_wakes=3 if flag["idle"] else 2,
                repeated=flag["repeated"], suppressed=flag["suppressed"], unformatted=flag["unformatted"],
                called_by="stalled" if flag["called"] else None, retries=retries, steps_left=steps, **done,
            )  # fmt: skip
            flag["spent"] = flag["spent"] or not budget
            ruling = rule(case)
            assert ruling == wanted(done, steps, guard, switches, flag), case
            seen.add(ruling)
    assert seen <= set(get_args(Ruling))


def test_what_a_ruling_costs_is_a_value() -> None:
    cheap = Costs(wake=2, correction=1, request=1)
    stalled = {"open": 1, "settings": settings(), "idle_wakes": 3}
    assert rule(Case(open=1, settings=settings(), steps_left=2)) == "step_limit"
    assert rule(Case(open=1, settings=settings(), steps_left=2, costs=cheap)) == "wake"
    assert rule(Case(**stalled, steps_left=3, called_by="stalled")) == "step_limit"
    assert rule(Case(**stalled, steps_left=3, called_by="stalled", costs=cheap)) == "correct"
