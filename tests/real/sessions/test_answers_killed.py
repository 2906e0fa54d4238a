"""A worker is killed at every point around an answer: the answer counts once, for one question."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import RunControl
from test_worker import Frail, Killed, Sender

from wakeloop import create_todo_agent
from wakeloop.sessions.dbos.database import open_engine
from wakeloop.sessions.thread_runner import ThreadRunner
from wakeloop.testing import ScriptedModel, calls
from wakeloop.tools.shell import shell_tool

POINTS = ["before it begins", "before its input is stored", "in its request", "before it is let go"]
CONFIG: Any = {"configurable": {"thread_id": "main"}}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("point", POINTS)
def test_one_yes_approves_one_command(point: str, named: bool, tmp_path: Path) -> None:
    mailbox = Frail(open_engine(f"sqlite:///{tmp_path / 'sessions.db'}"))
    mailbox.create_tables()

    def runs(name: str) -> Any:
        def reply(_: Any) -> Any:
            mailbox.dies("in its request")
            return calls(("run_shell", {"command": f"touch {name}"}))

        return reply

    model = ScriptedModel([runs("a"), runs("b"), runs("b")])
    agent: Any = create_todo_agent(model, tools=[shell_tool(tmp_path)], checkpointer=InMemorySaver())
    work = ThreadRunner(mailbox, Sender(mailbox))  # type: ignore[arg-type]
    mailbox.add_event("main", {"kind": "human", "id": "go", "text": "go"})
    work.run_waiting(agent, "main", RunControl())
    [question] = agent.get_state(CONFIG).interrupts
    yes: Any = {"kind": "human", "id": "yes", "text": "yes"}
    mailbox.add_event("main", {**yes, "correlation_id": question.id} if named else yes)
    Frail.point = point
    for _ in range(2):
        with suppress(Killed):
            work.run_waiting(agent, "main", RunControl())
    assert Frail.point is None  # it died there
    [next_one] = agent.get_state(CONFIG).interrupts
    assert next_one.value["action_requests"][0]["args"]["command"] == "touch b"
    assert [(tmp_path / name).exists() for name in "ab"] == [True, False]
    assert mailbox.list_waiting("main") == []
    mailbox.engine.dispose()
