"""Looking at threads: without a graph, with the same result as with one, and on read-only copies of a
database.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt
from processes import wakeloop

from wakeloop import answer_of, create_todo_agent, session_of, update_todos
from wakeloop.channels import conversation
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.show import list_threads, show_thread
from wakeloop.cli.store import DatabaseFile, open_to_write
from wakeloop.cli.stored_state import read_state
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.thread.thread_status import is_unfinished, read_session

NAMES = ["a", "b", "c"]


def filled(path: Path) -> DatabaseFile:
    """A database with three threads."""
    database = DatabaseFile(path, named=True)
    with open_to_write(database) as store:
        for name in NAMES:
            model = ScriptedModel([calls(("todo_write", {"items": ["x"]})), says("later")])
            agent = create_todo_agent(model, checkpointer=store.saver).with_config(recursion_limit=6)
            agent.invoke({"messages": [("user", f"go {name}")]}, {"configurable": {"thread_id": name}})
            store.remember(name, AgentSpec(root=str(path.parent)), f"go {name}")
    return database


LOOKED_AT = [["threads"], ["show", "a", "--history"], ["config", "--thread", "a"], ["todo", "a", "list"]]


@pytest.mark.slow
@pytest.mark.parametrize("args", LOOKED_AT, ids=lambda args: args[0])
def test_looking_at_a_thread_imports_no_graph(tmp_path: Path, args: list[str]) -> None:
    database = filled(tmp_path / "threads.sqlite")
    code = (
        "import sys\nfrom wakeloop.cli.commands.app import app\n"
        "try: app(sys.argv[1:])\nexcept SystemExit as end: assert not end.code, end.code\n"
        "slow = {'langgraph.types', 'langgraph.graph', 'langgraph.pregel', 'rich', 'openai'}\n"
        "print(sorted(slow & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", code, *args, "--db", str(database.path)]
    unmeasured = {key: value for key, value in os.environ.items() if not key.startswith("COVERAGE_")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=unmeasured)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("short", "whole"),
    [
        (["show"], ["show", "c"]),
        (["show", "--history"], ["show", "c", "--history"]),
        (["export"], ["export", "c"]),
        (["export", "--json"], ["export", "c", "--json"]),
        (["todo"], ["todo", "c", "list"]),
        (["todo", "list"], ["todo", "c", "list"]),
        (["todo", "a"], ["todo", "a", "list"]),
    ],
)
def test_without_a_name_the_last_thread_is_shown(tmp_path: Path, short: list[str], whole: list[str]) -> None:
    db = ["--db", str(filled(tmp_path / "threads.sqlite").path)]
    code, out, err = wakeloop(*short, *db)
    assert (code, err) == (0, "")
    assert (code, out, err) == wakeloop(*whole, *db)


def test_without_a_name_the_last_thread_is_edited_but_none_is_removed_or_renamed(tmp_path: Path) -> None:
    db = ["--db", str(filled(tmp_path / "threads.sqlite").path)]
    assert wakeloop("todo", "add", "y", *db) == (0, "list: 0/2 closed\n  [ ] 1 x\n  [ ] 2 y\n", "")
    assert wakeloop("todo", "c", *db)[1] == "list: 0/2 closed\n  [ ] 1 x\n  [ ] 2 y\n"
    assert wakeloop("todo", "b", *db)[1] == "list: 0/1 closed\n  [ ] 1 x\n"
    assert wakeloop("todo", "add", "list", *db)[2].startswith("wakeloop: Unknown thread 'add' in ")
    assert [wakeloop(*args, *db)[0] for args in (["rm"], ["rename", "d"])] == [2, 2]


def look(name: str) -> str:
    """Look at a thing."""
    return f"{name} is red"


def ask(what: str) -> str:
    """Ask a person for permission."""
    return str(interrupt({"question": what, "on": "approval"}))


SCRIPT = [
    calls(("todo_write", {"items": ["x", "y"], "goal": "all"})),
    calls(("look", {"name": "a"}), ("ask", {"what": "may I?"}), ("look", {"name": "b"})),
    calls(("todo_update", {"id": 1, "status": "done"})),
    says("Done?"),
    calls(("todo_update", {"id": 2, "status": "done"})),
    says("Done."),
]


def test_rows_read_as_the_graph_reads_them_wherever_a_run_was_killed(tmp_path: Path) -> None:
    """From the end to the first row: each row is removed, as if the process had died before it."""
    database, config = (
        DatabaseFile(tmp_path / "threads.sqlite", named=True),
        {"configurable": {"thread_id": "t"}},
    )
    seen: set[tuple[Any, ...]] = set()
    with open_to_write(database) as store:
        assert store.connection is not None
        agent = create_todo_agent(ScriptedModel(SCRIPT), [look, ask], checkpointer=store.saver)
        agent.invoke({"messages": [("user", "go")]}, config)
        agent.invoke(Command(resume="yes"), config)
        update_todos(agent, config, add=["z"])
        update_todos(agent, config, clear=True)
        while True:
            told, ours = agent.get_state(config), read_state(store.saver, "t")
            nothing = {"todo_handoff": [], "owed_replies": [], "waiting_on": [], "todo_subagents": []}
            known = {**nothing, **told.values} if told.values else {}
            assert ours.values == known
            assert (session_of(ours), read_session(ours)) == (session_of(told), read_session(told))
            assert (answer_of(ours), ours.interrupts) == (answer_of(told), told.interrupts)
            assert (ours.created_at, ours.mid_run) == (told.created_at, is_unfinished(told))
            seen.add((bool(told.interrupts), bool(told.tasks), bool(told.next), read_session(told)["state"]))
            newest = store.connection.execute("SELECT MAX(checkpoint_id) FROM checkpoints").fetchone()
            if newest == (None,):
                break
            last = "SELECT MAX(task_id || idx), COUNT(*) FROM writes WHERE checkpoint_id = ?"
            key, count = store.connection.execute(last, newest).fetchone()
            if count:
                store.connection.execute(
                    "DELETE FROM writes WHERE checkpoint_id = ? AND task_id || idx = ?", (*newest, key)
                )
            else:
                store.connection.execute("DELETE FROM checkpoints WHERE checkpoint_id = ?", newest)
    assert seen == {
        (False, False, False, "dormant"),
        (False, False, False, "idle"),
        (False, True, False, "running"),  # every task has written, but their step is not over
        (False, True, True, "running"),
        (True, True, True, "waiting"),
    }


def test_the_word_that_empties_a_conversation_is_langgraphs() -> None:
    assert conversation.REMOVE_ALL_MESSAGES == REMOVE_ALL_MESSAGES


def copied(database: DatabaseFile, path: Path) -> DatabaseFile:
    """Make a backup as `VACUUM INTO` does: its journal is not the write-ahead log."""
    with closing(sqlite3.connect(database.path)) as connection:
        connection.execute("VACUUM INTO ?", [str(path)])
    return DatabaseFile(path, named=True)


def test_a_backup_reads_like_the_original(tmp_path: Path) -> None:
    database = filled(tmp_path / "threads.sqlite")
    copy = copied(database, tmp_path / "copy.sqlite")
    before = copy.path.read_bytes()
    for looked in (
        lambda at: [*list_threads(at, everything=True, json=True)],
        lambda at: [*show_thread(at, "a", history=True, json=False)],
    ):
        assert looked(copy) == looked(database)
    assert copy.path.read_bytes() == before  # it is only read: not even the mode of its journal changes
