"""Open questions in `create_agent` and in a parent graph, whatever comes instead of the answer."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.types import Command

from wakeloop import InputError, TodoState, create_todo_agent
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says, wire_faults
from wakeloop.tools import shell_tool

CONFIG: Any = {"configurable": {"thread_id": "1"}}
GO: Any = {"messages": [("user", "go")]}
WRITE = calls(("todo_write", {"items": ["a"]}))
DONE = calls(("todo_update", {"id": 1, "status": "done"}))
REJECTED = "Error: the user rejected this call; it was not run."


def shells(*commands: str) -> Any:
    return calls(*(("run_shell", {"command": command}) for command in commands))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the commands that the shell would have run."""
    commands: list[str] = []
    monkeypatch.setattr("wakeloop.tools.shell.run_command", lambda command, *_: commands.append(command))
    return commands


def in_agent(model: Any, saver: Any = None, *, ask: bool = True, **settings: Any) -> Any:
    """Build a LangChain agent with the middleware."""
    middleware: Any = [WakeLoopMiddleware(settings={"preset": "wakeloop", **settings})]
    return create_agent(model, [shell_tool(".", ask=ask)], middleware=middleware, checkpointer=saver)


def in_parent(model: Any, saver: Any = None, *, ask: bool = True, **settings: Any) -> Any:
    """Build an agent that keeps its thread inside a parent graph."""
    child = create_todo_agent(
        model, [shell_tool(".", ask=ask)], settings={"preset": "wakeloop", **settings}, checkpointer=True
    )
    parent = StateGraph(TodoState).add_node("child", child).add_edge("__start__", "child")
    return parent.compile(checkpointer=saver)


def results(out: Any) -> list[str]:
    return [m.text.partition(" They")[0].partition(" Do not")[0] for m in out["messages"] if m.type == "tool"]


def resume(out: Any, answer: Any) -> Any:
    return Command(resume={one.id: answer for one in out["__interrupt__"]})


@pytest.mark.parametrize(("answer", "first"), [("n", []), ("ok", ["a"])])
def test_c93_a_shell_that_asks_nobody_takes_the_answer(ran: list[str], answer: str, first: list[str]) -> None:
    saver = InMemorySaver()
    out = in_agent(ScriptedModel([shells("a")]), saver).invoke(GO, CONFIG)
    then = in_agent(ScriptedModel([shells("later"), says("bye")]), saver, ask=False)
    then.invoke(resume(out, answer), CONFIG)
    assert ran == [*first, "later"]


@pytest.mark.parametrize("make", [in_agent, in_parent])
@pytest.mark.parametrize(("answer", "commands"), [("no", []), ("yes", ["a", "b"])])
def test_c65_another_input_does_not_drop_the_question(
    make: Any, ran: list[str], answer: str, commands: list[str]
) -> None:
    model = ScriptedModel([shells("a", "b"), says("bye")])
    agent = make(model, InMemorySaver())
    agent.invoke(GO, CONFIG)
    for given in ({"messages": [("user", "y")]}, {"messages": [("user", "hm")]}):
        out = agent.invoke(given, CONFIG)
        asked = [one.value["action_requests"] for one in out["__interrupt__"]]
        assert sorted(one["args"]["command"] for part in asked for one in part) == ["a", "b"]
    assert (ran, len(model.requests)) == ([], 1)
    out = agent.invoke(resume(out, answer), CONFIG)
    assert (sorted(ran), len(model.requests)) == (commands, 2)
    if not commands:
        assert results(out) == [REJECTED] * 2
    assert [m.text for m in out["messages"] if m.type == "human"] == ["go", "y", "hm"]
    assert wire_faults(model.requests) == []


@pytest.mark.parametrize("make", [in_agent, in_parent])
def test_c65_a_plan_is_asked_about_again(make: Any) -> None:
    model = ScriptedModel([WRITE, DONE, says("bye")])
    agent = make(model, InMemorySaver(), approve_plan="first")
    agent.invoke(GO, CONFIG)
    out = agent.invoke({"messages": [("user", "hm")]}, CONFIG)
    [asked] = out["__interrupt__"]
    assert asked.value["action_requests"][0]["name"] == "approve_plan"
    assert len(model.requests) == 1
    out = agent.invoke(Command(resume="yes"), CONFIG)
    assert [(todo["content"], todo["status"]) for todo in out["todos"]] == [("a", "completed")]
    assert (len(model.requests), wire_faults(model.requests)) == (3, [])


@pytest.mark.parametrize("settings", [{}, {"approve_plan": "first"}])
def test_c66_without_a_checkpointer_nothing_is_requested(settings: Any) -> None:
    model = ScriptedModel([])
    with pytest.raises(InputError, match="This agent needs a checkpointer"):
        in_agent(model, **settings).invoke(GO)
    assert model.requests == []
