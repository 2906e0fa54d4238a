"""A running host finds events whose sender died before it requested a run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from waiting import until

from wakeloop import create_todo_agent
from wakeloop.sessions import session_tools
from wakeloop.sessions.dbos import DbosHost
from wakeloop.sessions.host import utc_now
from wakeloop.testing import ScriptedModel, calls, says


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that often looks for events without a requested run."""
    monkeypatch.setattr("wakeloop.sessions.dbos.watchdog.CHECK_EVERY", 0.05)
    monkeypatch.setattr("wakeloop.sessions.dbos.watchdog.REMIND_CHECKS", 2)


def test_a_run_is_requested_once_for_waiting_events_and_not_before_the_second_look(tmp_path: Path) -> None:
    host = DbosHost(f"sqlite:///{tmp_path / 'sessions.db'}", {"main": None})  # type: ignore[dict-item]
    rung: list[tuple[str, str]] = []
    host.request_run = lambda thread, key: rung.append((thread, key))  # type: ignore[method-assign]
    host.mailbox.add_event("main:1", {"kind": "kick", "id": "a"})
    host.watchdog.request_overdue_runs()
    assert rung == []
    host.mailbox.add_event("main:2", {"kind": "kick", "id": "b"})
    host.mailbox.add_event("main:1", {"kind": "kick", "id": "c"})
    host.watchdog.request_overdue_runs()
    assert rung == []  # the newest event of a thread counts: its run takes all before it
    host.watchdog.request_overdue_runs()
    assert sorted(rung) == [("main:1", "c/again"), ("main:2", "b/again")]
    host.cancel("c")
    host.watchdog.request_overdue_runs()
    assert rung[2:] == [("main:2", "b/again")]  # the same id again is the same turn
    host.watchdog.request_overdue_runs()
    assert sorted(rung[3:]) == [("main:1", "a/again"), ("main:2", "b/again")]
    super(DbosHost, host).close()


def test_an_answer_without_a_wakeup_is_found_after_a_held_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel([calls(("ask_user", {"question": "Which?"})), says("blue"), says("nine")])
    hosts: list[DbosHost] = []
    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        tools = session_tools(lambda: hosts[0])
        agent = create_todo_agent(model, tools=tools, checkpointer=SqliteSaver(connection))
        with DbosHost(f"sqlite:///{tmp_path / 'sessions.db'}", {"main": agent}, polling=0.05) as host:
            hosts.append(host)
            host.send("main", {"kind": "human", "text": "Paint it."})
            assert host.wait("main", timeout=30)
            host.send("main", {"kind": "cron", "id": "held", "text": "It is nine."})
            again: Any = {"workflow_id_prefix": "held/again", "status": "SUCCESS"}
            until(lambda: host.client.list_workflows(**again))  # it was reminded of, without effect
            host.mailbox.add_event("main", {"kind": "human", "id": "answer", "text": "Blue."})
            assert host.wait("main", timeout=30)
    model.assert_done()


def test_a_schedule_whose_timer_was_lost_is_found(tmp_path: Path) -> None:
    model = ScriptedModel([says("good morning")])
    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        agent = create_todo_agent(model, checkpointer=SqliteSaver(connection))
        with DbosHost(f"sqlite:///{tmp_path / 'sessions.db'}", {"main": agent}, polling=0.05) as host:
            host.mailbox.add_schedule(
                "nine", "main", "0 9 1 1 *", "It is nine.", utc_now()
            )  # its next time is in January
            until(host.list)
            assert host.wait("main", timeout=30)
            assert host.status("main").reason == "answered"
    model.assert_done()
