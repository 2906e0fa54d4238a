"""The cost of a step in calls: the package's own, and a whole agent compared with LangChain's own list."""

import sys
from cProfile import Profile
from functools import cache
from math import log
from pathlib import Path
from typing import Any

import pytest
from laid_over import GO, look
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult

import wakeloop
from wakeloop import create_todo_agent, preset
from wakeloop.middleware import ChangesState, WakeLoopMiddleware

pytestmark = pytest.mark.slow

PACKAGE = str(Path(wakeloop.__file__).parent)
INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>")  # no calls of their own from Python 3.12 on
UNBOUNDED = {"max_items": None, "max_requests": None}
# The package's own calls per step, by door and number of items: a change of a tenth fails, in either
# direction.
STEPS = {
    ("graph", 25): 319,
    ("graph", 200): 314,
    ("middleware, items changed", 25): 515,
    ("middleware, items changed", 200): 509,
    ("middleware, whole lists", 25): 557,
}


class Job(BaseChatModel):
    """Plans some items; then, for each, looks and writes to the list: the whole list, or only the item."""

    items: int
    whole: bool = True

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
            name, args = ("look", {"path": f"{done}"}) if looks else self.write(done)
            reply = AIMessage("", tool_calls=[ToolCall(name=name, args=args, id=f"call-{step}")])
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def write(self, done: int) -> tuple[str, dict[str, Any]]:
        if not self.whole:
            if done:
                return "todo_update", {"ids": [done], "status": "done"}
            return "todo_write", {"items": [f"item {number}" for number in range(self.items)]}
        todos = []
        for number in range(self.items):
            status = "completed" if number < done else "pending"
            todos.append({"content": f"item {number}", "status": status})
        return "write_todos", {"todos": todos}


@cache
def calls_per_step(make: Any, items: int, **options: Any) -> float:
    """Return the function calls of a whole run, Python's and C's, per request."""
    count = 0

    def profile(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    few, agent = (create_agent(Job(items=n), [look], middleware=[make()], **options) for n in (2, items))
    few.invoke(GO)  # imports and caches of the first use are not counted
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


def build(door: str, items: int) -> Any:
    """Build an agent for the job."""
    name, _, writes = door.partition(", ")
    model = Job(items=items, whole=writes == "whole lists")
    settings = preset("langchain" if model.whole else "wakeloop").model_copy(update=UNBOUNDED)
    if name == "graph":
        return create_todo_agent(model, [look], settings=settings)
    return create_agent(model, [look], middleware=[WakeLoopMiddleware(settings=settings)])


@pytest.mark.parametrize(("door", "items"), STEPS)
def test_the_packages_own_calls_per_step(door: str, items: int) -> None:
    agent, options = build(door, items), {"recursion_limit": 10_000}
    build(door, 2).invoke(GO)  # imports and caches of the first use are not counted
    profile = Profile(builtins=False)
    profile.enable()
    try:
        agent.invoke(GO, options)
    finally:
        profile.disable()
    count = 0
    for entry in profile.getstats():
        if not isinstance(entry.code, str) and entry.code.co_filename.startswith(PACKAGE):
            count += entry.callcount * (entry.code.co_name not in INLINED)
    assert count / (2 * items + 2) == pytest.approx(STEPS[door, items], rel=0.1)
