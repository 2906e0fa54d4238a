"""Two processes steer a run at once, at a hundred offsets: nothing is lost and nothing comes twice."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel, calls
from wakeloop.thread.steering import find_next_input, list_waiting

pytestmark = pytest.mark.slow

OFFSETS = 50  # from each of the two
PERSON = """
import sqlite3, sys, time
from langgraph.store.sqlite import SqliteStore
from wakeloop import steer
where, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = SqliteStore(sqlite3.connect(where, isolation_level=None, timeout=30))
store.is_setup = True
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    steer(store, "t", f"{name} {number}")
    time.sleep(0.0007 * number)
"""


@pytest.mark.timeout(300)
def test_two_people_at_once(tmp_path: Path) -> None:
    where, at = str(tmp_path / "t.db"), {"configurable": {"thread_id": "t"}}
    ours = sqlite3.connect(where, check_same_thread=False, timeout=30)
    theirs = sqlite3.connect(where, check_same_thread=False, isolation_level=None, timeout=30)
    with closing(ours), closing(theirs):
        saver, store = SqliteSaver(ours), SqliteStore(theirs)
        saver.setup()
        store.setup()
        command = [sys.executable, "-c", PERSON, where]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        people = [subprocess.Popen([*command, name, str(OFFSETS)], **pipes) for name in ("ada", "bob")]
        assert [person.stdout.readline() for person in people if person.stdout] == ["ready\n"] * 2
        steps = 0

        def look() -> str:
            """Look."""
            time.sleep(0.005)
            return f"seen at {time.monotonic()}"

        def reply(_request: Any) -> Any:
            nonlocal steps
            steps += 1
            busy = any(person.poll() is None for person in people)
            return calls(("look", {})) if busy and steps % 7 else "For now."

        agent = create_todo_agent(ScriptedModel(repeat(reply)), [look], checkpointer=saver, store=store)
        for person in people:
            assert person.stdin is not None
            person.stdin.write("go\n")
            person.stdin.flush()
        given: Any = {"messages": [("user", "Go.")]}
        while given or any(person.poll() is None for person in people):
            agent.invoke(given or {"messages": []}, {**at, "recursion_limit": 10_000}, durability="sync")
            given = {"messages": []} if find_next_input(agent, agent.get_state(at)) else None
        if find_next_input(agent, agent.get_state(at)):
            agent.invoke({"messages": []}, at, durability="sync")
        for person in people:
            person.communicate()
            assert person.returncode == 0
        values = agent.get_state(at).values
        said = [m.text for m in values["messages"] if m.type == "human" and m.text[:3] in ("ada", "bob")]
        assert Counter(said) == Counter(f"{name} {n}" for name in ("ada", "bob") for n in range(OFFSETS))
        for name in ("ada", "bob"):
            assert [text for text in said if text.startswith(name)] == [f"{name} {n}" for n in range(OFFSETS)]
        assert list_waiting(store, "t", values) == []
