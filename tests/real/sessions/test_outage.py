"""Postgres drops all connections in the middle of turns, which continue when it is back."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from failing_databases import GROUPS, open_world, try_all
from langchain_core.tools import ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool
from waiting import until

from wakeloop import create_todo_agent, steer
from wakeloop.cli.sessions.postgres import open_postgres_saver
from wakeloop.sessions import session_tools
from wakeloop.sessions.dbos import DbosHost, SessionClient, session_client
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.thread.patient_store import PatientStore
from wakeloop.thread.steering import list_waiting


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakeloop.sessions.dbos.dbos_host.RETRY_PAUSES", (0.05,) * 5)


def throw_out(url: str) -> None:
    """End every connection to the database except this one."""
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def patiently(ask: Callable[[], Any]) -> Any:
    """Repeat the query if the pool hands out a cut connection, which it then discards."""
    for _ in range(20):  # as many as the pool has
        with suppress(psycopg.OperationalError, sa.exc.OperationalError):
            return ask()
    return ask()


@contextmanager
def hosted(url: str, model: ScriptedModel, *tools: Any) -> Iterator[DbosHost]:
    with open_postgres_saver(url) as saver:
        agent = create_todo_agent(model, tools=tools, checkpointer=saver)
        with DbosHost(url, {"main": agent}, polling=0.05) as host:
            yield host


def test_c51_a_tool_whose_connections_are_cut_has_its_effect_once(postgres: str) -> None:
    reached: list[int] = []

    def work(n: int) -> str:
        """Work."""
        reached.append(n)
        if reached == [0, 1]:
            throw_out(postgres)
        return f"{n} done"

    model = ScriptedModel([*(calls(("work", {"n": n})) for n in range(4)), says("all done")])
    with hosted(postgres, model, work) as host:
        host.send("main", {"kind": "human", "text": "go"})
        until(lambda: reached[-1:] == [3])  # nothing of ours is asked while all are disconnected
        assert patiently(lambda: host.wait("main", timeout=60))
        status = patiently(lambda: host.status("main"))
        assert (status.state, status.reason, status.error, status.queued) == ("dormant", "answered", None, 0)
        config: Any = {"configurable": {"thread_id": "main"}}
        messages = patiently(lambda: host.agents["main"].get_state(config).values["messages"])
        assert [m.text for m in messages if m.type == "tool"] == [f"{n} done" for n in range(4)]
        assert [m.type for m in messages].count("human") == 1
    assert reached == [0, 1, 2, 3]  # the result of the one that ended meanwhile was kept
    model.assert_done()


@contextmanager
def counted(host: DbosHost) -> Iterator[list[str]]:
    """Record the thread of each attempt at a turn."""
    tries, take = list[str](), host.run_thread

    def taken(thread: str, *, patient: bool) -> None:
        tries.append(thread)
        take(thread, patient=patient)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "run_thread", taken)
        yield tries


@pytest.mark.slow
def test_a_pool_of_cut_connections_costs_no_attempt(postgres: str) -> None:
    model = ScriptedModel([says("here I am")])
    with hosted(postgres, model) as host, ExitStack() as stack:
        pool = host.agents["main"].checkpointer.conn  # type: ignore[union-attr]
        with ExitStack() as many:
            for _ in range(12):
                many.enter_context(pool.connection())
        tries = stack.enter_context(counted(host))
        throw_out(postgres)
        host.send("main", {"kind": "human", "text": "go"})
        assert patiently(lambda: host.wait("main", timeout=60))
        assert patiently(lambda: host.status("main").reason) == "answered"
    assert tries == ["main"]
    model.assert_done()


async def test_an_asynchronous_pool_of_cut_connections_costs_no_attempt(postgres: str) -> None:
    model = ScriptedModel([says("here I am")])
    options: Any = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool: Any = AsyncConnectionPool(postgres, min_size=1, max_size=20, kwargs=options, open=False)
    async with pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        agent = create_todo_agent(model, checkpointer=saver)
        async with DbosHost(postgres, {"main": agent}, polling=0.05) as host, AsyncExitStack() as stack:
            async with AsyncExitStack() as many:
                for _ in range(12):
                    await many.enter_async_context(pool.connection())
            tries = stack.enter_context(counted(host))
            await asyncio.to_thread(throw_out, postgres)
            await asyncio.to_thread(host.send, "main", {"kind": "human", "text": "go"})
            assert await asyncio.to_thread(patiently, lambda: host.wait("main", timeout=60))
            assert await asyncio.to_thread(patiently, lambda: host.status("main").reason) == "answered"
    assert tries == ["main"]
    model.assert_done()


@pytest.mark.slow
def test_a_timer_that_fires_while_the_database_is_away_fires_afterwards(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []
    fire = DbosHost.fire_schedule

    def cut(self: DbosHost, schedule: str, due: str) -> None:
        tries.append(schedule)
        if len(tries) < 3:
            raise psycopg.OperationalError("the connection is lost")
        fire(self, schedule, due)

    monkeypatch.setattr(DbosHost, "fire_schedule", cut)
    model = ScriptedModel([says("ticked")])
    with hosted(postgres, model) as host:
        key = host.schedule("main", "0 0 29 2 *", "tick")
        host.mailbox.set_due(key, datetime(2024, 2, 29, tzinfo=UTC))
        host.catch_up()  # as a start does
        until(lambda: host.status("main").reason == "answered" if host.list() else False)
        assert datetime.fromisoformat(str(host.schedules()[0].due)) > datetime.now(UTC)
    assert tries == [key] * 3
    model.assert_done()


@pytest.mark.slow
def test_what_always_fails_is_given_up_with_its_words(postgres: str) -> None:
    tries: list[int] = []

    def away(_: Any) -> Any:
        tries.append(1)
        raise psycopg.OperationalError("another database is away")

    model = ScriptedModel([away] * 6)
    with hosted(postgres, model) as host:
        host.send("main", {"kind": "human", "text": "go"})
        assert host.wait("main", timeout=60)
        assert host.status("main").error == "OperationalError: another database is away"
    assert len(tries) == 6  # five times patiently, then once more
    model.assert_done()


# -- every statement, every class of error ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_c82_c83_any_failing_statement_leaves_the_operations_result_unchanged(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The short form of `benchmarks/outages.py`: each statement meets one class, in turn."""
    monkeypatch.setattr("wakeloop.platform.outages.PAUSES", (0.001,))
    monkeypatch.setattr("dbos._sys_db.time.sleep", lambda _: None)  # it waits for a locked SQLite by itself
    url = (
        request.getfixturevalue("postgres") if kind == "postgres" else f"sqlite:///{tmp_path / 'sessions.db'}"
    )
    with open_world(kind, url, tmp_path) as world:
        for operations in GROUPS.values():
            assert [case for case in try_all(world, kind, operations, rotate=True) if case.wrong] == []


@pytest.mark.slow
def test_c83_a_connection_cut_while_a_question_is_stored_costs_nothing(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server itself ends the connection (`pg_terminate_backend`), in the middle of the insert."""
    monkeypatch.setattr("wakeloop.platform.outages.PAUSES", (0.01,))
    cut: list[str] = []

    def cut_at_the_insert(connection: Any, _c: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT INTO wakeloop_events") and len(cut) < 2:
            cut.append(statement)
            throw_out(postgres)

    question = calls(("talk_to_agent", {"agent": "main:peer", "message": "Where to?"}))
    tools = session_tools(lambda: hosts[0], ["talk_to_agent"])
    hosts: list[DbosHost] = []
    with hosted(postgres, ScriptedModel([question, *[says("Well.")] * 20]), *tools) as host:
        hosts.append(host)
        host.send("main", {"kind": "human", "text": "go"})  # before any connection is cut
        sa.event.listen(host.mailbox.engine, "before_cursor_execute", cut_at_the_insert)

        def texts(thread: str, kind: str) -> list[str]:
            config: Any = {"configurable": {"thread_id": thread}}
            messages = patiently(lambda: host.agents["main"].get_state(config).values.get("messages", []))
            return [m.text for m in messages if m.type == kind]

        until(lambda: texts("main", "tool") and texts("main:peer", "ai"))
        assert [text.partition(".")[0] for text in texts("main", "tool")] == ["Asked main:peer"]
        assert " ".join(texts("main:peer", "human")).count("Where to?") == 1
        assert len(cut) == 2


@pytest.mark.parametrize("door", ["sync", "async"])
async def test_c82_an_unavailable_store_loses_no_words(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakeloop.platform.outages.PAUSES", (0.001,))
    away = [
        psycopg.errors.DiskFull("INSERT"),
        psycopg.OperationalError("cut"),
        psycopg.OperationalError("cut"),
    ]

    class Away(InMemoryStore):
        def batch(self, ops: Any) -> Any:
            if away:
                raise away.pop()
            return super().batch(ops)

        async def abatch(self, ops: Any) -> Any:
            return self.batch(ops)

    store = PatientStore(Away())
    steer(store, "t", "Use tabs.")
    away.append(psycopg.errors.DiskFull("DELETE"))
    model = ScriptedModel([says("Done.")])
    agent = create_todo_agent(model, checkpointer=InMemorySaver(), store=store)
    given: Any = ({"messages": [("user", "go")]}, {"configurable": {"thread_id": "t"}})
    await agent.ainvoke(*given) if door == "async" else agent.invoke(*given)
    assert "Use tabs." in " ".join(message.text for message in model.requests[0])
    assert away == []


def test_c82_a_clients_words_wait_until_the_database_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wakeloop.platform.outages.PAUSES", (0.001,))
    away = [psycopg.errors.ReadOnlySqlTransaction("INSERT"), psycopg.OperationalError("cut")]

    class Away(InMemoryStore):
        conn = SimpleNamespace(close=lambda: None)

        def batch(self, ops: Any) -> Any:
            if away:
                raise away.pop()
            return super().batch(ops)

    monkeypatch.setattr(session_client, "open_store", lambda _: Away())
    with closing(SessionClient(f"sqlite:///{tmp_path / 'sessions.db'}", {"main": Any})) as client:
        client.steer("main", "Use tabs.")
        assert [entry.message for entry in list_waiting(client.own_store, "main")] == ["Use tabs."]
    assert away == []


def test_c83_a_database_that_stays_away_is_one_sentence_without_sql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wakeloop.platform.outages.PATIENCE", 0.0)
    with open_world("sqlite", f"sqlite:///{tmp_path / 'sessions.db'}", tmp_path) as world:
        for name in ("talk_to_agent", "send_message", "reply_to_peer", "spawn_subagent"):
            operation = GROUPS["session tools and client"][name]
            with pytest.raises(ToolException) as failed:
                operation.run(world, name.replace("_", ""), 0, "FULL")
            assert str(failed.value) == (
                "nothing was sent, because the sessions' database failed: its disk is full; try again later"
            )


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY"])
def test_c82_a_call_that_ended_on_a_full_disk_is_stored_later_and_not_run_again(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The saver of a host fails for longer than a run is retried."""
    monkeypatch.setattr("wakeloop.platform.outages.PAUSES", (0.001,))
    ran, failing = list[str](), list[Exception]()

    class Full(SqliteSaver):
        def put_writes(self, *given: Any, **more: Any) -> None:
            if failing:
                raise failing.pop()
            super().put_writes(*given, **more)

    def work() -> str:
        """Work."""
        for _ in range(20):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = getattr(sqlite3, fault)
            failing.append(error)
        ran.append("work")
        return "done"

    model = ScriptedModel([calls(("work", {})), says("bye")])
    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        agent = create_todo_agent(model, [work], checkpointer=Full(connection))
        with DbosHost(f"sqlite:///{tmp_path / 'sessions.db'}", {"main": agent}, polling=0.05) as host:
            host.send("main", {"kind": "human", "text": "go"})
            assert host.wait("main", timeout=30)
            assert (host.status("main").reason, host.status("main").error) == ("answered", None)
    assert (ran, failing) == (["work"], [])
    waited = [one.message for one in caplog.records if one.name == "wakeloop"]
    assert len(waited) == 1
    assert waited[0].endswith(". Trying again.")
    model.assert_done()
