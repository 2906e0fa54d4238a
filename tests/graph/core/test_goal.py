"""Rule 24: a goal that code checks."""

import asyncio
from functools import partial
from threading import Event
from typing import Any

import pytest
from agents import AGAIN, END, START, TODO, WAKE, WORK, Make, Thread, done, look, looks, todo, update, write
from langgraph.types import Command, interrupt

from wakeloop import GoalError, impossible, update_todos, wait
from wakeloop.testing import calls, says


class Goal:
    """Answers from a script, repeats the last answer forever, and counts how often it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked, self.states = list(answers), 0, []

    def __call__(self, state: Any) -> Any:
        self.asked += 1
        self.states.append(state)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


def by_door(door: str, goal: Goal) -> Any:
    """Return the goal as the door needs it: asynchronous runs accept both kinds."""
    if door == "sync":
        return goal

    async def done_when(state: Any) -> Any:
        await asyncio.sleep(0)
        return goal(state)

    return done_when


def ending_of(agent: Thread) -> tuple[Any, ...]:
    """Return the state, the reason and what is missing."""
    return agent.session["state"], agent.session["reason"], agent.session.get("missing")


def last_words(agent: Thread) -> str:
    """Return the last user message of the newest request."""
    return next(m.text for m in reversed(agent.model.requests[-1]) if m.type == "human")


# -- met and unmet -----------------------------------------------------------------------------------------


def test_a_goal_that_is_met_ends_the_run_whatever_is_open(door: str, thread: Make) -> None:
    goal = Goal(None)
    agent = thread(write("a"), "Done.", done_when=by_door(door, goal))
    assert agent.walk("go") == [*START, *TODO, *END]
    assert ending_of(agent) == ("dormant", "goal_met", None)
    assert agent.session["open"] == 1
    assert goal.asked == 1
    assert goal.states[0]["messages"][0].content == "go"
    assert goal.states[0]["todos"] == [todo(1, "a")]


def test_without_a_list_it_is_asked_too(door: str, thread: Make) -> None:
    goal = Goal(None)
    agent = thread("Done.", done_when=by_door(door, goal))
    agent.run("go")
    assert (ending_of(agent), goal.asked) == (("dormant", "goal_met", None), 1)


def test_a_missing_part_wakes_the_model_with_the_reason_and_the_open_items(door: str, thread: Make) -> None:
    goal = Goal("2 tests fail:\n[9] x", None)
    agent = thread(write("a"), "Done.", looks("b"), "Now.", tools=[look], done_when=by_door(door, goal))
    assert agent.walk("go") == [*START, *TODO, *WAKE, *WORK, *END]
    nudge = next(m for m in agent.messages if m.additional_kwargs.get("wakeloop", {}).get("kind") == "wake")
    assert "It says what is missing: 2 tests fail:\n  | [9] x\n\n" in nudge.text
    assert nudge.text.endswith("[1] a")
    assert ending_of(agent) == ("dormant", "goal_met", None)
    assert agent.session["wakes"] == 1
    assert goal.asked == 2


def test_a_long_reason_is_sent_whole_and_stored_short(thread: Make) -> None:
    goal = Goal("x" * 1_500, "y" * 1_500)
    agent = thread("Done.", looks("a"), "Now.", tools=[look], done_when=goal, change={"max_wake_cycles": 1})
    agent.run("go")
    nudge = next(m.text for m in agent.messages if m.type == "human" and "missing" in m.text)
    assert "x" * 1_500 in nudge
    kept = [s.values["todo_ledger"]["missing"] for s in agent.graph.get_state_history(agent.at())
            if s.next == ("run_tools",)]  # fmt: skip
    assert [len(text) for text in kept] == [200]
    assert agent.session["missing"] == "y" * 1_500


@pytest.mark.parametrize("listed", [False, True])
def test_the_same_with_a_settled_list_or_none(listed: bool, thread: Make) -> None:
    replies = [write("a"), done(1)] if listed else []
    goal = Goal("no report", None)
    agent = thread(*replies, "Done.", "Now.", done_when=goal)
    agent.run("go")
    assert "It says what is missing: no report" in last_words(agent)
    assert "[1]" not in last_words(agent)
    assert (ending_of(agent), goal.asked) == (("dormant", "goal_met", None), 2)


@pytest.mark.parametrize(("listed", "more"), [(False, 0), (True, 1)])
def test_the_same_reason_forever(listed: bool, more: int, door: str, thread: Make) -> None:
    """1 + max_idle_wakes requests, and guard_retries more with an open list."""
    goal = Goal(*(f"{n} failed in /tmp/run-{n}, 0.{n} s" for n in range(20)))
    start = [write("a")] if listed else []
    agent = thread(*start, *["Done."] * 9, left=True, done_when=by_door(door, goal))
    agent.run("go")
    turns = 1 + 5 + more
    assert len(agent.model.requests) == len(start) + turns
    assert ending_of(agent) == (
        "idle",
        "stalled",
        f"{turns - 1} failed in /tmp/run-{turns - 1}, 0.{turns - 1} s",
    )
    assert goal.asked == turns


def test_the_second_wake_without_a_call_says_it_differently(thread: Make) -> None:
    agent = thread("Done.", "Done.", "Done.", left=True, done_when=Goal("no"), change={"max_wake_cycles": 2})
    agent.run("go")
    first, second = (m.text for m in agent.messages if m.type == "human" and "missing: no" in m.text)
    assert first.startswith("(automatic) A program checks")
    assert second.startswith("(automatic) Nothing was done about it")


def test_a_new_reason_is_progress(thread: Make) -> None:
    goal = Goal("a fails", "a fails", "b fails", "b fails", "a fails", "b fails", "a fails")
    agent = thread(*["Done."] * 9, left=True, done_when=goal, change={"max_idle_wakes": 3})
    agent.run("go")
    assert len(agent.model.requests) == 3 + 3
    assert (ending_of(agent), goal.asked) == (("idle", "stalled", "b fails"), 6)


def test_settled_items_stay_settled(thread: Make) -> None:
    agent = thread(write("a"), done(1), "Done.", "Done.", done_when=Goal("no", None))
    agent.run("go")
    assert agent.todos == [todo(1, "a", "completed")]


# -- at other endings ----------------------------------------------------------------------------------------

BOUNDS = {
    "disabled": {"max_wake_cycles": 0},
    "wake_budget": {"max_wake_cycles": 1, "max_idle_wakes": 0},
    "request_budget": {"max_requests": 2},
    "stalled": {"max_idle_wakes": 1},
}


@pytest.mark.parametrize("reason", BOUNDS)
@pytest.mark.parametrize("met", [True, False])
def test_it_is_asked_before_a_gate_ends_the_run(reason: str, met: bool, thread: Make) -> None:
    turns = 1 if reason == "disabled" else 2
    goal = Goal(*["no"] * (turns - 1), None if met else "no")
    agent = thread("Done.", "Done.", left=True, done_when=goal, change=BOUNDS[reason])
    agent.run("go")
    assert len(agent.model.requests) == turns
    assert goal.asked == turns
    assert ending_of(agent) == (("dormant", "goal_met", None) if met else ("idle", reason, "no"))


@pytest.mark.parametrize("met", [True, False])
def test_it_is_asked_before_a_budget_ends_the_run_in_mid_turn(met: bool, door: str, thread: Make) -> None:
    goal = Goal(None if met else "no")
    agent = thread(
        looks("a"),
        looks("b"),
        left=True,
        tools=[look],
        done_when=by_door(door, goal),
        change={"max_requests": 2},
    )
    agent.run("go")
    assert (len(agent.model.requests), goal.asked) == (2, 1)
    assert ending_of(agent) == (("dormant", "goal_met", None) if met else ("idle", "request_budget", "no"))


@pytest.mark.parametrize("met", [True, False])
def test_it_is_asked_before_the_closing_report_and_not_after_it(met: bool, thread: Make) -> None:
    goal = Goal(None if met else "no")
    agent = thread(write("a"), "Done.", "Report.", left=met, done_when=goal, change={"max_requests": 2})
    agent.run("go")
    assert (len(agent.model.requests), goal.asked) == (2 if met else 3, 1)
    assert ending_of(agent) == (("dormant", "goal_met", None) if met else ("idle", "request_budget", "no"))


@pytest.mark.parametrize("met", [True, False])
def test_it_is_asked_before_looping(met: bool, thread: Make) -> None:
    goal = Goal(None if met else "no")
    agent = thread(*[looks("a")] * 9, left=True, tools=[look], done_when=goal, change={"max_idle_rounds": 3})
    agent.run("go")
    assert (len(agent.model.requests), goal.asked) == (4, 1)
    assert ending_of(agent) == (("dormant", "goal_met", None) if met else ("idle", "looping", "no"))


@pytest.mark.parametrize("met", [True, False])
def test_it_is_asked_before_bad_replies_end_the_run(met: bool, thread: Make) -> None:
    bad = calls(("nothing", {}))
    goal = Goal(None if met else "no")
    change = {"reply_retries": 1, "retries_fall": False}
    agent = thread(*[bad] * 3, left=True, done_when=goal, change=change)
    agent.run("go")
    assert (len(agent.model.requests), goal.asked) == (2, 1)
    assert ending_of(agent) == (("dormant", "goal_met", None) if met else ("idle", "malformed_calls", "no"))


def test_bad_replies_end_only_their_turn_without_open_items_too(thread: Make) -> None:
    bad = calls(("nothing", {}))
    agent = thread(*[bad] * 2, "Done.", done_when=Goal("no", None), change={"reply_retries": 1})
    agent.run("go")
    assert (ending_of(agent), agent.session["wakes"]) == (("dormant", "goal_met", None), 1)


def test_an_empty_reply_is_a_turn_like_any_other(thread: Make) -> None:
    goal = Goal("no", None)
    agent = thread(says(""), says(""), "Done.", done_when=goal)  # asked again once per turn
    agent.run("go")
    assert ending_of(agent) == ("dormant", "goal_met", None)
    assert agent.session["wakes"] == 1


def test_a_refusal_asks_nobody(thread: Make) -> None:
    goal = Goal(None)
    refused = says("I can't help with that.", response_metadata={"finish_reason": "content_filter"})
    agent = thread(refused, done_when=goal)
    agent.run("go")
    assert (agent.session["reason"], goal.asked) == ("refused", 0)


def test_near_the_step_limit_nobody_is_asked(door: str, thread: Make) -> None:
    goal = Goal(None)
    agent = thread("Done.", done_when=by_door(door, goal))
    agent.run("go", limit=5)
    assert (ending_of(agent), goal.asked) == (("idle", "step_limit", None), 0)


def test_after_a_correction_an_unmet_goal_ends_with_the_gates_reason(thread: Make) -> None:
    goal = Goal("no")
    change = {"max_wake_cycles": 1, "max_idle_wakes": 0, "guard_rearms": False}
    agent = thread(write("a"), "Done.", "Done.", done(1), "Done.", done_when=goal, change=change)
    assert agent.walk("go") == [*START, *TODO, *WAKE, *AGAIN, *TODO, *END]
    assert ending_of(agent) == ("idle", "wake_budget", "no")
    assert goal.asked == 3


def test_without_open_items_the_guard_has_nothing_to_correct(thread: Make) -> None:
    agent = thread("Done.", "Done.", done_when=Goal("no"), change={"max_wake_cycles": 1})
    assert agent.walk("go") == [*START, *WAKE, *END]
    assert ending_of(agent) == ("idle", "wake_budget", "no")


# -- the other verdicts --------------------------------------------------------------------------------------


def test_an_impossible_goal_blocks_whatever_is_open(door: str, thread: Make) -> None:
    goal = Goal(impossible("the API is gone"))
    agent = thread(write("a"), "Done.", done_when=by_door(door, goal))
    agent.run("go")
    assert ending_of(agent) == ("dormant", "blocked", "the API is gone")
    assert agent.session["open"] == 1


def test_a_condition_parks_the_run_and_a_kick_asks_again(door: str, thread: Make) -> None:
    goal = Goal(wait("the build", seconds=600), wait("the build"), "red", None)
    agent = thread("Done.", "Fixed.", done_when=by_door(door, goal))
    agent.run("go")
    first = agent.session
    assert ending_of(agent) == ("waiting", "waiting", "the build")
    assert first["on"] == "condition"
    agent.run({})
    assert ending_of(agent) == ("waiting", "waiting", "the build")
    assert first["until"] - agent.session["until"] == pytest.approx(540, abs=30)
    assert (len(agent.model.requests), goal.asked) == (1, 2)
    agent.run({"todo_inbox": [{"kind": "kick", "id": "k"}]})
    assert ending_of(agent) == ("dormant", "goal_met", None)
    assert "missing: red" in last_words(agent)
    assert (len(agent.model.requests), goal.asked) == (2, 4)
    assert agent.values["waiting_on"] == []


def test_a_persons_message_lifts_a_condition(thread: Make) -> None:
    goal = Goal(wait("the build"), None)
    agent = thread("Done.", "Yes.", done_when=goal)
    agent.run("go")
    agent.run("Are you there?")
    assert (ending_of(agent), goal.asked) == (("dormant", "goal_met", None), 2)


# -- resume and kick -----------------------------------------------------------------------------------------


def test_a_kick_on_an_unmet_goal_continues_with_the_reason(door: str, thread: Make) -> None:
    goal = Goal("no", None)
    agent = thread("Done.", "Now.", done_when=by_door(door, goal), change={"max_wake_cycles": 0})
    agent.run("go")
    assert ending_of(agent) == ("idle", "disabled", "no")
    agent.run({})
    assert "missing: no" in last_words(agent)
    assert (ending_of(agent), goal.asked) == (("dormant", "goal_met", None), 2)


def test_a_kick_on_a_met_goal_with_open_items_asks_first(door: str, thread: Make) -> None:
    goal = Goal(None, None, "red", None)
    agent = thread(write("a"), "Done.", "Fixed.", done_when=by_door(door, goal))
    agent.run("go")
    assert agent.walk({}) == ["activate", *END]
    assert (ending_of(agent), len(agent.model.requests), goal.asked) == (
        ("dormant", "goal_met", None),
        2,
        2,
    )
    agent.run({})
    assert "missing: red" in last_words(agent)
    assert "[1] a" in last_words(agent)
    assert (ending_of(agent), len(agent.model.requests), goal.asked) == (
        ("dormant", "goal_met", None),
        3,
        4,
    )


def test_a_kick_with_nothing_open_asks_first(thread: Make) -> None:
    goal = Goal("red", None)
    agent = thread("Fixed.", done_when=goal)
    agent.run({})
    assert "missing: red" in last_words(agent)
    assert (ending_of(agent), goal.asked) == (("dormant", "goal_met", None), 2)


@pytest.mark.parametrize("kind", ["peer_message", "peer_reply"])
def test_peers_do_not_ask(kind: str, thread: Make) -> None:
    goal = Goal("no")
    agent = thread("Hello.", done_when=goal)
    agent.run({"todo_inbox": [{"kind": kind, "id": "1", "text": "Hi.", "sender": "bob"}]})
    assert (agent.session["reason"], goal.asked) == ("answered", 0)


def test_a_goal_known_to_be_unmet_is_asked_whoever_begins(thread: Make) -> None:
    goal = Goal("no", None)
    agent = thread("Done.", "Hello.", done_when=goal, change={"max_wake_cycles": 0})
    agent.run("go")
    agent.run({"todo_inbox": [{"kind": "peer_message", "id": "1", "text": "Hi.", "sender": "bob"}]})
    assert (ending_of(agent), goal.asked) == (("dormant", "goal_met", None), 2)


def test_an_interrupted_run_continues_with_its_goal(door: str, thread: Make) -> None:
    def broken(text: str) -> str:
        """Look."""
        return interrupt(text)

    goal = Goal("no", None)
    agent = thread(
        calls(("broken", {"text": "Where?"})), "Done.", "Now.", tools=[broken], done_when=by_door(door, goal)
    )
    agent.run("go")
    assert goal.asked == 0
    agent.run(Command(resume="here"))
    assert (ending_of(agent), goal.asked) == (("dormant", "goal_met", None), 2)


def test_an_edit_by_hand_does_not_settle_an_unmet_goal(thread: Make) -> None:
    agent = thread(
        write("a"), "Done.", done_when=Goal("no"), change={"max_wake_cycles": 0, "guard_retries": 0}
    )
    agent.run("go")
    update_todos(agent.graph, agent.at(), done=[1])
    assert agent.session["state"] == "idle"
    assert agent.session["missing"] == "no"


async def test_a_synchronous_check_does_not_block_the_event_loop(thread: Make) -> None:
    loop, ran = asyncio.get_running_loop(), Event()

    def done_when(state: Any) -> None:
        loop.call_soon_threadsafe(ran.set)
        assert ran.wait(60)

    agent = thread("Done.", done_when=done_when)
    await agent.graph.ainvoke({"messages": [("user", "go")]}, agent.at())
    assert (await agent.graph.aget_state(agent.at())).values["todo_session"]["reason"] == "goal_met"


# -- formats and errors --------------------------------------------------------------------------------------


def test_a_met_goal_is_answered_in_the_format_unless_the_budget_is_spent(thread: Make) -> None:
    schema = {"title": "Answer", "type": "object", "properties": {"n": {"type": "integer"}}}
    answer = calls(("Answer", {"n": 1}))
    agent = thread("Done.", answer, done_when=Goal(None), response_format=schema)
    agent.run("go")
    assert (agent.session["reason"], agent.values["structured_response"]) == ("goal_met", {"n": 1})
    tight = thread("Done.", done_when=Goal(None), response_format=schema, change={"max_requests": 1})
    tight.run("go")
    assert (tight.session["reason"], tight.values["structured_response"]) == ("goal_met", None)


async def later(state: Any) -> None:
    return None


class Later:
    async def __call__(self, state: Any) -> None:
        return None


@pytest.mark.parametrize("done_when", [later, Later(), partial(later)])
def test_an_async_goal_is_refused_when_a_sync_run_starts(done_when: Any, thread: Make) -> None:
    agent = thread("Done.", left=True, done_when=done_when)
    with pytest.raises(GoalError, match="done_when is asynchronous"):
        agent.graph.invoke({"messages": [("user", "go")]}, agent.at())
    assert agent.model.requests == []


@pytest.mark.parametrize("given", [True, False, 3, ["a"]])
def test_an_invalid_verdict_is_refused(given: Any, thread: Make) -> None:
    agent = thread("Done.", done_when=Goal(given))
    with pytest.raises(GoalError, match="must return None if the goal is met"):
        agent.run("go")


def test_a_goal_that_raises_is_raised_and_the_thread_continues(door: str, thread: Make) -> None:
    error = KeyError("report")
    goal = Goal(error, None)
    agent = thread("Done.", done_when=by_door(door, goal))
    with pytest.raises(GoalError, match="done_when raised KeyError: 'report'") as raised:
        agent.run("go")
    assert raised.value.__cause__ is error
    assert agent.walk(None) == [*END]
    assert ending_of(agent) == ("dormant", "goal_met", None)


def test_a_goal_may_ask_a_person(thread: Make) -> None:
    agent = thread("Done.", done_when=lambda state: None if interrupt("Is it good?") == "yes" else "not good")
    agent.run("go")
    assert agent.session["reason"] == "interrupted"
    agent.run(Command(resume="yes"))
    assert ending_of(agent) == ("dormant", "goal_met", None)


def test_with_a_verifier_the_goal_decides(thread: Make) -> None:
    agent = thread(write("a"), update(1, "cancelled"), "Done.", verify=lambda *_: "no", done_when=Goal(None))
    agent.run("go")
    assert ending_of(agent) == ("dormant", "goal_met", None)
    assert "verified" not in agent.session
