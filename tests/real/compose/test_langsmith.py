"""What LangSmith's client sends to a server about a run."""

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from shared_tools import ask
from tracing import LangSmith, ours

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel, calls, says

THREAD: Any = {"configurable": {"thread_id": "t"}}


@pytest.mark.loopback
@pytest.mark.parametrize("door", ["sync", "async"])
def test_langsmith_sees_thread_activation_cycle_reason_and_todo_calls(door: str) -> None:
    plan = calls(("todo_write", {"items": ["a"]}), ("ask", {"question": "?"}))
    model = ScriptedModel(plan, says("Soon."), calls(("todo_update", {"id": 1, "status": "done"})), says("."))
    agent = create_todo_agent(model, [ask], checkpointer=InMemorySaver())
    with LangSmith().listening() as server:
        for given in ({"messages": [("user", "go")]}, Command(resume="yes")):
            if door == "sync":
                agent.invoke(given, THREAD)
            else:
                asyncio.run(agent.ainvoke(given, THREAD))
    parked, ended = server.named("wakeloop")
    assert {run["thread_id"] for run in (parked, ended, *server.named("wake"))} == {"t"}
    (woken,) = server.named("wake")
    told = {"activation": ours(parked)["activation"], "cycle": 1, "budget": 25, "reasons": ["todos"]}
    assert ours(woken) == {**told, "open": 1}
    end = {
        "state": "dormant",
        "reason": "settled",
        "open": 0,
        "wakes": 1,
        "list": 2,
        "items": 1,
        "completed": 1,
        "cancelled": 0,
        "blocked": 0,
    }
    assert ours(ended) == {**told, **end, "budget": 26}
    kinds = {run["name"]: run["run_type"] for run in server.runs.values()}
    assert kinds["todo_write"] == kinds["todo_update"] == kinds["ask"] == "tool"
    nodes = {run["id"]: run["name"] for run in server.runs.values()}
    by = {run["name"]: nodes[run["parent_run_id"]] for run in server.runs.values() if run["parent_run_id"]}
    assert (by["todo_write"], by["wake"]) == ("validate_todos", "wakeloop")
