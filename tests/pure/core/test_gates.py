"""Truth tables of the gates and of what they read."""

from typing import Any, get_args

import pytest
from agents import settings, todo
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from wakeloop.loop.case import Case
from wakeloop.loop.extra_requests import is_guarded
from wakeloop.loop.gates import ENDINGS, GATES, LIMITS, find_first_gate
from wakeloop.loop.progress import fingerprint_call, fingerprint_reply, has_progressed, remember_fingerprints
from wakeloop.loop.replies import count_stale_rounds, is_nag_due
from wakeloop.loop.turn import choose_state
from wakeloop.stream import Budget, EndReason, StopReason

STOPS: dict[str, dict[str, Any]] = {  # what makes each gate stop the run by itself, in gate order
    "waiting": {"waiting": True},
    "blocked": {"open": 0, "gave_up": True},
    "settled": {"open": 0, "wrote": True},
    "answered": {"open": 0},
    "disabled": {"settings": settings(auto_continue=False, stop_on_repeat=True)},
    "drained": {"drained": True},
    "step_limit": {"steps_left": 4},
    **{name: {"spent_budget": name} for name in LIMITS},
    "wake_budget": {"wakes": 25},
    "repeated_reply": {"repeated": True},
    "stalled": {"idle_wakes": 5},
}
GOES_ON: dict[str, Any] = {
    "open": 1,
    "settings": settings(stop_on_repeat=True),
    "steps_left": 5,
    "wakes": 24,
    "idle_wakes": 4,
}


def test_the_types_list_the_gates_and_the_endings_in_order() -> None:
    gates = [gate.name for gate in GATES]
    assert gates.count("waiting") == 2  # something else will wake it, or somebody has to speak first
    assert list(dict.fromkeys(gates)) == list(get_args(StopReason)) == list(STOPS)
    assert list(ENDINGS) == list(get_args(EndReason))
    assert sorted(LIMITS) == sorted(get_args(Budget))


def test_nothing_stops_a_case_that_simply_continues() -> None:
    assert find_first_gate(Case(**GOES_ON)) is None


def test_the_first_gate_that_stops_ends_the_run() -> None:
    """Each gate by itself, and combined with each later one."""
    for place, name in enumerate(STOPS):
        assert find_first_gate(Case(**{**GOES_ON, **STOPS[name]})) == name
        for later in list(STOPS)[place + 1 :]:
            if not {name, later} <= set(LIMITS):  # only one budget can be the first that is spent
                assert find_first_gate(Case(**{**GOES_ON, **STOPS[later], **STOPS[name]})) == name, later


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"open": 0, "owed": True}, None),
        ({"open": 0, "owed": False}, "answered"),
        ({"open": 0, "owed": True, "wrote": True, "gave_up": True}, None),
        ({"open": 0, "wrote": True, "gave_up": True}, "blocked"),
        ({"wrote": True, "gave_up": True}, None),
        ({"settings": settings(max_wake_cycles=0)}, "disabled"),
        ({"settings": settings(auto_continue=False, max_wake_cycles=0)}, "disabled"),
        ({"steps_left": 5}, None),
        ({"steps_left": 4}, "step_limit"),
        ({"spent_budget": "cost_budget"}, "cost_budget"),
        ({"settings": settings(max_wake_cycles=3), "wakes": 2}, None),
        ({"settings": settings(max_wake_cycles=3), "wakes": 3}, "wake_budget"),
        ({"settings": settings(max_wake_cycles=3), "wakes": 4}, "wake_budget"),
        ({"settings": settings(max_wake_cycles=3), "wakes": 4, "earned": 2}, None),
        ({"settings": settings(max_wake_cycles=3), "wakes": 5, "earned": 2}, "wake_budget"),
        ({"settings": settings(stop_on_repeat=False), "repeated": True}, None),
        ({"settings": settings(max_idle_wakes=0), "idle_wakes": 99}, None),
        ({"settings": settings(max_idle_wakes=1), "idle_wakes": 1}, "stalled"),
    ],
)
def test_each_gate_at_its_boundary(change: dict[str, Any], reason: str | None) -> None:
    assert find_first_gate(Case(**{**GOES_ON, **change})) == reason


def test_which_endings_the_guard_may_correct() -> None:
    budget = settings(max_wake_cycles=0)
    for reason in get_args(EndReason):
        allowed = reason in ("disabled", "wake_budget", "repeated_reply", "stalled")
        assert is_guarded(Case(open=1, settings=budget), reason) is allowed
        assert is_guarded(Case(open=0, settings=budget), reason) is False


def test_no_correction_if_auto_continue_is_off() -> None:
    assert is_guarded(Case(open=1, settings=settings(auto_continue=False)), "disabled") is False


def test_the_reason_a_session_yields_with() -> None:
    same = dict.fromkeys(("waiting", "interrupted"), "waiting") | {
        "failed": "failed",
        "cancelled": "cancelled",
    }
    done = dict.fromkeys(("blocked", "settled", "answered", "goal_met"), "dormant")
    for reason in get_args(EndReason):
        assert choose_state(reason, 0) == same.get(reason, "dormant")
        assert choose_state(reason, 2) == (same | done).get(reason, "idle")


@pytest.mark.parametrize(
    ("wrote", "open_", "when", "count"),
    [
        (True, 1, "open", 0),
        (True, 0, "open", 0),
        (True, 1, "always", 0),
        (False, 1, "open", 5),
        (False, 0, "open", 4),
        (False, 1, "always", 5),
        (False, 0, "always", 5),
    ],
)
def test_rounds_without_a_write(wrote: bool, open_: int, when: str, count: int) -> None:
    assert count_stale_rounds(4, wrote=wrote, open_count=open_, settings=settings(nag_when=when)) == count


@given(st.integers(0, 12), st.integers(0, 6), st.integers(0, 60))
def test_a_nag_comes_at_after_and_every(after: int, every: int, stale: int) -> None:
    points = {after, *(range(after + every, 100, every) if every else ())} if after else set()
    assert is_nag_due(stale, settings(nag_after=after, nag_every=every)) is (stale in points)


@pytest.mark.parametrize("worked", [False, True])
@pytest.mark.parametrize(
    ("statuses", "open_before", "peak", "progress"),
    [
        (["pending", "pending"], [1, 2], 0, False),
        (["completed", "pending"], [1, 2], 0, True),
        (["blocked", "pending"], [1, 2], 0, True),
        (["cancelled", "pending"], [1, 2], 0, True),
        (["completed", "pending"], [1, 2], 1, False),
        (["completed", "pending"], [2], 0, False),
        (["completed", "completed"], [2], 1, True),
        (["in_progress", "pending"], [1, 2], 0, False),
        ([], [1, 2], 0, False),
    ],
)
def test_what_counts_as_progress(
    statuses: list[str], open_before: list[int], peak: int, progress: bool, worked: bool
) -> None:
    items: Any = [todo(n, "x", status) for n, status in enumerate(statuses, 1)]
    assert has_progressed(items, open_before, peak, worked=worked) is (worked or progress)


def test_a_call_is_identified_by_name_and_arguments() -> None:
    assert fingerprint_call("a", {"x": 1, "y": 2}) == fingerprint_call("a", {"y": 2, "x": 1})
    assert fingerprint_call("a", {"x": 1}) != fingerprint_call("b", {"x": 1})
    assert fingerprint_call("a", {"x": 1}) != fingerprint_call("a", {"x": 2})
    assert fingerprint_call("a", {"x": "\ud800"})  # an encoder would reject it


@given(st.lists(st.lists(st.integers(0, 9).map(str), max_size=4), max_size=8))
def test_something_new_is_new_only_once(rounds: list[list[str]]) -> None:
    seen, known = "", set()
    for names in rounds:
        prints = [fingerprint_call(name, {}) for name in names]
        seen, new = remember_fingerprints(seen, prints)
        assert new == set(prints) - known
        known |= set(prints)


def test_the_record_of_seen_calls_is_bounded() -> None:
    seen, _ = remember_fingerprints("", [fingerprint_call(str(n), {}) for n in range(500)])
    assert len(seen) == 64 * 3
    assert remember_fingerprints(seen, [fingerprint_call("499", {})])[1] == set()


def test_a_reply_repeats_another_only_over_the_same_list() -> None:
    said, other = [AIMessage("x")], [AIMessage("y")]
    assert fingerprint_reply(said, [todo(1, "a")]) == fingerprint_reply(said, [todo(1, "a")])
    assert fingerprint_reply(said, [todo(1, "a")]) != fingerprint_reply(said, [todo(1, "a", "completed")])
    assert fingerprint_reply(said, [todo(1, "a")]) != fingerprint_reply(other, [todo(1, "a")])
    assert fingerprint_reply([], [todo(1, "a")]) != fingerprint_reply(said, [todo(1, "a")])
