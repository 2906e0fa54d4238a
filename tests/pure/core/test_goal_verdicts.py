"""Rule 24: what `done_when` may say, and when it is asked."""

from dataclasses import replace
from typing import Any

import pytest

from wakeloop import ArgumentError, GoalError, impossible, preset, wait
from wakeloop.loop.case import Case
from wakeloop.loop.gates import ENDINGS
from wakeloop.loop.goal import (
    LONGEST_REASON,
    asks_goal,
    begin_goal,
    is_unmet,
    note_verdict,
    read_verdict,
    strip_changing_parts,
)
from wakeloop.loop.ruling import rule

SAME = [
    ("3 failed, 2 passed in 0.41s", "1 failed, 4 passed in 12.03 seconds"),
    ("/tmp/run-1/test_a.py:12: AssertionError", "/tmp/run-2/test_b.py:7: AssertionError"),
    (r"C:\runs\1\a.log is empty", r"D:\other\b.log is empty"),
    ("at 12:03:04 it failed", "at 9:30 PM it failed"),
    ("Sun Nov 29 21:03:04 2026 failed", "Mon Nov 30 01:13:00 2026 failed"),
    ("2026-11-29T21:03:04Z failed", "2026-12-01T01:00:00Z failed"),
    ("<A object at 0x7f3a2b> is None", "<A object at 0x7fffff> is None"),
    ("commit 1a2b3c4 fails", "commit 99f00d1 fails"),
    ("a  b\n c", "a b c"),
]
OTHER = [
    ("FAILED tests/test_a.py::test_x", "FAILED tests/test_a.py::test_y"),
    ("report is missing", "report is empty"),
    ("KeyError: name", "ValueError: name"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_numbers_times_and_paths_are_ignored_in_a_comparison(first: str, second: str) -> None:
    assert strip_changing_parts(first) == strip_changing_parts(second)


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_words_are_compared(first: str, second: str) -> None:
    assert strip_changing_parts(first) != strip_changing_parts(second)


def test_a_long_reason_is_cut_and_compared_quickly() -> None:
    notes: Any = {}
    assert note_verdict(notes, read_verdict("a" * 1_000_000))
    assert len(notes["missing"]) == LONGEST_REASON
    assert not note_verdict(notes, read_verdict("a" * 1_000_001))


def test_what_a_verdict_leaves() -> None:
    notes: Any = {}
    assert note_verdict(notes, read_verdict("a\0 is missing \ud800"))
    assert notes["missing"] == "a is missing \ufffd"
    assert is_unmet(notes)
    assert note_verdict(notes, read_verdict(" "))
    assert not note_verdict(notes, read_verdict("no reason given"))
    assert notes["missing"] == "no reason given"
    assert not note_verdict(notes, impossible("no key"))
    assert (notes["goal"], notes["missing"]) == ("impossible", "no key")
    assert not note_verdict(notes, read_verdict(None))
    assert ("missing" in notes, notes["goal"]) == (False, "met")


@pytest.mark.parametrize("given", [True, False, 0, [], {}, object(), b"no"])
def test_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(GoalError, match="must return None if the goal is met, a string"):
        read_verdict(given)


@pytest.mark.parametrize("why", ["", " ", None, 3])
def test_a_reason_is_required(why: Any) -> None:
    for make in (impossible, wait):
        with pytest.raises(ArgumentError, match="needs a reason in words"):
            make(why)


@pytest.mark.parametrize("seconds", [-1, 1e300, float("inf"), float("nan"), "60", True])
def test_seconds_must_be_a_number(seconds: Any) -> None:
    with pytest.raises(ArgumentError, match="must be a number of seconds"):
        wait("the build", seconds)
    assert (wait("the build").seconds, wait("the build", 0).seconds) == (60, 0)


@pytest.mark.parametrize(
    ("before", "by_peers", "says_nothing", "after"),
    [
        (None, False, False, "due"),
        ("met", False, True, "due"),
        ("unmet", False, True, "unmet"),
        ("unmet", False, False, "due"),
        ("unmet", True, False, "unmet"),
        ("due", True, False, "due"),
        ("met", True, False, None),
        ("impossible", True, False, None),
        ("wait", True, False, "wait"),
        (None, True, False, None),
    ],
)
def test_how_an_activation_begins(before: Any, by_peers: bool, says_nothing: bool, after: Any) -> None:
    notes: Any = {"goal": before} if before else {}
    begin_goal(notes, has_goal=True, by_peers=by_peers, says_nothing=says_nothing)
    assert notes.get("goal") == after
    begin_goal(notes, has_goal=False, by_peers=by_peers, says_nothing=says_nothing)
    assert "goal" not in notes


TURN = Case(open=0, settings=preset("wakeloop"), goal="due")
ASKED: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"open": 1}, True),
    ({"goal": None}, False),
    ({"goal": "met"}, False),
    ({"judged": True}, False),
    ({"waiting": True}, False),
    ({"drained": True}, False),
    ({"steps_left": 4}, False),
    ({"steps_left": 4, "end": "request_budget"}, True),
    ({"again": "empty"}, False),
    ({"again": "empty", "spent_budget": "token_budget"}, True),
    ({"idle_wakes": 5}, True),
    ({"wakes": 25}, True),
    ({"bad_reply_end": "empty_reply", "wakes": 25}, True),
    *(({"asking": asking}, False) for asking in ("explain", "report", "format")),
    *(({"end": name}, ending.after_goal) for name, ending in ENDINGS.items()),
]


@pytest.mark.parametrize(("changes", "asked"), ASKED)
def test_when_it_is_asked(changes: dict[str, Any], asked: bool) -> None:
    assert asks_goal(replace(TURN, **changes)) is asked


@pytest.mark.parametrize(
    ("goal", "ruling"),
    [("met", "goal_met"), ("impossible", "blocked"), ("wait", "waiting"), ("unmet", "wake")],
)
def test_what_the_verdict_decides(goal: Any, ruling: str) -> None:
    judged = replace(TURN, goal=goal, judged=True)
    assert rule(judged) == ruling
    spent = replace(judged, end="request_budget", open=1)
    assert rule(spent) == (ruling if goal != "unmet" else "report")


def test_the_endings_before_which_it_is_not_asked() -> None:
    kept = {"cancelled", "drained", "failed", "goal_met", "guard_blocked", "handed_over", "interrupted"}
    kept |= {"refused", "step_limit"}
    assert {name for name, one in ENDINGS.items() if not one.after_goal} == kept
