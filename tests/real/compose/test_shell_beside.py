"""The middleware next to LangChain's shell, whose process is stopped by a hook after the agent."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ShellToolMiddleware

from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says


def plan(status: str) -> Any:
    return "write_todos", {"todos": [{"content": "a", "status": status}]}


def shell(command: str) -> Any:
    return calls(("shell", {"command": command}))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # its pipes stay open
@pytest.mark.parametrize("door", ["sync", "async"])
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
async def test_one_shell_serves_the_whole_run(first: bool, door: str) -> None:
    """A variable that is set before a wake is there after it."""
    script = [
        calls(plan("pending")),
        shell("export A=5"),
        says("stop"),
        shell("echo A is $A"),
        calls(plan("completed")),
        says("bye"),
    ]
    other: Any = ShellToolMiddleware()
    ours = WakeLoopMiddleware()
    agent = create_agent(ScriptedModel(*script), middleware=[ours, other] if first else [other, ours])
    go: Any = {"messages": [("user", "go")]}
    result = agent.invoke(go) if door == "sync" else await agent.ainvoke(go)
    assert "A is 5" in [m.text.strip() for m in result["messages"] if m.type == "tool" and m.name == "shell"]
    assert (result["todo_session"]["reason"], result["todo_session"]["wakes"]) == ("settled", 1)
