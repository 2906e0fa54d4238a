"""The loop's rules 1 to 8 as exact walks and call counts."""

from itertools import chain, repeat
from typing import Any

import pytest
from agents import (
    AGAIN,
    END,
    QUIET,
    START,
    TODO,
    UNASKED,
    WAKE,
    WORK,
    Make,
    change,
    done,
    look,
    looks,
    session,
    update,
    write,
)

from wakeloop.testing import calls

WHOLE = {"pre_model_hook": lambda state: {"llm_input_messages": state["messages"]}}
"""With a hook a nudge shows the list whole: it may have taken from the model what it has seen."""


def endless(*replies: Any, text: str = "still busy") -> Any:
    return chain(replies, repeat(text))


# -- main scripts ---------------------------------------------------------------------------------------

# -- rule 1: trigger -------------------------------------------------------------------------------------


def test_a_reply_with_calls_ends_no_turn(thread: Make) -> None:
    agent = thread(
        write("a"), calls(("look", {"path": "x"}), text="and some words"), done(1), "bye", tools=[look]
    )
    assert agent.walk("go") == [*START, *TODO, *WORK, *TODO, *END]


# -- rules 2 and 3: budget and reset ---------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 2, 5])
def test_turns_are_one_plus_the_budget_and_the_corrections(budget: int, thread: Make) -> None:
    agent = thread(
        endless(write("a")),
        left=True,
        change={"max_wake_cycles": budget, "max_idle_wakes": 0, "guard_retries": 2},
    )
    assert agent.walk("go") == [*START, *TODO, *WAKE * budget, *AGAIN * 2, *END]
    assert agent.session == session("idle", "wake_budget", 1, budget, budget)
    assert agent.ledger["wake_cycles"] == budget


def test_an_empty_kick_on_a_new_thread_requests_nothing(thread: Make) -> None:
    agent = thread()
    assert agent.walk({"messages": []}) == ["activate", "finalization_guard"]
    assert agent.values["messages"] == []


def test_blocked_items_are_not_woken_by_a_kick(thread: Make) -> None:
    agent = thread(write("a"), update(1, "blocked", "why"), "stop")
    agent.walk("go")
    assert agent.walk({}) == ["activate", "finalization_guard"]


def test_an_owed_reply_alone_causes_a_wake(thread: Make) -> None:
    agent = thread("first", "second", "third", change={"max_wake_cycles": 1, "max_idle_wakes": 0})
    agent.run("go")
    agent.graph.update_state(
        agent.at(), {"owed_replies": [{"id": "q1", "sender": "bob"}]}, as_node="finalization_guard"
    )
    assert agent.walk("more") == [*START, *WAKE, *END]  # no correction: nothing is open
    assert agent.session == session("dormant", "wake_budget", 0, 1, 1)


# -- rule 4: graceful stop -------------------------------------------------------------------------------


# -- rule 5: progress ------------------------------------------------------------------------------------


def idle_after(thread: Make, turns: list[list[Any]], *, items: int = 2) -> tuple[int, dict[str, Any]]:
    """Play a first turn that writes items and looks at x, then wakes; return `idle_wakes` and the session."""
    replies = [write(*"abcdefgh"[:items]), looks("x"), "stop", *(reply for turn in turns for reply in turn)]
    change_ = {"max_wake_cycles": len(turns), "earn_wakes": 0, "max_idle_wakes": 50, **QUIET}
    agent = thread(*replies, tools=[look], change=change_)
    agent.run("go")
    return agent.ledger["idle_wakes"], agent.session


PROGRESS: dict[str, tuple[list[list[Any]], int]] = {
    "closing one": ([["."], [done(1), "."]], 0),
    "blocking one": ([["."], [update(1, "blocked", "why"), "."]], 0),
    "cancelling one": ([["."], [update(1, "cancelled"), "."]], 0),
    "a call not seen before": ([["."], [looks("y"), "."]], 0),
    "words": ([["."], ["."]], 2),
    "a call of the first turn": ([["."], [looks("x"), "."]], 2),
    "a call seen before in a wake": ([[looks("y"), "."], [looks("y"), "."]], 1),
    "a call that failed": ([["."], [calls(("look", {"wrong": 1})), "."]], 2),
    "an unknown tool": ([["."], [calls(("peer", {"path": "z"})), "."]], 2),
    "starting one": ([["."], [update(1, "in_progress"), "."]], 2),
    "adding": ([["."], [write("more"), "."]], 2),
    "adding and closing": ([["."], [write("more"), done(3), "."]], 2),
    "reading": ([["."], [calls(("todo_list", {})), "."]], 2),
    "to and fro": ([[done(1), "."], [update(1, "open"), "."], [done(1), "."], [update(1, "open"), "."]], 3),
    "closing an item added in an earlier wake": ([[write("more"), "."], [done(3), "."]], 0),
    "closing and reopening in one turn": ([["."], [done(1), update(1, "open"), "."]], 2),
    "closing one while another is reopened": (
        [[done(1), "."], [calls(change(1, "open"), change(2, "done")), "."]],
        1,
    ),
    "a refused close": ([["."], [update(1, "blocked"), "."]], 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRESS)
def test_what_counts_as_progress(name: str, thread: Make) -> None:
    turns, idle = PROGRESS[name]
    found, stands = idle_after(thread, turns)
    assert found == idle
    assert stands["reason"] == "wake_budget"


def test_progress_resets_the_count(thread: Make) -> None:
    agent = thread(
        write("a", "b"),
        ".",
        ".",
        ".",
        looks("y"),
        ".",
        ".",
        ".",
        ".",
        tools=[look],
        change={"max_idle_wakes": 3, **QUIET},
    )
    assert agent.walk("go") == [*START, *TODO, *WAKE * 3, *WORK, *WAKE * 3, *END]
    assert agent.session == session("idle", "stalled", 2, 6)
    assert agent.ledger["idle_wakes"] == 3


def test_idle_wakes_begin_at_zero_in_each_activation(thread: Make) -> None:
    agent = thread(endless(write("a")), left=True, change={"max_idle_wakes": 2, **QUIET, **UNASKED})
    assert agent.walk("go") == [*START, *TODO, *WAKE * 2, *END]
    assert agent.walk("go") == [*START, *WAKE * 2, *END]


# -- rule 6: nudge ---------------------------------------------------------------------------------------


def test_the_nudge_is_a_marked_user_message_with_the_live_list(thread: Make) -> None:
    agent = thread(
        write("a", "b", "c", "d"),
        calls(change(2, "blocked", "no key"), change(3, "in_progress"), change(4, "done")),
        "stop",
        calls(change(1, "done"), change(3, "done")),
        "bye",
        **WHOLE,
    )
    agent.run("go")
    nudge = agent.model.requests[3][-1]
    assert nudge.type == "human"
    assert nudge.additional_kwargs == {"wakeloop": {"kind": "wake"}, "lc_source": "wakeloop"}
    lines = [line for line in nudge.text.splitlines() if line.startswith("  ")]
    assert lines == ["  [1] a", "  [2] b (blocked: no key)", "  [3] c (in progress)"]
    assert "todo_update(ids)" in nudge.text
    assert "todo_list" in nudge.text
    assert agent.messages[-5].id == nudge.id


def test_a_long_list_is_cut_to_the_next_open_items(thread: Make) -> None:
    agent = thread(
        write(*(f"step {n}" for n in range(1, 41))),
        calls(change(1, "blocked", "why"), change(2, "done")),
        "stop",
        "stop",
        change={"max_wake_cycles": 1, "earn_wakes": 0, **QUIET},
        **WHOLE,
    )
    agent.run("go")
    nudge = agent.model.requests[3][-1].text
    lines = [line for line in nudge.splitlines() if line.startswith("  ")]
    assert lines == [f"  [{n}] step {n}" for n in range(3, 33)]
    assert "9 more (38 open, 1 blocked in all)" in nudge
    assert "todo_list" in nudge


def test_the_correction_carries_the_list_in_the_same_way(thread: Make) -> None:
    agent = thread(
        write("a", "b", "c"),
        update(2, "blocked", "no key"),
        "stop",
        "stop",
        change={"max_wake_cycles": 0, "nudge_items": 2},
    )
    agent.run("go")
    correction = agent.model.requests[3][-1]
    assert correction.additional_kwargs == {"wakeloop": {"kind": "guard"}, "lc_source": "wakeloop"}
    lines = [line for line in correction.text.splitlines() if line.startswith("  ")]
    assert lines == ["  [1] a", "  [3] c"]
    assert "1 more (2 open, 1 blocked in all)" in correction.text
    assert "todo_list" in correction.text


@pytest.mark.parametrize("inject", [True, False])
def test_a_continuation_prompt_replaces_the_instruction_whole(inject: bool, thread: Make) -> None:
    agent = thread(
        write("a"),
        "stop",
        "stop",
        checked=inject,
        change={
            "max_wake_cycles": 1,
            **QUIET,
            "continuation_prompt": "Weiter!",
            "inject_todo_instructions": inject,
        },
    )
    agent.run("go")
    assert agent.model.requests[2][-1].text == "Weiter!\n\n  [1] a"


# -- rule 7: nag -----------------------------------------------------------------------------------------


def nagged(agent: Any) -> list[int]:
    """Return the rounds, counted from 1, whose last result carries a reminder."""
    rounds: list[bool] = []
    for message in agent.messages:
        if message.type == "ai" and message.tool_calls:
            rounds.append(False)
        elif message.type == "tool" and "wakeloop" in message.additional_kwargs:
            rounds[-1] = True
    return [place for place, found in enumerate(rounds, 1) if found]


def test_the_nag_is_a_suffix_of_the_last_result_and_its_place_in_the_walk(thread: Make) -> None:
    agent = thread(write("a"), looks("x", "y"), done(1), "bye", tools=[look], change={"nag_after": 1})
    assert agent.walk("go") == [*START, *TODO, "run_tools", "nag", "call_model", *TODO, *END]
    first, last = agent.messages[4:6]
    assert first.content == "saw x"
    chars = last.additional_kwargs["wakeloop"]["chars"]
    assert last.additional_kwargs == {"wakeloop": {"kind": "nag", "chars": chars}}
    assert last.content[:-chars] == "saw y"
    assert agent.model.requests[2][-1].content == last.content


def test_only_a_write_resets_the_count(thread: Make) -> None:
    agent = thread(
        write("a"),
        looks("1"),
        update(9, "done"),
        looks("2"),
        calls(("todo_list", {})),
        "stop",
        looks("3"),
        update(1, "sideways"),
        looks("4"),
        done(1),
        "bye",
        tools=[look],
        change={"nag_after": 3, "nag_every": 0},
    )
    agent.run("go")
    assert nagged(agent) == [
        6
    ]  # look 2, list, look 3 across a wake; the refused and the malformed write count
    assert agent.session == session("dormant", "settled", 0, 1, 26)


def test_the_count_pauses_while_nothing_is_open(thread: Make) -> None:
    agent = thread(
        write("a"),
        looks("1"),
        done(1),
        looks("2"),
        looks("3"),
        write("b"),
        looks("4"),
        looks("5"),
        done(2),
        "bye",
        tools=[look],
        change={"nag_after": 2},
    )
    agent.run("go")
    assert nagged(agent) == [8]


# -- rule 8: guard ---------------------------------------------------------------------------------------


def test_a_correction_that_settles_the_list_ends_settled(thread: Make) -> None:
    agent = thread(write("a"), "stop", done(1), "bye", change={"max_wake_cycles": 0})
    assert agent.walk("go") == [*START, *TODO, *AGAIN, *TODO, *END]
    assert agent.session == session("dormant", "settled", 0, 0, 0)
    assert agent.ledger["todo_guard_retries"] == {"open_todos": 1}


def test_a_correction_may_take_any_number_of_rounds(thread: Make) -> None:
    agent = thread(
        write("a"),
        "stop",
        looks("1"),
        looks("2"),
        looks("3"),
        "stop",
        tools=[look],
        change={"max_wake_cycles": 0},
    )
    assert agent.walk("go") == [*START, *TODO, *AGAIN, *WORK * 3, *END]
    assert agent.session == session("idle", "disabled", 1, 0, 0)


def test_after_the_last_correction_no_other_gate_is_asked(thread: Make) -> None:
    agent = thread(write("a", "b"), *["."] * 6, done(1), ".", change={"guard_rearms": False})
    assert agent.walk("go") == [*START, *TODO, *WAKE * 5, *AGAIN, *TODO, *END]
    # there is progress, and 21 wakes are left, but it ends all the same
    ended = session("idle", "stalled", 1, 5, 26)
    assert agent.session == ended


def test_the_first_of_two_corrections_may_settle(thread: Make) -> None:
    agent = thread(write("a"), ".", done(1), ".", change={"max_wake_cycles": 0, "guard_retries": 2})
    assert agent.walk("go") == [*START, *TODO, *AGAIN, *TODO, *END]


STRICT = {"max_wake_cycles": 0, "on_guard_exhausted": "block"}


def test_an_explanation_is_requested_and_calls_in_it_are_removed(thread: Make) -> None:
    agent = thread(
        write("a"), ".", ".", calls(("look", {"path": "x"}), text="why"), tools=[look], change=STRICT
    )
    assert agent.walk("go") == [*START, *TODO, *AGAIN, *AGAIN, *END]
    assert agent.session == session("idle", "guard_blocked", 1, 0, 0)
    assert [len(bound) for bound in agent.model.bound] == [4, 4, 4, 4]  # over a history with calls
    last = agent.messages[-1]
    assert (last.content, last.tool_calls, last.invalid_tool_calls) == ("why", [], [])
    assert agent.ledger["todo_guard_blocked"] is None
    assert agent.ledger["todo_guard_suppressed"] is True


def test_guard_and_nag_stay_off_until_an_accepted_write(thread: Make) -> None:
    agent = thread(
        write("a"),
        ".",
        ".",
        "why",
        looks("1"),
        update(9, "done"),
        looks("2"),
        ".",
        update(1, "in_progress"),
        looks("3"),
        ".",
        ".",
        "why",
        tools=[look],
        change={**STRICT, "nag_after": 1},
    )
    agent.run("go")
    assert agent.walk("more") == [*START, *WORK, *TODO, *WORK, *END]
    assert agent.session["reason"] == "disabled"
    assert agent.walk("again") == [*START, *TODO, "run_tools", "nag", "call_model", *AGAIN, *AGAIN, *END]
    assert agent.session["reason"] == "guard_blocked"


def test_an_explanation_is_not_requested_without_a_correction(thread: Make) -> None:
    agent = thread(write("a"), ".", change={**STRICT, "guard_retries": 0})
    assert agent.walk("go") == [*START, *TODO, *END]
    assert agent.session["reason"] == "disabled"


@pytest.mark.parametrize("reason", ["wake_budget", "stalled", "repeated_reply"])
def test_which_gates_call_the_guard(reason: str, thread: Make) -> None:
    limits: dict[str, dict[str, Any]] = {
        "wake_budget": {"max_wake_cycles": 1},
        "stalled": {"max_idle_wakes": 1},
        "repeated_reply": {"stop_on_repeat": True},
    }
    agent = thread(write("a"), ".", ".", ".", change=limits[reason])
    assert agent.walk("go") == [*START, *TODO, *WAKE, *AGAIN, *END]
    assert agent.session["reason"] == reason


def test_the_same_text_over_another_list_is_not_a_repeat(thread: Make) -> None:
    agent = thread(
        write("a", "b"), ".", done(1), ".", "other", ".", ".", change={"stop_on_repeat": True, **QUIET}
    )
    assert agent.walk("go") == [*START, *TODO, *WAKE, *TODO, *WAKE, *WAKE, *WAKE, *END]
    assert agent.session["reason"] == "repeated_reply"
