"""What a step of an agent costs with the middleware, in function calls, against LangChain's own list."""

import sys
from math import log
from typing import Any

import pytest
from laid_over import GO, look
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult

from wakeloop.middleware import ChangesState, WakeLoopMiddleware


class Job(BaseChatModel):
    """Plans some items; then, for each, looks and sends the whole list."""

    items: int

    @property
    def _llm_type(self) -> str:
        return "job"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(tools=tools, **options)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        step = sum(message.type == "ai" for message in messages)
        done, looks = divmod(step, 2)
        if done > self.items or (done == self.items and looks):
            reply = AIMessage("Done.")
        else:
            todos = [self.item(number, done) for number in range(self.items)]
            args = {"path": f"{done}"} if looks else {"todos": todos}
            call = ToolCall(name="look" if looks else "write_todos", args=args, id=f"call-{step}")
            reply = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def item(self, number: int, done: int) -> dict[str, str]:
        return {"content": f"item {number}", "status": "completed" if number < done else "pending"}


def calls_per_step(make: Any, items: int, **options: Any) -> float:
    """The function calls of a whole run, Python's and C's, for each request."""
    count = 0

    def profile(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    agent = create_agent(Job(items=items), [look], middleware=[make()], **options)
    agent.invoke(GO)  # what is imported or cached at first use is not counted
    sys.setprofile(profile)
    try:
        agent.invoke(GO)
    finally:
        sys.setprofile(None)
    return count / (2 * items + 2)


@pytest.mark.parametrize("options", [{}, {"state_schema": ChangesState}], ids=["whole", "changes"])
def test_at_80_items_a_step_is_at_most_twice_theirs_and_grows_slowly(options: Any) -> None:
    theirs = calls_per_step(TodoListMiddleware, 80)
    small, large = (calls_per_step(WakeLoopMiddleware, items, **options) for items in (20, 80))
    assert large <= 2 * theirs
    assert log(large / small, 80 / 20) <= 0.5  # with a list four times as long, at most twice
