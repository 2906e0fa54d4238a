"""Threads stored by version 0.1.0 are read and continued."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from stored_kinds import KEPT, KINDS, config

from wakeloop import session_of
from wakeloop.todos.items import OPEN


@pytest.mark.parametrize("name", KINDS)
def test_a_kept_thread_is_read_and_continued(name: str) -> None:
    kind = KINDS[name]
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as database:
        database.executescript(gzip.decompress(KEPT.read_bytes()).decode())
        agent = kind.build(kind.rest(), SqliteSaver(database))
        stored = agent.get_state(config(name))
        session = session_of(stored)
        assert (session["state"], session["reason"]) == (kind.state, kind.reason)
        assert [todo["status"] in OPEN for todo in stored.values["todos"]] == [False, True]
        ended = agent.invoke(kind.given, config(name))["todo_session"]
        assert (ended["state"], ended["reason"], ended["completed"]) == ("dormant", "settled", 2)
