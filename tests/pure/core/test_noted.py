"""What a reply means for the loop, how an activation begins, what an ending leaves: plain values."""

from typing import Any

import pytest
from agents import settings, todo
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from wakeloop.loop.activation import begin_activation, begin_wake, continue_activation
from wakeloop.loop.case import Costs
from wakeloop.loop.progress import count_settled, fingerprint_call, judge_wake, note_progress
from wakeloop.loop.replies import (
    ReplyFacts,
    find_external_calls,
    is_malformed,
    note_format_reply,
    note_reply,
    note_retry,
    take_bad_reply_end,
)
from wakeloop.loop.spending import report_spent
from wakeloop.loop.turn import build_session, drop_run_notes
from wakeloop.loop.waits import find_waiting_party
from wakeloop.testing import calls

TEXT, EMPTY, CUT = ReplyFacts(text="x"), ReplyFacts(kind="empty"), ReplyFacts(text="x", cut=True)
PRINTED = ReplyFacts(text="look({})", kind="printed")
COPIED = ReplyFacts(text="Stored.", kind="copied")
CALL, WRITE = ReplyFacts(calls=1), ReplyFacts(calls=1, wrote=True, todo_calls=("1",))
BAD = ReplyFacts(calls=1, faults={"1": "Error"})
CUT_CALL = ReplyFacts(calls=1, cut=True, faults={"1": "Error"})
LAST = {"bad_replies": 4}  # four bad replies are asked again


def after(
    notes: Any, reply: ReplyFacts, *, open_count: int = 1, steps_left: int = 99, **more: Any
) -> dict[str, Any]:
    return dict(note_reply(notes, reply, settings(**more), open_count=open_count, steps_left=steps_left))


@pytest.mark.parametrize(
    ("notes", "reply", "open_count", "new"),
    [
        # a turn's end
        ({}, TEXT, 1, {"spoke": True}),
        ({}, TEXT, 0, {"spoke": True}),
        ({"bad_replies": 1}, TEXT, 1, {"spoke": True}),
        ({"again": "cut", "ruling": "retry", "tail": "t"}, TEXT, 1, {"spoke": True, "tail": "t"}),
        ({"nag": True, "todo_calls": ["1"], "faults": {"2": "x"}}, TEXT, 1, {"spoke": True}),
        # an empty reply
        ({}, EMPTY, 1, {"emptied": True, "again": "empty"}),
        ({"bad_replies": 4}, EMPTY, 1, {"bad_replies": 4, "emptied": True, "again": "empty"}),
        ({"emptied": True, "bad_replies": 1}, EMPTY, 1, {"emptied": True}),
        ({"goal": "due"}, EMPTY, 0, {"goal": "due", "emptied": True, "again": "empty"}),
        ({"goal": "due", "emptied": True}, EMPTY, 0, {"goal": "due", "emptied": True}),
        ({"spoke": True}, EMPTY, 0, {"spoke": True}),
        ({"wrote": True}, EMPTY, 0, {"wrote": True}),
        ({}, EMPTY, 0, {"emptied": True, "bad_replies": 1, "again": "empty"}),
        ({"bad_replies": 3}, EMPTY, 0, {"emptied": True, "bad_replies": 4, "again": "empty"}),
        (
            {"emptied": True, "bad_replies": 1},
            EMPTY,
            0,
            {"emptied": True, "bad_replies": 2, "again": "silent"},
        ),
        (LAST, EMPTY, 0, {"emptied": True, "bad_replies": 5, "again": "empty", "end": "empty_reply"}),
        # one that is not an answer
        ({}, PRINTED, 0, {"bad_replies": 1, "again": "printed"}),
        (LAST, PRINTED, 1, {"bad_replies": 5, "again": "printed", "end": "malformed_calls"}),
        ({}, COPIED, 1, {"bad_replies": 1, "again": "copied"}),
        ({"bad_replies": 1, "again": "copied"}, COPIED, 1, {"bad_replies": 2, "again": "copied"}),  # another
        # a cut one
        ({}, CUT, 1, {"bad_replies": 1, "again": "cut"}),
        ({"bad_replies": 1}, CUT, 0, {"bad_replies": 2, "again": "cut"}),
        (LAST, CUT, 1, {"bad_replies": 5, "again": "cut", "end": "truncated"}),
        ({}, ReplyFacts(cut=True), 0, {"bad_replies": 1, "again": "cut"}),
        # a refusal, whatever is open; a reply with a call that the provider could not read
        (LAST, ReplyFacts(text="No.", refused=True), 1, {"bad_replies": 4, "end": "refused"}),
        ({"again": "cut"}, ReplyFacts(refused=True), 0, {"end": "refused"}),
        ({}, ReplyFacts(unfit=True), 1, {"bad_replies": 1, "again": "unread"}),
        (LAST, ReplyFacts(unfit=True), 0, {"bad_replies": 5, "again": "unread", "end": "malformed_calls"}),
        ({}, ReplyFacts(text="x", unfit=True), 1, {"spoke": True}),
        # a round
        ({}, CALL, 1, {"todo_stale_iterations": 1, "nag": False}),
        ({"bad_replies": 2}, CALL, 0, {"todo_stale_iterations": 0, "nag": False}),
        ({"todo_stale_iterations": 4}, CALL, 1, {"todo_stale_iterations": 5, "nag": True}),
        ({"todo_stale_iterations": 4}, CALL, 0, {"todo_stale_iterations": 4, "nag": False}),
        ({"todo_stale_iterations": 5}, CALL, 0, {"todo_stale_iterations": 5, "nag": False}),
        (
            {"todo_stale_iterations": 4, "todo_guard_suppressed": True},
            CALL,
            1,
            {"todo_stale_iterations": 5, "todo_guard_suppressed": True, "nag": False},
        ),
        (
            {"todo_stale_iterations": 4},
            WRITE,
            1,
            {"todo_calls": ["1"], "todo_stale_iterations": 0, "nag": False, "writes": 1},
        ),
        ({}, BAD, 0, {"bad_replies": 1, "faults": {"1": "Error"}, "todo_stale_iterations": 0, "nag": False}),
        (
            LAST,
            BAD,
            0,
            {
                "bad_replies": 5,
                "faults": {"1": "Error"},
                "todo_stale_iterations": 0,
                "nag": False,
                "end": "malformed_calls",
            },
        ),
        (
            LAST,
            CUT_CALL,
            0,
            {
                "bad_replies": 5,
                "faults": {"1": "Error"},
                "todo_stale_iterations": 0,
                "nag": False,
                "end": "truncated",
            },
        ),
        (
            {"bad_replies": 1},
            ReplyFacts(calls=2, faults={"1": "Error"}),
            0,
            {"faults": {"1": "Error"}, "todo_stale_iterations": 0, "nag": False},
        ),
    ],
)
def test_how_each_reply_is_noted(notes: Any, reply: ReplyFacts, open_count: int, new: Any) -> None:
    before = {**notes}
    assert after(notes, reply, open_count=open_count) == new
    assert notes == before


@pytest.mark.parametrize(("steps_left", "cut_off"), [(6, False), (5, True)])
def test_a_round_needs_steps(steps_left: int, cut_off: bool) -> None:
    assert (after({}, CALL, steps_left=steps_left).get("end") == "step_limit") is cut_off
    assert after({}, TEXT, steps_left=steps_left) == {"spoke": True}
    assert after(LAST, BAD, steps_left=steps_left)["end"] == "malformed_calls"
    cheap = note_reply({}, CALL, settings(), open_count=1, steps_left=steps_left, costs=Costs(round=5))
    assert "end" not in cheap


def test_no_reply_is_asked_again_if_no_retries_are_allowed() -> None:
    assert after({}, CUT, reply_retries=0)["end"] == "truncated"
    assert after({}, EMPTY, reply_retries=0) == {}
    assert after({}, BAD, reply_retries=0)["end"] == "malformed_calls"


def test_as_many_bad_rounds_as_retries_do_not_end_the_run() -> None:
    assert after({"bad_replies": 3}, BAD)["bad_replies"] == 4
    assert "end" not in after({"bad_replies": 3}, BAD)
    assert "end" not in after({}, CALL, reply_retries=0)


def test_writes_are_counted() -> None:
    assert after({}, WRITE)["writes"] == 1
    assert after({"writes": 1}, WRITE)["writes"] == 2
    assert after({"writes": 1}, CALL)["writes"] == 1


@pytest.mark.parametrize(
    ("notes", "reply", "approve", "plan"),
    [
        ({}, WRITE, "first", "due"),
        ({"planned": True}, WRITE, "first", None),
        ({"planned": True}, WRITE, "changes", "due"),
        ({}, WRITE, "off", None),
        ({}, CALL, "changes", None),
    ],
)
def test_a_write_notes_that_a_plan_may_need_approval(
    notes: Any, reply: ReplyFacts, approve: str, plan: Any
) -> None:
    assert after(notes, reply, approve_plan=approve).get("plan") == plan


@pytest.mark.parametrize(
    ("notes", "reply", "setting", "unlisted"),
    [
        ({}, CALL, "ask", "ran"),
        ({}, CALL, "accept", None),
        ({}, WRITE, "ask", None),
        ({}, BAD, "ask", None),
        ({}, CUT_CALL, "ask", None),
        ({}, ReplyFacts(calls=1, cut=True), "ask", None),
        ({}, ReplyFacts(calls=2, faults={"1": "Error"}), "ask", "ran"),
        ({"unlisted": "asked"}, CALL, "ask", "asked"),
    ],
)
def test_a_valid_call_without_a_list_is_noted(
    notes: Any, reply: ReplyFacts, setting: str, unlisted: Any
) -> None:
    assert after(notes, reply, on_no_list=setting).get("unlisted") == unlisted


def test_each_external_call_says_why_it_does_not_run_or_waits() -> None:
    made = calls(("look", {}, "1"), ("mail", {}, "2"), ("mail", {}, "3"), ("todo_list", {}, "4")).tool_calls
    notes: Any = {"todo_calls": ["4"], "faults": {"3": "Error: no"}, "reviews": {"2": {"on": "approval"}}}
    assert find_external_calls(notes, made) == [
        made[0],
        {**made[1], "review": {"on": "approval"}},
        {**made[2], "fault": "Error: no"},
    ]
    assert find_external_calls({}, made) == made


@pytest.mark.parametrize(
    ("notes", "open_count", "falls", "taken"),
    [
        ({"end": "truncated"}, 1, True, "truncated"),
        ({"end": "empty_reply"}, 1, True, "empty_reply"),
        ({"end": "malformed_calls"}, 2, True, "malformed_calls"),
        ({"end": "malformed_calls", "asking": None}, 1, True, "malformed_calls"),
        ({"end": "truncated"}, 0, True, None),
        ({"end": "truncated"}, 1, False, None),
        ({"end": "truncated", "asking": "explain"}, 1, True, None),
        ({"end": "refused"}, 1, True, None),
        ({"end": "step_limit"}, 1, True, None),
        ({}, 1, True, None),
    ],
)
def test_a_bad_replys_ending_is_cleared_if_it_ends_only_its_turn(
    notes: Any, open_count: int, falls: bool, taken: Any
) -> None:
    left: Any = {**notes, "again": "cut", "bad_replies": 5}
    before = {**left}
    assert take_bad_reply_end(left, settings(retries_fall=falls), open_count) == taken
    if taken:
        del before["end"], before["again"]
    assert left == before
    if not taken:
        return
    unasked: Any = dict(notes)  # a round: nothing is asked again
    assert take_bad_reply_end(unasked, settings(retries_fall=falls), open_count) == taken


def test_a_reply_is_malformed_if_every_call_is() -> None:
    said = (
        TEXT,
        EMPTY,
        CALL,
        BAD,
        ReplyFacts(calls=2, faults={"1": "x"}),
        ReplyFacts(calls=2, faults={"1": "x", "2": "y"}),
    )
    assert [is_malformed(one) for one in said] == [False, False, False, True, False, True]


def test_how_a_format_is_noted() -> None:
    notes: Any = {"again": "format: y", "asking": "format", "bad_replies": 4}
    old: Any = {"asking": "format", "bad_replies": 4}
    assert note_format_reply(notes, None, settings(), cut=False, refused=False) == old
    assert note_format_reply(notes, None, settings(), cut=False, refused=True) == {**old, "end": "refused"}
    bad = {"asking": "format", "bad_replies": 5, "again": "format: x"}
    for cut, end in ((False, "malformed_calls"), (True, "truncated")):
        assert note_format_reply(notes, "x", settings(), cut=cut, refused=False) == {**bad, "end": end}


def test_a_format_is_asked_again() -> None:
    assert note_retry({"tail": "t"}, "format: x", "truncated", settings()) == {
        "tail": "t", "bad_replies": 1, "again": "format: x",
    }  # fmt: skip
    assert (
        note_retry({"bad_replies": 4}, "format: x", "malformed_calls", settings())["end"] == "malformed_calls"
    )


# -- an activation ---------------------------------------------------------------------------------------

ITEMS: Any = [todo(1, "a"), todo(2, "b", "completed"), todo(3, "c", "blocked")]
NEW = {
    "todo_stale_iterations": 0, "todo_guard_suppressed": False, "wake_cycles": 0, "idle_wakes": 0,
    "todo_guard_retries": {}, "todo_guard_blocked": None, "todo_finalization_correction": None, "peak": 2,
}  # fmt: skip


def test_a_new_activation_keeps_what_outlives_one() -> None:
    assert begin_activation({}, ITEMS) == NEW
    spent: Any = {
        "wake_cycles": 3,
        "seen": "x",
        "spoke": True,
        "ruling": "stalled",
        "refused": "no",
        "peak": 9,
    }
    kept: Any = {"todo_stale_iterations": 4, "todo_guard_suppressed": True, "next_id": 4, "tail": "t"}
    assert begin_activation({**spent, **kept}, ITEMS) == {**NEW, **kept}


def test_a_subagents_result_counts_against_the_cycles() -> None:
    old: Any = {"wake_cycles": 1, "idle_wakes": 2, "refused": "no", "waking": True, "worked": True}
    went_on = continue_activation(old, ITEMS, settings(), waiting=False)
    assert went_on == {
        "wake_cycles": 2, "idle_wakes": 2, "end": None, "waking": True, "worked": False, "open_at_wake": [1],
    }  # fmt: skip
    assert continue_activation(old, ITEMS, settings(), waiting=True) == {
        k: v for k, v in old.items() if k != "refused"
    }
    assert continue_activation({}, ITEMS, settings(), waiting=False)["wake_cycles"] == 1
    spent = continue_activation(old, ITEMS, settings(max_wake_cycles=1), waiting=False)
    assert (spent["end"], spent["wake_cycles"], spent["worked"]) == ("wake_budget", 1, True)


def test_a_wake_begins_with_the_open_items() -> None:
    assert begin_wake({"seen": "x", "worked": True}, 4, ITEMS) == {
        "seen": "x", "wake_cycles": 4, "waking": True, "worked": False, "open_at_wake": [1],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("notes", "left"),
    [
        ({}, {}),
        ({"waking": False, "idle_wakes": 1}, {"idle_wakes": 1}),
        (
            {"waking": True, "worked": True, "idle_wakes": 2, "open_at_wake": [1]},
            {"worked": True, "idle_wakes": 0},
        ),
        (
            {"waking": True, "worked": False, "idle_wakes": 2, "open_at_wake": [1]},
            {"worked": False, "idle_wakes": 3},
        ),
        ({"waking": True, "open_at_wake": [2], "peak": 1}, {"peak": 1, "idle_wakes": 0}),
        ({"waking": True, "open_at_wake": [2], "peak": 2}, {"peak": 2, "idle_wakes": 1}),
        ({"waking": True, "open_at_wake": [2]}, {"idle_wakes": 0}),
        ({"waking": True}, {"idle_wakes": 1}),
    ],
)
def test_a_wake_is_judged_once(notes: Any, left: Any) -> None:
    judged = {**notes}
    judge_wake(judged, ITEMS)  # type: ignore[arg-type]
    assert judged == left
    assert count_settled(ITEMS) == 2


def called(*names: str) -> AIMessage:
    """Return a reply with calls; a call's name is its id, and `x2` is the call `x` again."""
    return calls(*((name.rstrip("2"), {}, name) for name in names))


def result(name: str, status: Any = "success") -> ToolMessage:
    return ToolMessage("ok", tool_call_id=name, status=status)


def prints(*names: str) -> str:
    return "".join(fingerprint_call(name, {}) for name in names)


ROUND = [called("x", "y", "todo"), result("x"), result("todo")]
GO, MORE = HumanMessage("go"), HumanMessage("next to a result")
SAID = AIMessage("another assistant's words, next to a result")


@pytest.mark.parametrize(
    ("notes", "messages", "new"),
    [
        ({}, [GO, *ROUND], {}),
        ({"waking": False}, [GO, *ROUND], {"waking": False}),
        ({"waking": True}, [GO], {"waking": True}),
        ({"waking": True}, [GO, called("x")], {"waking": True}),
        ({"seen": ""}, [GO, *ROUND], {"seen": prints("x"), "worked": True}),
        ({"waking": True}, [GO, *ROUND], {"waking": True, "seen": prints("x"), "worked": True}),
        ({"waking": True}, [GO, *ROUND, MORE], {"waking": True, "seen": prints("x"), "worked": True}),
        ({"waking": True}, [GO, *ROUND, SAID], {"waking": True, "seen": prints("x"), "worked": True}),
        ({"seen": prints("x")}, [GO, *ROUND], {"seen": prints("x")}),
        ({"seen": ""}, [GO, called("x"), result("x", "error")], {"seen": prints("x")}),
        (
            {"waking": True},
            [GO, called("x"), result("x"), called("x2"), result("x2")],
            {"waking": True, "seen": prints("x")},
        ),
        (
            {"waking": True},
            [GO, called("x"), called("x2"), result("x2")],
            {"waking": True, "seen": prints("x")},
        ),
        (
            {"waking": True},
            [GO, called("x"), result("x"), called("z"), result("z")],
            {"waking": True, "seen": prints("x", "z"), "worked": True},
        ),
        (
            {"waking": True},
            [called("z"), result("z"), SAID, GO, called("x"), result("x"), called("z2"), result("z2")],
            {"waking": True, "seen": prints("x", "z"), "worked": True},
        ),
    ],
)
def test_what_a_round_achieved(notes: Any, messages: Any, new: Any) -> None:
    of_round = {"todo_calls": ["todo"], "nag": False}
    noted_on: Any = {**notes, **of_round}
    note_progress(messages, noted_on, {"todo"})
    assert noted_on == {**new, **of_round}


def test_after_a_turns_end_nothing_is_noted() -> None:
    notes: Any = {"waking": True}
    note_progress([GO, *ROUND, AIMessage("."), HumanMessage("wake")], notes, {"todo"})
    assert notes == {"waking": True}


# -- an ending -------------------------------------------------------------------------------------------


def test_the_session_at_an_ending() -> None:
    statuses = ("pending", "in_progress", "completed", "completed", "blocked", "cancelled")
    items: Any = [todo(number, "x", status) for number, status in enumerate(statuses)]
    given: Any = ({"wake_cycles": 3}, items, settings(max_wake_cycles=7))
    assert build_session(*given, "stalled") == {
        "state": "idle", "reason": "stalled", "open": 2, "items": 6, "completed": 2, "cancelled": 1,
        "blocked": 1, "wakes": 3, "budget": 7, "list": 0, "spent": report_spent({}),
    }  # fmt: skip
    waits = build_session(*given, "waiting", [{"id": "q", "on": "human"}, {"id": "r", "on": "subagent"}])
    assert (waits["state"], waits["on"]) == ("waiting", "human")
    assert build_session(*given, "waiting")["on"] == "peer"
    assert build_session(*given, "stalled", needs_proof=True)["verified"] is False


@pytest.mark.parametrize(
    ("entries", "on"),
    [([], "peer"), (["q"], "peer"), ([{"id": "q"}], "peer"), ([{"on": "subagent"}], "subagent")],
)
def test_whom_a_session_waits_for(entries: Any, on: str) -> None:
    assert find_waiting_party(entries) == on


def test_what_an_ending_leaves() -> None:
    notes: Any = {
        "end": "truncated",
        "nag": True,
        "waking": True,
        "seen": "x",
        "tail": "old",
        "ruling": "truncated",
    }
    assert drop_run_notes(notes) == {"seen": "x", "tail": "old", "ruling": "truncated"}
    assert drop_run_notes(notes, [HumanMessage("x")]) == {"seen": "x", "tail": "", "ruling": "truncated"}
    rest = drop_run_notes(notes, [HumanMessage("x", id="new")])
    assert rest == {"seen": "x", "tail": "new", "ruling": "truncated"}
