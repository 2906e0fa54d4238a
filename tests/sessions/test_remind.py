"""Events whose sender died before it rang: a host that is up finds them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from wakeloop import create_todo_agent
from wakeloop.sessions.dbos_host import DbosHost
from wakeloop.testing import ScriptedModel, says


def test_an_event_for_which_nobody_rang_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakeloop.sessions.dbos_host.LOOK", 0.05)
    monkeypatch.setattr("wakeloop.sessions.dbos_host.REMIND", 2)
    model = ScriptedModel([says("here I am")])
    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        agent = create_todo_agent(model, checkpointer=SqliteSaver(connection))
        with DbosHost(f"sqlite:///{tmp_path / 'sessions.db'}", {"main": agent}, polling=0.05) as host:
            host.mailbox.put("main", {"kind": "human", "id": "e", "text": "anybody?"})
            assert host.wait("main", timeout=30)
            assert host.status("main").reason == "settled"
    model.assert_done()


def test_what_waits_is_rung_for_once_and_not_before_the_second_look(tmp_path: Path) -> None:
    host = DbosHost(f"sqlite:///{tmp_path / 'sessions.db'}", {"main": None})  # type: ignore[dict-item]
    rung: list[tuple[str, str]] = []
    host.ring = lambda thread, key: rung.append((thread, key))  # type: ignore[method-assign]
    host.mailbox.put("main:1", {"kind": "kick", "id": "a"})
    host.remind()
    assert rung == []
    host.mailbox.put("main:2", {"kind": "kick", "id": "b"})
    host.mailbox.put("main:1", {"kind": "kick", "id": "c"})
    host.remind()
    assert rung == [("main:1", "a/again")]  # the first that waits; the same id again is the same turn
    host.mailbox.withdraw("a")
    host.remind()
    assert rung[1:] == [("main:2", "b/again")]
    super(DbosHost, host).close()
