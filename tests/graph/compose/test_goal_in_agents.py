"""Rule 24 inside `create_agent`."""

import asyncio
from typing import Any

import pytest
from laid_over import GO, THREAD, busy, look, looks, over, plan
from langchain.agents.middleware import ModelCallLimitMiddleware
from langchain.agents.structured_output import ToolStrategy
from pydantic import BaseModel

from wakeloop import GoalError, impossible, wait
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says


class Goal:
    """Answers from a script, repeats the last answer forever, and counts how often it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), 0

    def __call__(self, state: Any) -> Any:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Agent:
    """An agent with a goal, run through one of the two doors."""

    def __init__(
        self, door: str, goal: Goal, *replies: Any, others: Any = (), settings: Any = None, **more: Any
    ) -> None:
        async def later(state: Any) -> Any:
            await asyncio.sleep(0)
            return goal(state)

        self.door, self.goal = door, goal
        self.model = ScriptedModel(*replies)
        layer = WakeLoopMiddleware(
            done_when=goal if door == "sync" else later, settings=settings or "langchain"
        )
        self.graph = over(self.model, layer, *others, **more)

    def run(self, given: Any = GO) -> Any:
        if self.door == "sync":
            return self.graph.invoke(given, THREAD)
        return asyncio.run(self.graph.ainvoke(given, THREAD))

    @property
    def ended(self) -> tuple[Any, ...]:
        """Return the reason, what is missing, the number of requests, and how often the goal was checked."""
        session = self.graph.get_state(THREAD).values["todo_session"]
        return session["reason"], session.get("missing"), len(self.model.requests), self.goal.asked


@pytest.fixture(params=["sync", "async"])
def door(request: pytest.FixtureRequest) -> str:
    """The door through which an agent is run."""
    return request.param


def test_the_goal_decides_here_too(door: str) -> None:
    agent = Agent(door, Goal("2 fail", None), calls(plan("a")), says("Done."), says("Now."))
    agent.run()
    assert agent.ended == ("goal_met", None, 3, 2)
    nudge = agent.model.requests[-1][-1].text
    assert "It says what is missing: 2 fail" in nudge
    assert "a" in nudge.rpartition("\n")[2]


@pytest.mark.parametrize("listed", [False, True])
def test_the_same_reason_forever(listed: bool, door: str) -> None:
    start = [calls(plan("a"))] if listed else []
    agent = Agent(door, Goal("no"), *start, *[says("Done.")] * 9)
    agent.run()
    turns = 1 + 5 + listed
    assert agent.ended == ("stalled", "no", len(start) + turns, turns)


@pytest.mark.parametrize("met", [True, False])
def test_it_is_asked_before_a_budget_ends_the_run_in_mid_turn(met: bool, door: str) -> None:
    goal = Goal(None if met else "no")
    settings = {"max_requests": 2}
    agent = Agent(door, goal, calls(looks(1)), calls(looks(2)), settings=settings, tools=[look])
    agent.run()
    assert agent.ended == ("goal_met", None, 2, 1) if met else ("request_budget", "no", 2, 1)


@pytest.mark.parametrize(
    ("verdict", "ending"),
    [
        (None, ("goal_met", None)),
        ("no", ("ended_elsewhere", "no")),
        (impossible("gone"), ("blocked", "gone")),
        (wait("the build"), ("waiting", "the build")),
    ],
)
def test_it_is_asked_before_another_middleware_ends_the_run(verdict: Any, ending: Any, door: str) -> None:
    limit = ModelCallLimitMiddleware(run_limit=2)
    agent = Agent(door, Goal(verdict), busy(), others=[limit], tools=[look])
    agent.run()
    assert agent.ended == (*ending, 2, 1)


def test_it_is_asked_once_if_another_middleware_ended_the_wake(door: str) -> None:
    limit = ModelCallLimitMiddleware(run_limit=2)
    agent = Agent(door, Goal("no"), says("Done."), says("Done."), says("Done."), others=[limit])
    agent.run()
    assert agent.ended == ("ended_elsewhere", "no", 2, 2)


def test_a_kick_on_a_condition_asks_before_any_request(door: str) -> None:
    goal = Goal(wait("the build"), wait("the build", 5), None)
    agent = Agent(door, goal, says("Done."))
    agent.run()
    assert agent.ended == ("waiting", "the build", 1, 1)
    agent.run({"todo_inbox": [{"kind": "kick", "id": "1"}]})
    assert agent.ended == ("waiting", "the build", 1, 2)
    assert len(agent.graph.get_state(THREAD).values["waiting_on"]) == 1
    agent.run({"todo_inbox": [{"kind": "kick", "id": "2"}]})
    assert agent.ended == ("goal_met", None, 1, 3)
    assert agent.graph.get_state(THREAD).values["waiting_on"] == []


def test_a_kick_on_an_unmet_goal_continues(door: str) -> None:
    agent = Agent(door, Goal("no", None), says("Done."), says("Now."), settings={"max_wake_cycles": 0})
    agent.run()
    assert agent.ended == ("disabled", "no", 1, 1)
    agent.run({"todo_inbox": [{"kind": "kick", "id": "1"}]})
    assert agent.ended == ("goal_met", None, 2, 2)


class Answer(BaseModel):
    """The answer."""

    n: int


def test_a_met_goal_is_answered_in_the_format(door: str) -> None:
    agent = Agent(
        door, Goal("no", None), says("Done."), says("Now."), calls(("Answer", {"n": 1})),
        response_format=ToolStrategy(Answer),
    )  # fmt: skip
    assert agent.run()["structured_response"] == Answer(n=1)
    assert agent.ended == ("goal_met", None, 3, 2)


def test_a_goal_that_raises(door: str) -> None:
    agent = Agent(door, Goal(KeyError("x"), None), says("Done."))
    with pytest.raises(GoalError, match="done_when raised KeyError: 'x'"):
        agent.run()
    agent.run(None)
    assert agent.ended == ("goal_met", None, 1, 2)


def test_an_async_goal_is_refused_when_a_sync_run_starts() -> None:
    agent = Agent("async", Goal(None), says("Done."))
    with pytest.raises(GoalError, match="Run it with ainvoke"):
        agent.graph.invoke(GO, THREAD)
    assert agent.model.requests == []


def test_with_verify_when_round_the_graph_completes_what_passes(door: str) -> None:
    asked: list[str] = []
    seen: set[str] = set()

    def check(item: Any, state: Any) -> str | None:
        asked.append(item["content"])
        return None if item["content"] in seen else "not there"

    async def check_later(item: Any, state: Any) -> str | None:
        return check(item, state)

    def save(what: str) -> str:
        """Save something."""
        seen.add(what)
        return f"saved {what}"

    def saves(what: str) -> Any:
        return calls(("save", {"what": what}))

    model = ScriptedModel(calls(plan("a", "b")), saves("x"), saves("a"), saves("b"), says("Done."))
    settings = {"verify_when": "round"}
    layer = WakeLoopMiddleware(verify=check if door == "sync" else check_later, settings=settings)
    agent = over(model, layer, tools=[save])
    asyncio.run(agent.ainvoke(GO, THREAD)) if door == "async" else agent.invoke(GO, THREAD)
    assert asked == ["a", "b", "a", "b", "b", "a"]  # finally a second look: a call ran after the first
    values = agent.get_state(THREAD).values
    assert [item["status"] for item in values["todos"]] == ["completed", "completed"]
    results = [m.text for m in values["messages"] if m.type == "tool"]
    assert [text.partition("\n")[0] for text in results[1:]] == ["saved x", "saved a", "saved b"]
    assert [text.endswith(": verified") for text in results[1:]] == [False, True, True]
    assert (values["todo_session"]["reason"], len(model.requests)) == ("settled", 5)


def test_a_second_look_reopens_what_a_later_call_broke(door: str) -> None:
    answers = [None, "it broke", None]

    def check(item: Any, state: Any) -> str | None:
        return answers.pop(0)

    async def check_later(item: Any, state: Any) -> str | None:
        return check(item, state)

    model = ScriptedModel(calls(plan("a!")), calls(looks(1)), says("Done."), calls(plan("a!")), says("Now."))
    agent = over(model, WakeLoopMiddleware(verify=check if door == "sync" else check_later))
    asyncio.run(agent.ainvoke(GO, THREAD)) if door == "async" else agent.invoke(GO, THREAD)
    assert answers == []
    values = agent.get_state(THREAD).values
    nudge = [m.text for m in values["messages"] if m.type == "human"][1]
    assert ": it broke\n\n" in nudge
    assert (values["todo_session"]["reason"], len(model.requests)) == ("settled", 5)
