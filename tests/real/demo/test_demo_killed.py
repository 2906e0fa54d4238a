"""The demo, killed and resumed in processes of its own."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from pydantic import PrivateAttr

from wakeloop import create_todo_agent, session_of
from wakeloop.demo.history import events
from wakeloop.demo.job import demo_tools
from wakeloop.demo.offline import OfflineAuditor

REPORT = "wakeloop-report.md"
GO = {"configurable": {"thread_id": "1"}}


class Watched(OfflineAuditor):
    """The same, keeping the requests."""

    _requests: list = PrivateAttr(default_factory=list)

    def _generate(self, messages, *args, **kwargs):
        self._requests.append(list(messages))
        return super()._generate(messages, *args, **kwargs)


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "project"
    (root / "docs").mkdir(parents=True)
    (root / "a.py").write_text("def f():\n    # TODO: x | y\n    return 1\n")
    (root / "b.py").write_text("def broken(:\n")
    (root / "docs" / "c.md").write_text("# C\n\n[gone](gone.md) [here](../a.py)\n")
    return root


def agent_for(root, model=None, saver=None, settings="wakeloop", tools=None):
    return create_todo_agent(
        model or Watched(),
        tools or demo_tools(root),
        settings=settings,
        checkpointer=saver or InMemorySaver(),
    )


def ask(text):
    return {"messages": [("user", text)]}


def values(graph):
    return graph.get_state(GO).values


def check_reads_nothing_twice(messages):
    """No file is read again once its item is closed."""
    by_id = {str(number): path for number, path in enumerate(paths_of(messages), 1)}
    closed = set()
    for event in events(messages):
        if event.name == "todo_update" and event.state == "ok":
            closed.add(by_id.get(str(event.args["id"])))
        elif event.name == "read_file":
            assert event.args["path"] not in closed


def paths_of(messages):
    plans = [e for e in events(messages) if e.name == "todo_write" and e.state == "ok"]
    return [item.removeprefix("Audit ") for item in plans[0].args["items"]]


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
