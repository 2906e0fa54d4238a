"""Case C25: a message, or an answer, to a process that was killed."""

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from killed import THREAD, log_of, tools_over
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from rig import close, results, users

from wakeloop import create_todo_agent, session_of
from wakeloop.testing import ScriptedModel, wire_faults

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


def kill_run(db: Path, where: str) -> None:
    process = subprocess.run(
        [sys.executable, str(HERE / "killed.py"), str(db), where],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == -9, process.stderr.decode()


def reopen_thread(db: Path, *replies: Any) -> tuple[Any, ScriptedModel, sqlite3.Connection]:
    connection = sqlite3.connect(db, check_same_thread=False)
    model = ScriptedModel(*replies)
    agent = create_todo_agent(model, tools_over(db, deadly=False), checkpointer=SqliteSaver(connection))
    return agent, model, connection


KILLED = {
    # where, and how it continues: the tools' log, the results' contents
    "tool, on": ("tool", None, ["edit x", "risky"], ["edited x", "survived"]),
    "tool, message": ("tool", "hello", ["edit x"], ["may or may not", "may or may not"]),
    "model, on": ("model", None, ["edit x"], ["edited x"]),
    "model, message": ("model", "hello", ["edit x"], ["edited x"]),
    "parked, resume": ("parked", Command(resume="yes"), ["edit x"], ["edited x", "yes", "Stored 1 item"]),
    "parked, message": (
        "parked",
        "hello",
        ["edit x"],
        ["may or may not", "may or may not", "nothing was stored"],
    ),
}


@pytest.mark.parametrize(("where", "given", "log", "told"), KILLED.values(), ids=KILLED)
def test_c25_killed(tmp_path: Path, where: str, given: Any, log: list[str], told: list[str]) -> None:
    db = tmp_path / "threads.db"
    kill_run(db, where)
    ids = (1, 2) if isinstance(given, Command) else (1,)
    agent, model, connection = reopen_thread(db, close(*ids), "Done.", "Second.")
    before = agent.get_state(THREAD)
    assert session_of(before)["state"] == ("waiting" if where == "parked" else "running")
    # what had finished next to the question shows until a plain message drops it
    shown = [todo["content"] for todo in before.values["todos"]]
    assert shown == (["a", "b"] if where == "parked" else ["a"])
    agent.invoke({"messages": [("user", given)]} if isinstance(given, str) else given, THREAD)
    assert log_of(db).read_text().split("\n")[:-1] == log
    messages = agent.get_state(THREAD).values["messages"]
    found = sorted(str(m.content) for m in results(messages) if m.tool_call_id in ("e", "r", "q", "w"))
    assert len(found) == len(told)
    assert all(any(part in text for text in found) for part in told)
    assert users(messages) == (["go", given] if isinstance(given, str) else ["go"])
    assert session_of(agent.get_state(THREAD))["reason"] == "settled"
    assert [todo["id"] for todo in agent.get_state(THREAD).values["todos"]] == list(ids)
    agent.invoke({"messages": [("user", "again")]}, THREAD)
    model.assert_done()
    assert wire_faults(model.requests) == []
    connection.close()
