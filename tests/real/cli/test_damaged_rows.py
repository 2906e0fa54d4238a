"""One damaged row hides no other thread or session, whatever its columns hold."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from wakeloop import create_todo_agent
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.sessions.commands import list_sessions
from wakeloop.cli.sessions.storage import SessionStorage
from wakeloop.cli.show import list_threads
from wakeloop.cli.store import DatabaseFile, open_to_write
from wakeloop.sessions.dbos import DbosHost
from wakeloop.testing import ScriptedModel, calls, says

ODD_VALUES = ("NULL", "7", "CAST(x'ff' AS TEXT)", "x'ff00'", "''")
THREAD_TABLES = ("checkpoints", "writes", "wakeloop_threads")
SESSION_TABLES = ("wakeloop_events", "wakeloop_sessions")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the database of two threads, both of them sessions."""
    folder = tmp_path_factory.mktemp("whole")
    with open_to_write(DatabaseFile(folder / "t.db")) as store:
        replies = [calls(("todo_add", {"items": ["a"]}, "1")), says("One."), says("Two."), says("Three.")]
        agent = create_todo_agent(
            ScriptedModel(replies), checkpointer=store.saver, settings={"auto_continue": False}
        )
        with DbosHost(f"sqlite:///{folder / 't.db-sessions'}", {"main": agent}, polling=0.05) as host:
            for thread in ("first", "second"):
                store.remember(thread, AgentSpec(), "go")
                host.send(thread, {"kind": "human", "text": "go"})
                assert host.wait(thread, timeout=30)
            host.drain()
            host.send("first", {"kind": "human", "text": "again"})
    return folder


def damage_each_column(whole: Path, folder: Path, file: str, table: str) -> Iterator[str]:
    """Put each odd value into each column of the first thread's rows, in a fresh copy."""
    with closing(sqlite3.connect(whole / file)) as connection:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    key = "thread_id" if "thread_id" in columns else "thread"
    for column in columns:
        for value in ODD_VALUES:
            shutil.rmtree(folder)
            shutil.copytree(whole, folder)
            with closing(sqlite3.connect(folder / file)) as connection:
                change = f"UPDATE OR IGNORE {table} SET {column} = {value} WHERE {key} = 'first'"
                try:
                    changed = connection.execute(change).rowcount
                except sqlite3.IntegrityError:
                    changed = 0
                if not changed:
                    continue  # the table rejects it
                connection.commit()
            yield f"{table}.{column} = {value}"


def is_second_hidden(rows: Iterator[str]) -> bool:
    states = [row["state"] for row in json.loads(next(rows)) if row["thread"] == "second"]
    return states != ["dormant"]


@pytest.mark.parametrize("table", THREAD_TABLES)
def test_c97_threads_lists_every_other_thread(whole: Path, tmp_path: Path, table: str) -> None:
    hidden = []
    for what in damage_each_column(whole, tmp_path, "t.db", table):
        database = DatabaseFile(tmp_path / "t.db")
        if is_second_hidden(list_threads(database, everything=True, json=True)):
            hidden.append(what)
        assert list(list_threads(database, everything=True, json=False))
    assert hidden == []


@pytest.mark.slow
@pytest.mark.parametrize("table", [*THREAD_TABLES[:2], *SESSION_TABLES])
def test_c97_ps_lists_every_other_session(whole: Path, tmp_path: Path, table: str) -> None:
    hidden = []
    file = "t.db-sessions" if table in SESSION_TABLES else "t.db"
    for what in damage_each_column(whole, tmp_path, file, table):
        storage = SessionStorage(str(tmp_path / "t.db"))
        if is_second_hidden(list_sessions(storage, json=True)):
            hidden.append(what)
        assert list(list_sessions(storage, json=False))
    assert hidden == []
