"""Rule 24: items completed by a verdict are checked once more before the end."""

import asyncio
from typing import Any

import pytest
from agents import END, START, TODO, WAKE, WORK, Make, done, look, looks, todo, write

from wakeloop.testing import calls


class Judge:
    """Records what it was asked and answers from a script."""

    def __init__(self, *answers: str | None) -> None:
        self.answers, self.asked = list(answers), []

    def __call__(self, item: Any, state: Any) -> str | None:
        self.asked.append((item["id"], item["status"]))
        return self.answers.pop(0) if self.answers else None


def by_door(door: str, judge: Judge) -> Any:
    if door == "sync":
        return judge

    async def verify(item: Any, state: Any) -> str | None:
        await asyncio.sleep(0)
        return judge(item, state)

    return verify


ITEM = (1, "completed")


def test_an_item_is_checked_once_more_if_a_call_ran_after_its_verdict(door: str, thread: Make) -> None:
    judge = Judge()
    agent = thread(write("a"), done(1), looks("x"), "Done.", tools=[look], verify=by_door(door, judge))
    assert agent.walk("go") == [*START, *TODO, *TODO, *WORK, *END]
    assert judge.asked == [ITEM, ITEM]
    assert (agent.session["reason"], agent.session["verified"]) == ("settled", True)


@pytest.mark.parametrize("replies", [[looks("x"), done(1)], [done(1)], [done(1), calls(("todo_list", {}))]])
def test_without_such_a_call_it_is_not(replies: Any, thread: Make) -> None:
    judge = Judge()
    agent = thread(write("a"), *replies, "Done.", tools=[look], verify=judge)
    agent.run("go")
    assert judge.asked == [ITEM]


def test_a_call_in_the_same_round_may_end_after_the_verdict(thread: Make) -> None:
    judge = Judge()
    both = calls(("todo_update", {"id": 1, "status": "done"}), ("look", {"path": "x"}))
    agent = thread(write("a"), both, "Done.", tools=[look], verify=judge)
    agent.run("go")
    assert judge.asked == [ITEM, ITEM]


def test_a_failure_reopens_the_item_and_the_model_learns_why(door: str, thread: Make) -> None:
    agent = thread(
        write("a", "b"), done(1, 2), looks("x"), "Done.", done(1), "Now.", tools=[look],
        verify=by_door(door, Judge(None, None, "it broke", None, None)),
    )  # fmt: skip
    assert agent.walk("go") == [*START, *TODO, *TODO, *WORK, *WAKE, *TODO, *END]
    nudge = next(
        m.text for m in agent.messages if m.additional_kwargs.get("wakeloop", {}).get("kind") == "wake"
    )
    assert nudge.startswith(
        "(automatic) These items passed their check before, but not after your last calls, so they are open "
        "again:\n[1] a: it broke\n\n"
    )
    assert [item["status"] for item in agent.todos] == ["completed", "completed"]
    assert agent.ledger["refusals"] == {"1": 1}


def test_once_per_item_and_activation(thread: Make) -> None:
    judge = Judge(None, "it broke", None)
    agent = thread(
        write("a"), done(1), looks("x"), "Done.", done(1), looks("y"), "Now.", tools=[look], verify=judge
    )
    agent.run("go")
    assert judge.asked == [ITEM] * 3
    assert agent.session["reason"] == "settled"


def test_the_third_refusal_blocks_here_too(thread: Make) -> None:
    judge = Judge("one", "two", None, "three")
    agent = thread(write("a"), done(1), done(1), done(1), looks("x"), "Done.", tools=[look], verify=judge)
    agent.run("go")
    assert agent.todos == [todo(1, "a", "blocked", reason="three")]
    assert (agent.session["reason"], agent.session["verified"]) == ("blocked", False)


def test_if_nothing_wakes_it_the_run_ends_with_the_gates_reason(thread: Make) -> None:
    judge = Judge(None, "it broke")
    change = {"max_wake_cycles": 0, "guard_retries": 0}
    agent = thread(write("a"), done(1), looks("x"), "Done.", "Oh.", tools=[look], verify=judge, change=change)
    agent.run("go")
    assert (agent.session["state"], agent.session["reason"], agent.session["open"]) == ("idle", "disabled", 1)
    agent.run("And now?")
    assert "Reopened by the verifier:\n  [1] a" in " ".join(m.text for m in agent.model.requests[-1])


def test_a_correction_says_it_too(thread: Make) -> None:
    judge = Judge(None, "it broke")
    agent = thread(
        write("a"), done(1), looks("x"), "Done.", done(1), "Now.", tools=[look], verify=judge,
        change={"max_wake_cycles": 0},
    )  # fmt: skip
    agent.run("go")
    [correction] = [m.text for m in agent.messages if m.type == "human"][1:]
    assert "[1] a: it broke" in correction
    assert agent.session["reason"] == "settled"
    assert "reopened" not in agent.ledger


def test_only_if_steps_for_one_more_turn_are_left(thread: Make) -> None:
    judge = Judge(None, "it broke")
    agent = thread(write("a"), done(1), looks("x"), "Done.", tools=[look], verify=judge)
    agent.run("go", limit=12)
    assert judge.asked == [ITEM]
    assert agent.session["reason"] == "settled"


def test_a_new_activation_starts_afresh(thread: Make) -> None:
    judge = Judge()
    agent = thread(write("a"), done(1), "Done.", looks("x"), "Hi.", tools=[look], verify=judge)
    agent.run("go")
    agent.run("more")
    assert judge.asked == [ITEM]


def test_a_met_goal_needs_none(thread: Make) -> None:
    judge = Judge()
    agent = thread(
        write("a"), done(1), looks("x"), "Done.", tools=[look], verify=judge, done_when=lambda state: None
    )
    agent.run("go")
    assert judge.asked == [ITEM]
    assert agent.session["reason"] == "goal_met"


def test_a_format_is_asked_for_after_it(thread: Make) -> None:
    judge = Judge()
    schema = {"title": "Answer", "type": "object", "properties": {"n": {"type": "integer"}}}
    agent = thread(
        write("a"), done(1), looks("x"), "Done.", calls(("Answer", {"n": 1})), tools=[look], verify=judge,
        response_format=schema,
    )  # fmt: skip
    agent.run("go")
    assert judge.asked == [ITEM, ITEM]
    assert agent.values["structured_response"] == {"n": 1}
