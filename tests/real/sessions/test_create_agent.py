"""A host runs a `create_agent` agent with the middleware like any other."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.sqlite import SqliteSaver

from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.sessions.dbos import DbosHost
from wakeloop.testing import ScriptedModel, calls, says

pytestmark = pytest.mark.slow


def plan(status: str) -> Any:
    return calls(("write_todos", {"todos": [{"content": "a", "status": status}]}))


def test_events_wake_it_and_an_answer_approves_its_plan(tmp_path: Path) -> None:
    model = ScriptedModel(plan("pending"), says("stop"), plan("completed"), says("bye"), says("Well."))
    layer = WakeLoopMiddleware(settings={"approve_plan": "first"})
    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        agent: Any = create_agent(model, middleware=[layer], checkpointer=SqliteSaver(connection))
        with DbosHost(f"sqlite:///{tmp_path / 'sessions.db'}", {"main": agent}, polling=0.05) as host:
            seen = []
            for text in ("go", "y", "and?"):
                host.send("t", {"kind": "human", "text": text})
                assert host.wait("t", timeout=30)
                status = host.status("t")
                seen.append((status.state, status.reason, status.on, status.wakes, len(model.requests)))
    assert seen == [
        ("waiting", "interrupted", "approval", 0, 1),
        ("dormant", "settled", None, 1, 4),
        ("dormant", "answered", None, 0, 5),
    ]
