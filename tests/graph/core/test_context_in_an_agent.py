"""Rule 28 in `create_agent`, also next to LangChain's own middleware for long threads."""

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
)
from langchain_core.exceptions import ContextOverflowError
from small_windows import TOOLS, WINDOW, weak_model

from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, wire_faults

TODO_TOOLS = ["todo_write", "todo_update", "todo_list"]
EDIT = ClearToolUsesEdit(trigger=8_000, keep=2, exclude_tools=TODO_TOOLS, placeholder="cleared:")
OTHERS: dict[str, list[Any]] = {
    "alone": [],
    "editing": [ContextEditingMiddleware(edits=[EDIT])],
    "retrying": [ModelRetryMiddleware(max_retries=1, initial_delay=0.0, jitter=False)],
}
GIVEN: Any = {"messages": [("user", "Do it all.")]}


def run(model: Any, door: str, others: list[Any], **settings: Any) -> dict[str, Any]:
    ours = WakeLoopMiddleware(settings={"preset": "wakeloop", **settings})
    agent = create_agent(model, TOOLS, middleware=[ours, *others])
    config: Any = {"recursion_limit": 10_000}
    if door == "sync":
        return agent.invoke(GIVEN, config)
    return asyncio.run(agent.ainvoke(GIVEN, config))


@pytest.mark.parametrize("other", OTHERS)
def test_a_refusal_teaches_the_window_next_to_other_middleware(door: str, other: str) -> None:
    model = weak_model(20)
    out = run(model, door, OTHERS[other])
    session = out["todo_session"]
    assert (session["reason"], session["completed"]) == ("settled", 20)
    assert len(model.refused) == {"alone": 1, "editing": 0, "retrying": 2}[other]
    assert wire_faults(model.requests) == []


@pytest.mark.parametrize("other", OTHERS)
def test_a_setting_clears_before_the_server_refuses(door: str, other: str) -> None:
    model = weak_model(20)
    out = run(model, door, OTHERS[other], max_context=WINDOW)
    assert (out["todo_session"]["completed"], model.refused, len(model.requests)) == (20, [], 22)


def test_three_refusals_end_the_run(door: str) -> None:
    model = ScriptedModel(calls(("look", {"path": "a"})), *[ContextOverflowError("No.")] * 3)
    session = run(model, door, [])["todo_session"]
    assert (session["reason"], len(model.requests)) == ("context_full", 4)


def test_a_summary_in_the_thread_is_left_alone(door: str) -> None:
    words = ScriptedModel(*["The first files were looked at."] * 50)
    summary = SummarizationMiddleware(words, trigger=("tokens", 6_000), keep=("messages", 6))
    model = ScriptedModel(*(calls(("look", {"path": f"f{n}"})) for n in range(12)), "Done.")
    out = run(model, door, [summary], max_context=WINDOW)
    assert (out["todo_session"]["reason"], len(model.requests)) == ("answered", 13)
    assert any("The first files" in str(message.content) for message in model.requests[-1])
    assert wire_faults(model.requests) == []
