"""The demo, killed and resumed in processes of its own."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from wakeloop import create_todo_agent, session_of
from wakeloop.demo.job import OfflineAuditor, demo_tools

RUN = """
import sqlite3, sys
from pathlib import Path
from langgraph.checkpoint.sqlite import SqliteSaver
from wakeloop import create_todo_agent
from wakeloop.demo.job import OfflineAuditor, demo_tools, request_text
root = Path(sys.argv[1])
saver = SqliteSaver(sqlite3.connect(sys.argv[2], check_same_thread=False))
graph = create_todo_agent(OfflineAuditor(root, delay=0.1), demo_tools(root), checkpointer=saver)
message = {"messages": [("user", request_text(root))]}
config = {"configurable": {"thread_id": "1"}}
for name in graph.stream(message, config, stream_mode="updates", durability="sync"):
    print(*name, flush=True)
"""
THREAD: Any = {"configurable": {"thread_id": "1"}}


@pytest.mark.parametrize("message", [None, "continue"])
def test_killed_and_resumed_it_measures_nothing_twice(tmp_path: Path, message: str | None) -> None:
    root, path = tmp_path / "project", tmp_path / "threads.db"
    root.mkdir()
    for number in range(3):
        (root / f"part{number}.py").write_text("x = 1\n")
    process = subprocess.Popen([sys.executable, "-c", RUN, root, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process:
        for _ in range(6):
            assert process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    with sqlite3.connect(path, check_same_thread=False) as database:
        saver = SqliteSaver(database)
        graph = create_todo_agent(OfflineAuditor(root), demo_tools(root), checkpointer=saver)
        assert session_of(graph.get_state(THREAD))["state"] == "running"
        graph.invoke(None if message is None else {"messages": [("user", message)]}, THREAD)
        assert session_of(graph.get_state(THREAD))["reason"] == "settled"
        measured = []
        for stored in graph.get_state(THREAD).values["messages"]:
            calls = stored.tool_calls if isinstance(stored, AIMessage) else []
            measured += [call["args"]["path"] for call in calls if call["name"] == "measure_file"]
        assert sorted(measured) == ["part0.py", "part1.py", "part2.py"]
    database.close()
    assert "3 files, 3 lines." in (root / "wakeloop-report.md").read_text()
