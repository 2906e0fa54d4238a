"""The hosts on which stories run."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from engine_host import Engine, EngineHost
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from memory_host import MemoryHost

from wakeloop.sessions import thread_runner
from wakeloop.sessions.postgres_locks import set_up_tables

DOORS = ("sync", "async")  # for the host in memory
ENGINES = ("sqlite", "asynchronous sqlite", "postgres")  # for the host on DBOS


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One engine for the stories of a module, because a process can have only one."""
    if request.param in DOORS:
        yield request.param
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wakeloop.sessions.dbos.watchdog.CHECK_EVERY", 3600.0)  # no other worker exists
        if request.param == "postgres":
            server = request.getfixturevalue("postgres_server")
            with server.database() as url, Engine(url) as engine:
                yield engine
        else:
            folder = tmp_path_factory.mktemp("engine")
            with Engine(f"sqlite:///{folder / 'sessions.db'}") as engine:
                yield engine


@pytest.fixture
def host(engine: Any, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """An empty host: in memory (sync and async), and on DBOS with each kind of database."""
    if engine in DOORS:
        yield MemoryHost(engine)
        return
    kind = request.node.callspec.params["engine"]
    with saver_of(kind, engine.url, tmp_path) as saver, engine.telling(EngineHost(engine, saver)) as host:
        yield host


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[SqliteSaver]:
    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        yield SqliteSaver(connection)


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Errors for the next runs to raise, last one first."""
    waiting: list[Exception] = []
    run = thread_runner.run_graph

    def running(*given: Any) -> None:
        if waiting:
            raise waiting.pop()
        run(*given)

    monkeypatch.setattr(thread_runner, "run_graph", running)
    return waiting


@pytest.fixture(params=DOORS)
def memory(request: pytest.FixtureRequest) -> MemoryHost:
    """Only the host in memory, for what the others cannot show."""
    return MemoryHost(request.param)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "host" in metafunc.fixturenames:
        metafunc.parametrize("engine", [*DOORS, *ENGINES], indirect=True, scope="module")


@contextmanager
def saver_of(kind: str, url: str, folder: Path) -> Iterator[Any]:
    """An empty saver."""
    match kind:
        case "sqlite":
            with closing(sqlite3.connect(folder / "threads.db", check_same_thread=False)) as connection:
                yield SqliteSaver(connection)
        case "postgres":
            with PostgresSaver.from_conn_string(url) as saver:
                set_up_tables(saver, url)
                for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
                    saver.conn.execute(f"TRUNCATE {table}")
                yield saver
        case _:
            with looping() as loop:
                opened = AsyncSqliteSaver.from_conn_string(str(folder / "threads.db"))
                yield asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result()
                asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result()


@contextmanager
def looping() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop in another thread."""
    with asyncio.Runner() as runner:
        loop, thread = runner.get_loop(), None
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            yield loop
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
