"""Rule 14: malformed, empty and cut replies; rules 9 and 10 for refused calls."""

import re
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

from wakeloop import answer_of
from wakeloop.prompts import FILLERS, fill_prompt
from wakeloop.testing import calls, malformed_call, says

BOTH = ["run_tools", "validate_todos", "call_model"]
OVER = ["run_tools", "finalization_guard"]
BAD = calls(("peer", {}))
CUT = says("half of this", finish_reason="length")
GO_ON = "retry"
WORDS = "(automatic) Your last reply was empty. If there is something left to do, continue with a tool call. "
WORDS += "Otherwise answer in plain text."
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
def test_one_malformed_round_more_than_the_retries_ends_the_run(retries: int, thread: Make) -> None:
    agent = thread([BAD] * (retries + 1), change={"reply_retries": retries})
    assert agent.walk("go") == [*START, *WORK * retries, *OVER]
    assert agent.asked == retries + 1
    assert agent.session == session("dormant", "malformed_calls", 0)


def now() -> str:
    """Return the current time."""
    return "noon"


@pytest.mark.parametrize("nothing", ["", "null", "None", "undefined", None])
def test_empty_arguments_are_malformed_if_some_are_required(nothing: Any, thread: Make) -> None:
    agent = thread(*[calls(malformed_call("look", nothing)) for _ in range(5)], tools=[look, now])
    agent.run("go")
    assert (agent.asked, agent.session) == (5, session("dormant", "malformed_calls", 0))


@pytest.mark.parametrize("nothing", ["", "null", "None", "undefined", None])
def test_empty_arguments_are_fine_if_none_are_required(nothing: Any, thread: Make) -> None:
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


def test_the_next_input_continues(thread: Make) -> None:
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
def test_with_none_open_and_nothing_said_the_same_request_is_made_once_more(empty: Any, thread: Make) -> None:
    agent = thread(empty, empty, empty, "hi")
    assert agent.walk("go") == [*START, *AGAIN * 3, *END]
    first, second, third, fourth = agent.model.requests
    assert first == second == third[:-1] == fourth[:-2]
    assert [message.content for message in fourth[-2:]] == [WORDS, WORDS]
    assert agent.kinds == ["human", GO_ON, GO_ON, "ai"]
    assert agent.session == session("dormant", "answered", 0)


@pytest.mark.parametrize("when", ["claim", "round"])
def test_with_a_verifier_an_empty_reply_is_asked_for_again_too(when: str, thread: Make) -> None:
    agent = thread("", "Hello.", verify=lambda item, state: None, change={"verify_when": when})
    agent.run("go")
    assert agent.session["reason"] == "answered"
    assert len(agent.model.requests) == 2


def test_c102_words_after_an_empty_reply_to_a_result_come_after_one_line(thread: Make) -> None:
    agent = thread(looks("x"), "", "", "hi", tools=[look])
    agent.run("go")
    assert agent.model.requests[1] == agent.model.requests[2] == agent.model.requests[3][:-2]
    assert [message.content for message in agent.model.requests[3][-2:]] == ["[continued]", WORDS]
    assert agent.kinds == ["human", "ai", "tool", "repair", GO_ON, "ai"]


@pytest.mark.parametrize("wakes", [1, 2])
def test_with_open_items_it_is_repeated_once_per_turn_and_then_the_turn_ends(
    wakes: int, thread: Make
) -> None:
    agent = thread(write("a"), *[""] * 2 * (wakes + 1), change={"max_wake_cycles": wakes, "guard_retries": 0})
    assert agent.walk("go") == [*START, *TODO, *AGAIN, *[*WAKE, *AGAIN] * wakes, *END]
    assert agent.session == session("idle", "wake_budget", 1, wakes, wakes)


def test_once_per_turn_even_with_a_round_in_between(thread: Make) -> None:
    agent = thread(write("a"), "", looks("x"), "", done(1), ".", tools=[look])
    assert agent.walk("go") == [*START, *TODO, *AGAIN, *WORK, *WAKE, *TODO, *END]


@pytest.mark.parametrize("retries", [0, 2])
def test_an_empty_reply_again_and_again_ends_the_run(retries: int, thread: Make) -> None:
    agent = thread([""] * (retries + 1), change={"reply_retries": retries})
    assert agent.walk("go") == [*START, *AGAIN * retries, *END]
    assert agent.session == session("dormant", "empty_reply", 0)


def test_c56_a_preamble_is_no_answer(thread: Make) -> None:
    """A preamble with a working call, then empty replies: 6 requests."""
    preamble = calls(("look", {"path": "x"}), text="Let me look first.")
    agent = thread(preamble, *[""] * 5, tools=[look])
    assert agent.walk("go") == [*START, *WORK, *AGAIN * 4, *END]
    assert (agent.asked, agent.session) == (6, session("dormant", "empty_reply", 0))
    assert answer_of(agent.snapshot) == ""


def test_c56_words_next_to_the_write_that_closes_the_list_are_an_answer(thread: Make) -> None:
    planned = calls(("todo_write", {"items": ["a"]}), text="I plan first.")
    agent = thread(planned, calls(change(1, "done"), text="All done."), "")
    assert agent.walk("go") == [*START, *TODO, *TODO, *END]
    assert agent.session == session("dormant", "settled", 0, budget=26)
    assert answer_of(agent.snapshot) == "All done."


def test_c99_an_attempt_is_not_a_write(thread: Make) -> None:
    agent = thread(calls(change(1, "done"), text="Done."), *[""] * 5)
    assert agent.walk("go") == [*START, *TODO, *AGAIN * 4, *END]
    assert (agent.asked, agent.session) == (6, session("dormant", "empty_reply", 0))
    assert answer_of(agent.snapshot) == ""


@pytest.mark.parametrize("filler", ["[no text]", "[continued]", "[interrupted]"])
def test_c100_a_copied_filler_is_an_empty_reply(filler: str, thread: Make) -> None:
    agent = thread(filler, filler, "hi")
    assert agent.walk("go") == [*START, *AGAIN * 2, *END]
    assert (agent.kinds, answer_of(agent.snapshot)) == (["human", GO_ON, "ai"], "hi")


def test_c100_no_filler_reads_like_an_answer() -> None:
    texts = [fill_prompt(name, "", {}) for name in FILLERS]
    assert [text for text in texts if not re.fullmatch(r"\[[a-z ]+\]", text)] == []


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


# -- replies that are not answers ------------------------------------------------------------------------

STORED = "Stored 1 item:\n  [1] a"


def test_c101_a_copied_result_of_a_todo_write_is_asked_for_again_once(thread: Make) -> None:
    agent = thread(write("a"), "stop", STORED, STORED, done(1), "bye")
    assert agent.walk("go") == [*START, *TODO, *WAKE, *AGAIN, *WAKE, *TODO, *END]
    assert agent.kinds[4:7] == ["wake", "ai", GO_ON]


def test_c101_another_made_up_result_is_asked_for_again_too(thread: Make) -> None:
    agent = thread(looks("x"), "Stored 3 items, [1] to [3].", "[1] done, 2 open.", "Done.", tools=[look])
    assert agent.walk("go") == [*START, *WORK, *AGAIN * 2, *END]
    assert answer_of(agent.snapshot) == "Done."


@pytest.mark.parametrize("made_up", ["Stored 3 items, [1] to [3].", "[1] done, 2 open. Next: [2] b"])
def test_c101_a_result_that_no_call_ever_returned(made_up: str, thread: Make) -> None:
    agent = thread(looks("x"), made_up, "Done.", tools=[look])
    assert agent.walk("go") == [*START, *WORK, *AGAIN, *END]
    assert (agent.kinds[-3:], answer_of(agent.snapshot)) == (["ai", GO_ON, "ai"], "Done.")


@pytest.mark.parametrize("change", [{"max_requests": 2}, {"on_guard_exhausted": "block"}])
def test_c101_a_faked_result_as_the_last_word_is_not_an_answer(change: dict[str, Any], thread: Make) -> None:
    fake = "<tool_response>milk</tool_response>"
    said = ["stop", fake] if "max_requests" in change else ["no", "stop", fake]
    agent = thread(write("a"), *said, change={"max_wake_cycles": 0, **change})
    agent.run("go")
    assert agent.session["reason"] in ("request_budget", "guard_blocked")
    assert (agent.messages[-1].text, answer_of(agent.snapshot)) == (fake, "stop")


def test_a_result_of_this_turn_may_be_repeated(thread: Make) -> None:
    agent = thread(write("a"), STORED, done(1), "bye")
    assert agent.walk("go") == [*START, *TODO, *WAKE, *TODO, *END]


def test_a_copied_list_is_an_answer_if_a_person_asked_for_it(thread: Make) -> None:
    agent = thread(write("a"), "stop", STORED, change={"max_wake_cycles": 0, "guard_retries": 0})
    agent.run("go")
    agent.run("Show me the list.")
    assert (agent.asked, answer_of(agent.snapshot)) == (3, STORED)


@pytest.mark.parametrize("bad", ["printed", "promised", "faked"])
def test_with_open_items_the_last_of_them_ends_the_turn(bad: str, thread: Make) -> None:
    reply = {
        "printed": 'look({"path": "x"})',
        "promised": says("I look.", finish_reason="tool_calls"),
        "faked": "<tool_response>x</tool_response>",
    }[bad]
    agent = thread(write("a"), *[reply] * 3, done(1), "bye", tools=[look], change={"reply_retries": 2})
    assert agent.walk("go") == [*START, *TODO, *AGAIN * 2, *WAKE, *TODO, *END]
    assert agent.session == session("dormant", "settled", 0, 1, 26)


# -- cut replies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("retries", [0, 2])
def test_repeatedly_cut_a_reply_ends_the_run(retries: int, thread: Make) -> None:
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


def test_bad_replies_of_all_kinds_share_one_count(thread: Make) -> None:
    cut = calls(("look", {"path": "x"}), finish_reason="length")
    agent = thread(write("a"), BAD, CUT, cut, tools=[look], change=PLAIN)
    assert agent.walk("go") == [*START, *TODO, *WORK, *AGAIN, *OVER]
    assert agent.session == session("idle", "truncated", 1)


# -- refused calls (rules 9 and 10) ----------------------------------------------------------------------


def test_a_call_applies_completely_or_not_at_all_and_leaves_the_others(thread: Make) -> None:
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


def test_a_second_item_in_progress_is_refused_but_not_start_and_close_in_one_reply(thread: Make) -> None:
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
