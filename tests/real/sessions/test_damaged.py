"""Damaged threads do not hide others, and errors around a run are reported and can be retried."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from langgraph.checkpoint.sqlite import SqliteSaver
from waiting import until

from wakeloop import create_todo_agent
from wakeloop.cli.sessions.commands import list_sessions, send_event
from wakeloop.cli.sessions.storage import SessionStorage
from wakeloop.errors import SessionError
from wakeloop.sessions.dbos import DbosHost, SessionClient
from wakeloop.sessions.dbos.session_client import next_time
from wakeloop.sessions.host import utc_now
from wakeloop.testing import ScriptedModel, calls, says


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        yield connection


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'threads.db-sessions'}"


def agent_on(connection: sqlite3.Connection, *replies: Any, **more: Any) -> Any:
    return create_todo_agent(ScriptedModel([*replies]), checkpointer=SqliteSaver(connection), **more)


def texts(agent: Any, thread: str) -> list[str]:
    values = agent.get_state({"configurable": {"thread_id": thread}}).values
    return [m.text for m in values.get("messages", ())]


def damage(connection: sqlite3.Connection, thread: str) -> list[Any]:
    """Damage the newest checkpoint of a thread, and return a function that repairs it."""
    row = connection.execute(
        "SELECT checkpoint, checkpoint_id FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id DESC",
        [thread],
    ).fetchone()
    mend(connection, [b"\xc1 no msgpack", row[1]])
    return list(row)


def mend(connection: sqlite3.Connection, row: list[Any]) -> None:
    connection.execute("UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", row)
    connection.commit()


def test_a_thread_whose_agent_is_gone_has_its_own_row(connection: sqlite3.Connection, url: str) -> None:
    agent = agent_on(connection)
    with closing(SessionClient(url, {"old": agent, "new": agent})) as client:
        client.send("old:1", {"kind": "human", "text": "go"})
        client.send("new", {"kind": "human", "text": "go"})
    with closing(SessionClient(url, {"new": agent})) as client:
        fresh, gone = client.list()
        assert (fresh.thread, fresh.state, fresh.error) == ("new", "dormant", None)
        told = "Thread 'old:1' belongs to no agent. Available agents: new."
        assert (gone.state, gone.queued, gone.error) == ("unknown", 1, told)


def test_ps_shows_the_others_and_send_waits_no_longer_than_necessary(
    connection: sqlite3.Connection, url: str, tmp_path: Path
) -> None:
    agent = agent_on(connection, says("one"), says("two"))
    with DbosHost(url, {"main": agent}, polling=0.05) as host:
        for thread in ("a", "b"):
            host.send(thread, {"kind": "human", "text": "go"})
            assert host.wait(thread, timeout=30)
        damage(connection, "a")
        first, second = host.list()
        assert (first.thread, first.state, first.reason) == ("a", "damaged", None)
        assert (first.error or "").startswith("Its stored state cannot be read: ")
        assert (second.thread, second.state, second.error) == ("b", "dormant", None)
        assert host.status("a") == first
        host.send("a", {"kind": "human", "id": "e", "text": "again"})
        assert host.wait(timeout=30)
    where = SessionStorage(str(tmp_path / "threads.db"))
    rows = [line.split()[:2] for line in list_sessions(where, json=False)]
    assert rows == [["SESSION", "STATE"], ["a", "damaged"], ["b", "dormant"]]
    [line], code = send_event(
        where, "a", "again", "human", "e", wait=True, json=False
    )  # a repeat: nothing is run
    assert (line.startswith("a: damaged, Its stored state cannot be read"), code) == (True, 1)


def test_an_event_for_a_damaged_thread_is_kept_and_can_be_retried(
    connection: sqlite3.Connection, url: str
) -> None:
    agent = agent_on(connection, says("one"), *[says("both")] * 8)
    with DbosHost(url, {"main": agent, "asker": agent_on(connection)}, polling=0.05) as host:
        host.send("a", {"kind": "human", "text": "first"})
        assert host.wait("a", timeout=30)
        row = damage(connection, "a")
        asks: Any = {"kind": "peer_message", "id": "q", "text": "Well?", "sender": "asker"}
        host.send("a", {**asks, "correlation_id": "q"})
        assert host.wait("a", timeout=30)  # it does not end in endless attempts
        assert (host.status("a").queued, host.mailbox.list_unsettled("a")) == (1, [])
        assert [stored.error is None for stored in host.mailbox.list_waiting("a")] == [False]
        until(lambda: host.mailbox.list_sessions("asker"))  # nobody is left without an answer
        mend(connection, row)
        assert "cannot be read" not in (host.status("a").error or "")
        assert host.status("a").error is not None  # it says why the event waits
        host.catch_up()
        time.sleep(0.3)
        assert texts(agent, "a") == ["first", "one"]  # not by itself
        host.send("a", {"kind": "kick"})
        assert host.wait("a", timeout=30)
        assert (host.status("a").queued, host.status("a").error) == (0, None)
    assert ["Well?" in text for text in texts(agent, "a")][:4] == [False, False, True, False]


def test_an_input_that_was_never_stored_waits(connection: sqlite3.Connection, url: str) -> None:
    raising = [ValueError("no")]

    class Failing(SqliteSaver):
        def put(self, *given: Any) -> Any:
            if raising:
                raise raising.pop()
            return super().put(*given)

    agent = create_todo_agent(ScriptedModel([says("both")]), checkpointer=Failing(connection))
    with DbosHost(url, {"main": agent}, polling=0.05) as host:
        host.send("a", {"kind": "human", "text": "first"})
        assert host.wait("a", timeout=30)
        assert (host.status("a").error, host.status("a").queued) == ("ValueError: no", 1)
        host.send("a", {"kind": "human", "text": "second"})
        assert host.wait("a", timeout=30)
        assert (host.status("a").error, host.status("a").queued) == (None, 0)
    assert texts(agent, "a") == ["first", "second", "both"]


def test_a_report_that_raises_is_logged_and_stops_nothing(connection: sqlite3.Connection, url: str) -> None:
    def report(_: Any) -> None:
        raise OSError("no such terminal")

    agent = agent_on(connection, says("one"), says("two"))
    with DbosHost(url, {"main": agent}, polling=0.05, report=report) as host:
        for text in ("first", "second"):
            host.send("a", {"kind": "human", "text": text})
            assert host.wait("a", timeout=30)
            until(lambda: host.status("a").error == "report: OSError: no such terminal")
            assert (host.status("a").reason, host.status("a").queued) == ("answered", 0)
    assert texts(agent, "a") == ["first", "one", "second", "two"]


class Panic(BaseException):
    """An exception of a Rust extension."""


@pytest.mark.slow
def test_c81_a_model_or_a_tool_that_would_end_the_process_runs_once_and_is_reported(
    connection: sqlite3.Connection, url: str
) -> None:
    ran: list[str] = []

    def leave(how: str) -> str:
        """Leave."""
        ran.append(how)
        raise KeyboardInterrupt if how == "interrupt" else SystemExit(3)

    leaves = [calls(("leave", {"how": how})) for how in ("interrupt", "exit")]
    agent = agent_on(connection, leaves[0], Panic("ouch"), leaves[1], says("I am here."), tools=[leave])
    with DbosHost(url, {"main": agent}, polling=0.05) as host:
        for error in ("KeyboardInterrupt: ", "Panic: ouch", None):
            host.send("a", {"kind": "human", "text": "go"})
            assert host.wait("a", timeout=30)
            assert (host.status("a").error, host.status("a").queued) == (error, 0)
            host.watchdog.requeue_strays()
            host.watchdog.requeue_strays()  # nothing of it is under way
    assert ran == ["interrupt", "exit"]
    assert texts(agent, "a")[-2:] == ["Error: SystemExit: 3", "I am here."]


def write(host: SessionClient, statement: str, **values: Any) -> None:
    with host.mailbox.engine.begin() as c:
        c.execute(sa.text(statement), values)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["{no json", '["go"]', '{"kind": "human", "text": "no id"}'])
def test_an_unreadable_event_blocks_no_other(connection: sqlite3.Connection, url: str, text: str) -> None:
    agent = agent_on(connection, says("one"), says("two"))
    with DbosHost(url, {"main": agent}, polling=0.05) as host:
        write(host, "INSERT INTO wakeloop_sessions (thread) VALUES ('a')")
        write(host, "INSERT INTO wakeloop_events (id, thread, event) VALUES ('bad', 'a', :text)", text=text)
        host.catch_up()
        assert host.wait("a", timeout=30)
        told = "Event 'bad' cannot be read. It waits until its row is repaired or it is cancelled."
        assert (host.status("a").error, host.status("a").queued) == (told, 1)
        host.send("a", {"kind": "human", "text": "go"})
        assert host.wait("a", timeout=30)
        assert (texts(agent, "a"), host.status("a").queued) == (["go", "one"], 1)
        mended = '{"kind": "human", "id": "bad", "text": "well"}'
        write(host, "UPDATE wakeloop_events SET event = :text WHERE id = 'bad'", text=mended)
        host.send("a", {"kind": "kick"})
        assert host.wait("a", timeout=30)
        assert (texts(agent, "a")[2:], host.status("a").queued) == (["well", "two"], 0)


@pytest.mark.parametrize("notes", ["{no json", '["q"]', '{"q": "x"}'])
def test_with_unreadable_notes_everything_that_waits_counts_as_older(url: str, notes: str) -> None:
    with closing(SessionClient(url, {"main": None})) as client:  # type: ignore[dict-item]
        for key in ("before", "after"):
            client.send("a", {"kind": "human", "id": key, "text": "yes"})
            if key == "before":
                write(client, "UPDATE wakeloop_sessions SET asked = :notes", notes=notes)
                assert client.mailbox.note_questions("a", ["q"]) == {"q": 1}
        assert [stored.number for stored in client.mailbox.list_waiting("a")] == [1, 2]
        write(client, "UPDATE wakeloop_sessions SET asked = :notes", notes=notes)
        assert client.mailbox.add_event("a", {"kind": "human", "id": "named", "text": "yes"}, ["q"]) is True
        assert client.mailbox.note_questions("a", ["q"]) == {"q": 2}


def test_an_unreadable_event_is_cancelled(url: str) -> None:
    with closing(SessionClient(url, {"main": None})) as client:  # type: ignore[dict-item]
        write(client, "INSERT INTO wakeloop_events (id, thread, event) VALUES ('bad', 'a', '{no json')")
        assert [client.cancel("bad"), client.cancel("bad")] == [True, False]
        assert client.mailbox.list_unsettled() == []


def test_a_damaged_schedule_blocks_no_other(connection: sqlite3.Connection, url: str) -> None:
    agent = agent_on(connection, says("ticked"))
    with closing(SessionClient(url, {"main": agent})) as client:
        good = client.schedule("a", "0 0 29 2 *", "tick")
        client.mailbox.set_due(good, datetime(2024, 2, 29, tzinfo=UTC))
        row = (
            "INSERT INTO wakeloop_schedules (id, thread, cron, text, due) VALUES (:id, 'b', :cron, 'x', :due)"
        )
        write(client, row, id="0", cron="0 0 29 2 *", due="no date")
        write(client, row, id="1", cron="0 0 29 2 *", due="2099-01-01T00:00:00")
        write(client, row, id="2", cron="no line", due="2024-02-29T00:00:00+00:00")
    with DbosHost(url, {"main": agent}, polling=0.05) as host:
        until(lambda: texts(agent, "a")[1:] == ["ticked"])
        due = [schedule.due for schedule in host.schedules() if schedule.id != "2"]
        assert due == [next_time("0 0 29 2 *", utc_now()).isoformat()] * 3
        assert (host.status("b").error or "").startswith("Invalid cron line 'no line'")


def test_the_watchdog_reports_errors_and_continues(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("wakeloop.sessions.dbos.watchdog.CHECK_EVERY", 0.01)
    monkeypatch.setattr("wakeloop.sessions.dbos.watchdog.TAKE_OVER_CHECKS", 1)
    monkeypatch.setattr("wakeloop.sessions.dbos.watchdog.REMIND_CHECKS", 1)
    met, done, busy = list[Exception](), list[str](), sqlite3.OperationalError("it is locked")
    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY  # one that passes by itself is not reported

    def requeue_strays(_: Any) -> None:
        met.append(LookupError("no such column") if len(met) < 5 else busy)
        raise met[-1]

    watch = "wakeloop.sessions.dbos.watchdog.Watchdog"
    monkeypatch.setattr(f"{watch}.requeue_strays", requeue_strays)
    monkeypatch.setattr(f"{watch}.request_overdue_runs", lambda _: done.append("remind"))
    with DbosHost(url, {}):
        until(lambda: len(met) > 10)
    assert done != []
    assert [record.message for record in caplog.records if record.name.startswith("wakeloop")] == [
        "requeue_strays failed and will be retried: LookupError: no such column"
    ]


# -- cancellations, and the clock --------------------------------------------------------------------------


def test_a_cancelled_event_does_not_come_back(url: str) -> None:
    """A run reads the event before it is cancelled, and claims it afterwards."""
    with closing(SessionClient(url, {"main": None})) as client:  # type: ignore[dict-item]
        for key in ("e1", "e2"):
            client.send("main", {"kind": "human", "id": key, "text": key})
        read = client.mailbox.list_waiting("main")
        assert client.cancel("e2") is True
        assert client.mailbox.claim("e1", read) is False
        assert [(stored.id, stored.run) for stored in client.mailbox.list_waiting("main")] == [("e1", None)]
        assert client.mailbox.claim("e1", read[:1]) is True
        assert client.cancel("e1") is False


class Killed(BaseException):
    """A simulated SIGKILL, which no code catches."""


def test_whoever_waits_for_a_cancelled_event_is_informed_whatever_dies(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any) -> Any:
        raise Killed

    asks: Any = {"kind": "peer_message", "id": "q", "text": "?", "sender": "b", "correlation_id": "q"}
    with closing(SessionClient(url, {"a": None, "b": None})) as client:  # type: ignore[dict-item]
        client.send("a", asks)
        for way in ("send", "request_run"):
            monkeypatch.setattr(client, way, die)
        with pytest.raises(Killed):
            client.cancel("q")
        assert client.mailbox.list_waiting("a") == []
        assert [stored.event["correlation_id"] for stored in client.mailbox.list_waiting("b")] == ["q"]


def test_a_run_whose_event_is_cancelled_takes_the_others(
    connection: sqlite3.Connection, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = agent_on(connection, says("fine"))
    host = DbosHost(url, {"main": agent}, polling=0.05)
    host.mailbox.add_event("main", {"kind": "human", "id": "e1", "text": "one"})
    host.mailbox.add_event("main", {"kind": "human", "id": "e2", "text": "two"})
    reading, left = type(host.mailbox).list_waiting, ["e1"]

    def waiting(mailbox: Any, thread: str) -> Any:
        found = reading(mailbox, thread)
        if left:
            assert host.cancel(left.pop()) is True
        return found

    monkeypatch.setattr(type(host.mailbox), "list_waiting", waiting)
    with host:
        until(lambda: texts(agent, "main"))
        assert host.wait(timeout=30)
    assert texts(agent, "main") == ["two", "fine"]


def test_a_schedule_of_a_clock_that_was_ahead_fires_at_its_next_time(url: str) -> None:
    with closing(SessionClient(url, {"main": None})) as client:  # type: ignore[dict-item]
        key = client.schedule("main", "* * * * *", "tick")
        for heal in (client.set_timers, lambda: client.schedule("main", "* * * * *", "tick")):
            client.mailbox.set_due(key, utc_now() + timedelta(days=400))
            heal()
            [row] = client.schedules()
            assert datetime.fromisoformat(row.due or "") <= datetime.now(UTC) + timedelta(minutes=1)
        client.mailbox.set_due(key, before := utc_now() - timedelta(days=1))
        client.set_timers()  # what is past due stays past due: it fires at once
        assert client.schedules()[0].due == before.isoformat()


@pytest.mark.parametrize("line", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "5 5 31 2 *"])
def test_a_line_that_never_fires_is_refused_in_one_sentence(url: str, line: str) -> None:
    with closing(SessionClient(url, {"main": None})) as client:  # type: ignore[dict-item]
        with pytest.raises(SessionError, match="its months have no such day"):
            client.schedule("main", line, "text")
        client.mailbox.add_schedule("old", "main", line, "text", utc_now())  # stored without the check
        key = client.schedule("main", "0 9 29 2 *", "leap")
        client.set_timers()
        assert [client.cancel(one) for one in ("old", key)] == [True, True]
    assert next_time("0 9 29 2 *", datetime(2025, 1, 1, tzinfo=UTC)).year == 2028
