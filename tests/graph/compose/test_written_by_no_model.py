"""Rule 22 in an agent: what other middleware writes in the model's place, and replies that answer nothing."""

import asyncio
from typing import Any

import pytest
from laid_over import GO, THREAD, ended, laid, look, looks, over, plan
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    ToolCallLimitMiddleware,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from wakeloop import answer_of
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says

DOORS = pytest.mark.parametrize("door", ["invoke", "ainvoke", "stream", "astream"])
PRINTED = '<tool_call>{"name": "look", "arguments": {"path": "a"}}</tool_call>'


PLACES = pytest.mark.parametrize("place", ["inside", "around"])


def run(agent: Any, door: str) -> None:
    if door == "invoke":
        agent.invoke(GO, THREAD)
    elif door == "ainvoke":
        asyncio.run(agent.ainvoke(GO, THREAD))
    elif door == "stream":
        list(agent.stream(GO, THREAD, stream_mode="messages"))
    else:

        async def drain() -> None:
            async for _ in agent.astream(GO, THREAD, stream_mode="messages"):
                pass

        asyncio.run(drain())


class PlainModel(BaseChatModel):
    """A custom chat model: its messages have no ids, metadata or usage."""

    steps: list[Any] = []  # noqa: RUF012 - pydantic copies it
    asked: int = 0

    @property
    def _llm_type(self) -> str:
        return "plain"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        self.asked += 1
        step = self.steps[min(self.asked, len(self.steps)) - 1]
        if isinstance(step, Exception):
            raise step
        return ChatResult(generations=[ChatGeneration(message=step)])


class DirectModel(PlainModel):
    """Answers without LangChain's help, so nobody sees its calls."""

    def invoke(self, messages: Any, config: Any = None, **_: Any) -> Any:
        return self._generate(messages).generations[0].message

    async def ainvoke(self, messages: Any, config: Any = None, **_: Any) -> Any:
        return self._generate(messages).generations[0].message


def tried(retries: int = 2) -> Any:
    return ModelRetryMiddleware(max_retries=retries, initial_delay=0, jitter=False)


def placed(place: str, model: Any, other: Any) -> Any:
    """An agent with another middleware inside or around this one."""
    layers = [WakeLoopMiddleware(), other]
    return over(model, *(layers if place == "inside" else reversed(layers)))


@DOORS
@PLACES
@pytest.mark.parametrize("make", [PlainModel, DirectModel])
def test_c57_a_give_up_ends_the_run(door: str, place: str, make: Any) -> None:
    model = make(steps=[calls(plan("a", "b")), ConnectionError("down")])
    agent = placed(place, model, tried())
    run(agent, door)
    assert model.asked == 4  # the list, three attempts, and no request after them
    assert ended(agent)[:2] == ("failed", "failed")
    values = agent.get_state(THREAD).values
    assert str(values["messages"][-1].text).startswith("Model call failed after 3 attempts")
    assert answer_of(values) == ""


@DOORS
@pytest.mark.parametrize("make", [PlainModel, DirectModel])
def test_c57_a_custom_model_behind_a_retry_is_a_model(door: str, make: Any) -> None:
    model = make(
        steps=[ConnectionError("down"), AIMessage("stop"), ConnectionError("down"), AIMessage("Done.")]
    )
    agent = laid(model, tried())
    run(agent, door)
    assert (model.asked, ended(agent)[:2]) == (2, ("dormant", "answered"))
    assert answer_of(agent.get_state(THREAD)) == "stop"


@DOORS
def test_c57_a_fallback_is_a_model(door: str) -> None:
    model, spare = PlainModel(steps=[ConnectionError("down")]), PlainModel(steps=[AIMessage("Paris.")])
    agent = laid(model, ModelFallbackMiddleware(spare))
    run(agent, door)
    assert ended(agent)[:2] == ("dormant", "answered")


class Cached(AgentMiddleware):
    """Answers in the model's place, with an earlier reply of the model or with its own words."""

    def __init__(self, reply: AIMessage) -> None:
        super().__init__()
        self.reply = reply

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return self.reply

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return self.reply


@DOORS
@PLACES
@pytest.mark.parametrize(
    ("reply", "reason"),
    [(AIMessage("Paris.", id="run-1"), "answered"), (AIMessage("Not allowed."), "ended_elsewhere")],
)
def test_a_reply_of_another_middleware(door: str, place: str, reply: AIMessage, reason: str) -> None:
    model = PlainModel(steps=[AIMessage("never")])
    agent = placed(place, model, Cached(reply))
    run(agent, door)
    assert (model.asked, ended(agent)[1]) == (0, reason)


@DOORS
def test_a_turn_in_which_one_call_went_through_is_woken(door: str) -> None:
    few = {"max_wake_cycles": 1, "guard_retries": 0}
    model = ScriptedModel(
        calls(plan("a")), calls(looks(1)), calls(looks(2)), says("Blocked."), says("Blocked.")
    )
    limit = ToolCallLimitMiddleware(tool_name="look", thread_limit=1, exit_behavior="continue")
    agent = laid(model, limit, settings=few)
    run(agent, door)
    model.assert_done()
    assert ended(agent)[:2] == ("idle", "wake_budget")


@DOORS
def test_c57_no_wake_after_a_turn_of_blocked_calls(door: str) -> None:
    model = ScriptedModel(calls(plan("a")), calls(looks(1)), says("I cannot look."))
    agent = laid(model, ToolCallLimitMiddleware(tool_name="look", run_limit=0, exit_behavior="continue"))
    run(agent, door)
    model.assert_done()
    assert ended(agent)[:2] == ("idle", "ended_elsewhere")


@DOORS
def test_c57_an_item_that_the_model_closes_after_blocked_calls_is_closed(door: str) -> None:
    model = ScriptedModel(calls(plan("a")), calls(looks(1)), calls(plan("a!")), says("I gave up."))
    agent = laid(model, ToolCallLimitMiddleware(tool_name="look", run_limit=0, exit_behavior="continue"))
    run(agent, door)
    model.assert_done()
    assert ended(agent)[:2] == ("dormant", "settled")


@DOORS
@pytest.mark.parametrize("settled", [False, True], ids=["no list", "a settled list"])
def test_c57_blocked_calls_with_nothing_open(door: str, *, settled: bool) -> None:
    before = [calls(plan("a!")), says("Closed.")] if settled else []
    model = ScriptedModel(*before, calls(looks(1)), says("I cannot look."))
    agent = laid(model, ToolCallLimitMiddleware(tool_name="look", run_limit=0, exit_behavior="continue"))
    for _ in range(1 + settled):
        run(agent, door)
    model.assert_done()
    assert ended(agent)[:2] == ("dormant", "ended_elsewhere")


@DOORS
def test_c57_a_call_limits_message(door: str) -> None:
    model = ScriptedModel(calls(plan("a")), says("stop"), says("stop"))
    agent = laid(model, ModelCallLimitMiddleware(run_limit=3))
    run(agent, door)
    model.assert_done()
    assert ended(agent)[:2] == ("idle", "ended_elsewhere")


@DOORS
@pytest.mark.parametrize(
    ("replies", "asked", "reason"),
    [
        ([says("I look.", finish_reason="tool_calls")] * 5, 5, "malformed_calls"),
        ([PRINTED] * 5, 5, "malformed_calls"),
        ([calls(looks(1), text="Let me look first."), *[""] * 5], 6, "empty_reply"),
        (["", "", "Paris."], 3, "answered"),
        ([calls(plan("a")), "", "", calls(plan("a!")), "Done."], 5, "settled"),
    ],
)
def test_replies_that_are_not_answers(door: str, replies: Any, asked: int, reason: str) -> None:
    model = ScriptedModel(*replies)
    agent = laid(model, tools=[look])
    run(agent, door)
    model.assert_done()
    assert (len(model.requests), ended(agent)[1]) == (asked, reason)
    assert answer_of(agent.get_state(THREAD)) == {"answered": "Paris.", "settled": "Done."}.get(reason, "")


def test_a_printed_call_is_run_in_an_agent() -> None:
    model = ScriptedModel(f"I look.\n\n{PRINTED}", "Done.")
    agent = laid(model, settings={"printed_calls": "run"})
    out = agent.invoke(GO, THREAD)
    model.assert_done()
    assert [m.type for m in out["messages"]] == ["human", "ai", "tool", "ai"]
    assert out["messages"][2].content == "saw a"
    assert out["messages"][1].content == "I look."
