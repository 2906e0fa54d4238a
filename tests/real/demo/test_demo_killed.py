"""The demo, killed and resumed in processes of its own."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from audited import GO, REPORT, agent_for, ask, check_reads_nothing_twice, project, values
from langgraph.checkpoint.sqlite import SqliteSaver

from wakeloop import session_of


@pytest.fixture
def root(tmp_path):
    return project(tmp_path)


RUN = """
import sqlite3, sys
from pathlib import Path
from langgraph.checkpoint.sqlite import SqliteSaver
from wakeloop import create_todo_agent
from wakeloop.demo.job import demo_tools, request_text
from wakeloop.demo.offline import OfflineAuditor
root = Path(sys.argv[1])
saver = SqliteSaver(sqlite3.connect(sys.argv[2], check_same_thread=False))
graph = create_todo_agent(OfflineAuditor(delay=0.1), demo_tools(root), checkpointer=saver)
message = {"messages": [("user", request_text(root))]}
config = {"configurable": {"thread_id": "1"}}
for name in graph.stream(message, config, stream_mode="updates", durability="sync"):
    print(*name, flush=True)
"""


@pytest.mark.parametrize("message", [None, "go on"])
def test_killed_and_resumed_it_finishes(root, tmp_path, message):
    path = tmp_path / "threads.db"
    process = subprocess.Popen([sys.executable, "-c", RUN, root, path], stdout=subprocess.PIPE, text=True)
    with process:
        for _ in range(21):  # in the middle of the second file
            assert process.stdout.readline()
        time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    with sqlite3.connect(path, check_same_thread=False) as database:
        graph = agent_for(root, saver=SqliteSaver(database))
        assert session_of(graph.get_state(GO))["state"] == "running"
        graph.invoke(None if message is None else ask(message), GO)
        assert session_of(graph.get_state(GO))["reason"] == "settled"
        check_reads_nothing_twice(values(graph)["messages"])
    database.close()
    assert "Files: 3," in (root / REPORT).read_text()
