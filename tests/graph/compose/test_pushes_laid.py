"""Rule 30 in an agent of `create_agent`, next to others that choose, retry or answer in the model's place."""

from itertools import repeat
from typing import Any

import pytest
from laid_over import GO, THREAD, ended, laid, looks, over, plan
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langgraph.types import Command
from pydantic import BaseModel

from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.tools import shell_tool

FREE, FORCED = {}, {"tool_choice": "required"}
REFUSAL = RuntimeError("Error code: 400 - tool_choice is not supported with thinking")


def talks(*before: Any, times: int) -> ScriptedModel:
    return ScriptedModel([calls(plan("a")), *before, *repeat("All done.", times)])


async def ran(agent: Any, door: str) -> Any:
    if door == "invoke":
        return agent.invoke(GO, THREAD)
    return await agent.ainvoke(GO, THREAD)


@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
async def test_c103_in_an_agent(door: str) -> None:
    model = talks(times=7)
    agent = laid(model)
    await ran(agent, door)
    model.assert_done()
    assert ended(agent) == ("idle", "stalled", 8)
    assert model.options == [*[FREE] * 3, *[FORCED] * 5]
    asked = [request[-1].text for request in model.requests[2:]]
    assert ["its text as `completed`" in text for text in asked] == [False, *[True] * 4, False]


@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
async def test_a_refused_choice_is_left_out_from_then_on(door: str) -> None:
    model = talks("t", "t", REFUSAL, times=5)
    agent = laid(model)
    await ran(agent, door)
    model.assert_done()
    assert ended(agent) == ("idle", "stalled", 8)
    assert model.options == [*[FREE] * 3, FORCED, *[FREE] * 5]


def test_a_forced_call_then_words_is_forced_again_and_the_models_own_call_is_not() -> None:
    model = talks("t", "t", calls(looks(1)), "t", calls(looks(2)), calls(looks(3)), "t", "t", times=0)
    agent = laid(model, settings={"max_wake_cycles": 4, "earn_wakes": 0, "guard_retries": 0})
    agent.invoke(GO, THREAD)
    model.assert_done()
    assert model.options == [FREE, FREE, FREE, FORCED, FREE, FORCED, FREE, FREE, FREE]


@pytest.mark.parametrize("reply", [says(""), says('{"name": "look", "arguments": {"path": "x"}}')])
def test_a_forced_reply_that_is_not_an_answer_is_asked_for_again_with_force(reply: Any) -> None:
    model = talks("t", "t", reply, calls(plan("a!")), "bye", times=0)
    agent = laid(model)
    agent.invoke(GO, THREAD)
    model.assert_done()
    assert ended(agent)[1] == "settled"
    assert model.options == [FREE, FREE, FREE, FORCED, FORCED, FREE]


def test_after_a_person_has_decided_about_a_shell_command_the_wake_is_a_plain_one() -> None:
    model = talks("t", "t", calls(("run_shell", {"command": "ls"})), "Wait until tomorrow.", "t", times=0)
    agent = laid(
        model,
        tools=[shell_tool(".")],
        settings={"max_wake_cycles": 3, "earn_wakes": 0, "guard_retries": 0},
    )
    agent.invoke(GO, THREAD)
    agent.invoke(Command(resume="no"), THREAD)
    model.assert_done()
    assert model.options == [FREE, FREE, FREE, FORCED, FREE, FREE]


def test_after_a_person_has_decided_in_langchains_middleware_the_wake_is_a_plain_one() -> None:
    model = talks("t", "t", calls(looks(1)), "Wait until tomorrow.", "t", times=0)
    agent = laid(
        model,
        HumanInTheLoopMiddleware({"look": True}),
        settings={"max_wake_cycles": 3, "earn_wakes": 0, "guard_retries": 0},
    )
    agent.invoke(GO, THREAD)
    agent.invoke(Command(resume={"decisions": [{"type": "reject", "message": "no"}]}), THREAD)
    model.assert_done()
    assert model.options == [FREE, FREE, FREE, FORCED, FREE, FREE]


def test_never() -> None:
    model = talks(times=7)
    agent = laid(model, settings={"force_call": "never"})
    agent.invoke(GO, THREAD)
    assert model.options == [FREE] * 8


class Chooses(AgentMiddleware):
    """Another middleware with its own choice."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(tool_choice="auto"))


@pytest.mark.parametrize("first", [True, False], ids=["around", "inside"])
def test_another_middlewares_choice_is_kept(first: bool) -> None:
    model = talks(times=7)
    layer = WakeLoopMiddleware()
    order = [Chooses(), layer] if first else [layer, Chooses()]
    over(model, *order).invoke(GO, THREAD)
    assert model.options == [{"tool_choice": "auto"}] * 8


def test_a_middleware_that_retries_does_not_end_the_run_over_a_refused_choice() -> None:
    """It would replace the reply with its own words."""
    model = talks("t", "t", REFUSAL, REFUSAL, times=5)
    agent = laid(model, ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False))
    agent.invoke(GO, THREAD)
    model.assert_done()
    assert ended(agent) == ("idle", "stalled", 8)
    assert model.options == [*[FREE] * 3, FORCED, FORCED, *[FREE] * 5]
    assert "Model call failed" not in str(agent.get_state(THREAD).values["messages"])


def test_a_fallback_that_accepts_the_choice_is_not_asked_a_second_time() -> None:
    model, other = talks("t", "t", REFUSAL, "t", times=0), ScriptedModel(["t"])
    agent = laid(model, ModelFallbackMiddleware(other), settings={"max_wake_cycles": 3, "guard_retries": 0})
    agent.invoke(GO, THREAD)
    model.assert_done()
    assert (model.options[3:], other.options) == ([FORCED, FORCED], [FORCED])


class City(BaseModel):
    """A place."""

    city: str


def test_an_answer_in_a_format_is_asked_for_by_its_own_tool() -> None:
    format_ = calls(("City", {"city": "Bern"}))
    model = ScriptedModel([calls(plan("a")), "t", "t", calls(plan("a!")), "bye", format_])
    agent = laid(model, response_format=ToolStrategy(City))
    out = agent.invoke(GO, THREAD)
    model.assert_done()
    assert out["structured_response"] == City(city="Bern")
    assert model.options == [FREE, FREE, FREE, FORCED, FREE, {"tool_choice": "any"}]
