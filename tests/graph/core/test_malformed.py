"""Rule 14: malformed, empty and cut replies; rules 9 and 10 where a call is refused."""

from typing import Any

import pytest
from agents import (
    AGAIN,
    END,
    START,
    TODO,
    WAKE,
    WORK,
    Make,
    change,
    done,
    kind,
    look,
    looks,
    session,
    todo,
    update,
    write,
)

from wakeloop.testing import calls, malformed_call, says

BOTH = ["run_tools", "validate_todos", "call_model"]
OVER = ["run_tools", "finalization_guard"]
BAD = calls(("peer", {}))
CUT = says("a text that", finish_reason="length")
GO_ON = "retry"
PLAIN = {"reply_retries": 2, "retries_fall": False}  # the last bad reply ends the run


# -- malformed calls -------------------------------------------------------------------------------------


def test_each_malformed_call_gets_its_error_result_from_its_node(thread: Make) -> None:
    agent = thread(
        calls(
            ("peer", {}),
            malformed_call("look", "{"),
            ("todo_write", {"items": "['a']"}),
            malformed_call("todo_update", ""),
        ),
        "bye",
        tools=[look],
    )
    assert agent.walk("go") == [*START, *BOTH, *END]
    assert [status for status, _ in agent.results()] == ["error"] * 4
    assert all(text.startswith("Error: ") and len(text) <= 1000 for _, text in agent.results())
    assert agent.todos == []
    assert agent.ledger.get("bad_replies") is None


@pytest.mark.parametrize("retries", [0, 1, 2, 4])
def test_one_round_more_than_the_retries_with_nothing_else_ends_the_run(retries: int, thread: Make) -> None:
    agent = thread([BAD] * (retries + 1), change={"reply_retries": retries})
    assert agent.walk("go") == [*START, *WORK * retries, *OVER]
    assert agent.asked == retries + 1
    assert agent.session == session("dormant", "malformed_calls", 0)


def now() -> str:
    """Tell the time."""
    return "noon"


@pytest.mark.parametrize("nothing", ["", "null", "None", "undefined", None])
def test_nothing_is_malformed_where_something_is_due(nothing: Any, thread: Make) -> None:
    agent = thread(*[calls(malformed_call("look", nothing)) for _ in range(5)], tools=[look, now])
    agent.run("go")
    assert (agent.asked, agent.session) == (5, session("dormant", "malformed_calls", 0))


@pytest.mark.parametrize("nothing", ["", "null", "None", "undefined", None])
def test_nothing_is_no_argument_where_none_is_due(nothing: Any, thread: Make) -> None:
    agent = thread(
        calls(malformed_call("now", nothing), malformed_call("todo_list", nothing)), "bye", tools=[look, now]
    )
    agent.run("go")
    assert [status for status, _ in agent.results()] == ["success"] * 2


def test_with_open_items_it_ends_idle_without_a_correction(thread: Make) -> None:
    agent = thread(write("a"), *[update(1, "sideways")] * 3, change=PLAIN)
    assert agent.walk("go") == [*START, *TODO * 3, "validate_todos", "finalization_guard"]
    assert agent.session == session("idle", "malformed_calls", 1)


@pytest.mark.parametrize(
    "between", [looks("x"), calls(("look", {"wrong": 1})), update(7, "done"), write("a", "")]
)
def test_any_well_formed_call_resets_the_count(between: Any, thread: Make) -> None:
    agent = thread(BAD, BAD, between, BAD, BAD, "bye", tools=[look])
    agent.run("go")
    assert agent.asked == 6
    assert agent.session == session("dormant", "answered", 0)


def test_the_next_input_goes_on(thread: Make) -> None:
    agent = thread([*[BAD] * 7, "hi"])
    agent.run("go")
    assert agent.session["reason"] == "malformed_calls"
    assert agent.walk("more") == [*START, *WORK * 2, *END]
    assert agent.session == session("dormant", "answered", 0)


def test_malformed_rounds_within_a_correction_end_the_run(thread: Make) -> None:
    agent = thread(write("a"), ".", *[BAD] * 5, change={"max_wake_cycles": 0})
    assert agent.walk("go") == [*START, *TODO, *AGAIN, *WORK * 4, *OVER]
    assert agent.session == session("idle", "malformed_calls", 1, 0, 0)


# -- empty replies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", ["", " \n", calls(text="")])
def test_with_none_open_and_nothing_said_the_same_request_comes_again(empty: Any, thread: Make) -> None:
    agent = thread(empty, empty, "hi")
    assert agent.walk("go") == [*START, *AGAIN * 2, *END]
    first, second, third = agent.model.requests
    assert first == second == third
    assert agent.kinds == ["human", "ai"]
    assert agent.session == session("dormant", "answered", 0)


@pytest.mark.parametrize("retries", [0, 2])
def test_an_empty_reply_again_and_again_ends_the_run(retries: int, thread: Make) -> None:
    agent = thread([""] * (retries + 1), change={"reply_retries": retries})
    assert agent.walk("go") == [*START, *AGAIN * retries, *END]
    assert agent.session == session("dormant", "empty_reply", 0)


def test_after_a_text_of_this_activation_an_empty_reply_is_settled(thread: Make) -> None:
    agent = thread(calls(("look", {"path": "x"}), text="looking"), "", tools=[look])
    assert agent.walk("go") == [*START, *WORK, *END]
    assert agent.session == session("dormant", "answered", 0)


def test_after_a_todo_write_an_empty_reply_is_settled(thread: Make) -> None:
    agent = thread(write("a"), done(1), "")
    assert agent.walk("go") == [*START, *TODO, *TODO, *END]
    assert agent.session == session("dormant", "settled", 0, budget=26)


def test_a_tool_call_alone_says_nothing(thread: Make) -> None:
    agent = thread(looks("x"), calls(("todo_list", {})), *[""] * 5, tools=[look])
    assert agent.walk("go") == [*START, *WORK, *TODO, *AGAIN * 4, *END]
    assert agent.session == session("dormant", "empty_reply", 0)


def test_the_text_of_an_earlier_activation_does_not_count(thread: Make) -> None:
    agent = thread("hi", *[""] * 5)
    agent.run("go")
    assert agent.walk("more") == [*START, *AGAIN * 4, *END]
    assert agent.session == session("dormant", "empty_reply", 0)


def test_an_empty_reply_asked_again_spends_no_budget(thread: Make) -> None:
    agent = thread("", "", write("a"), ".", done(1), "bye", change={"max_wake_cycles": 1})
    assert agent.walk("go") == [*START, *AGAIN * 2, *TODO, *WAKE, *TODO, *END]


# -- cut replies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("retries", [0, 2])
def test_cut_again_and_again_a_text_ends_the_run(retries: int, thread: Make) -> None:
    agent = thread([CUT] * (retries + 1), change={"reply_retries": retries})
    assert agent.walk("go") == [*START, *AGAIN * retries, *END]
    assert agent.session == session("dormant", "truncated", 0)
    assert agent.kinds == ["human", *["ai", GO_ON] * retries, "ai"]


def test_a_cut_reply_ends_no_turn(thread: Make) -> None:
    agent = thread(write("a"), CUT, done(1), "bye", change={"max_wake_cycles": 1})
    assert agent.walk("go") == [*START, *TODO, *AGAIN, *TODO, *END]
    assert agent.session == session("dormant", "settled", 0, 0, 2)


def test_a_cut_reply_in_a_wake_leaves_its_count_alone(thread: Make) -> None:
    agent = thread(write("a"), ".", CUT, *".....", change={"guard_retries": 0})
    assert agent.walk("go") == [*START, *TODO, *WAKE, *AGAIN, *WAKE * 4, *END]
    assert agent.session == session("idle", "stalled", 1, 5)


def test_a_cut_reply_in_a_correction_is_still_its_turn(thread: Make) -> None:
    agent = thread(write("a"), ".", CUT, done(1), "bye", change={"max_wake_cycles": 0})
    assert agent.walk("go") == [*START, *TODO, *AGAIN, *AGAIN, *TODO, *END]
    assert agent.session == session("dormant", "settled", 0, 0, 0)


def test_bad_replies_of_all_kinds_count_in_one_row(thread: Make) -> None:
    cut = calls(("look", {"path": "x"}), finish_reason="length")
    agent = thread(write("a"), BAD, CUT, cut, tools=[look], change=PLAIN)
    assert agent.walk("go") == [*START, *TODO, *WORK, *AGAIN, *OVER]
    assert agent.session == session("idle", "truncated", 1)


# -- refused calls (rules 9 and 10) ----------------------------------------------------------------------


def test_a_call_applies_whole_or_not_at_all_and_leaves_the_others(thread: Make) -> None:
    agent = thread(
        calls(
            ("todo_write", {"items": ["a", " "]}),
            ("todo_write", {"items": ["b"]}),
            change(5, "done"),
            change(1, "blocked"),
        ),
        done(1),
        "bye",
    )
    agent.run("go")
    assert agent.todos == [todo(1, "b", "completed")]
    assert [status for status, _ in agent.results()] == ["error", "success", "error", "error", "success"]
    first, second, third, fourth, fifth = (text for _, text in agent.results())
    assert second == "Stored 1 item:\n  [1] b"
    assert fifth == "[1] done, 0 open."
    assert "blank" in first
    assert "5" in third
    assert "reason" in fourth
    assert not any("Traceback" in text or "wakeloop" in text for _, text in agent.results())


def test_a_second_item_in_progress_is_refused_and_start_and_close_in_one_reply_is_not(thread: Make) -> None:
    agent = thread(
        write("alpha", "beta"),
        update(1, "in_progress"),
        update(2, "in_progress"),
        calls(change(2, "in_progress"), change(1, "done")),
        done(2),
        "bye",
    )
    agent.run("go")
    statuses = [status for status, _ in agent.results()]
    assert statuses == ["success", "success", "error", "success", "success", "success"]
    assert "alpha" in agent.results()[2][1]
    assert "beta" in agent.results()[2][1]


def test_no_message_of_a_bad_reply_is_marked_but_the_graphs_own(thread: Make) -> None:
    agent = thread(CUT, BAD, "bye")
    agent.run("go")
    assert [kind(m) for m in agent.messages] == ["human", "ai", "retry", "ai", "tool", "ai"]
