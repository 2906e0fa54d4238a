"""Opens the database of events: Postgres, or a SQLite file."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import sqlalchemy as sa
from langgraph.store.base import BaseStore

from wakeloop.errors import SessionError

if sys.platform != "win32":
    import fcntl

OLDEST_SQLITE = (3, 42)


def is_postgres(url: str) -> bool:
    """Tell whether a URL names a Postgres server; otherwise it names a SQLite file."""
    return url.startswith(("postgres://", "postgresql://"))


def open_engine(url: str) -> sa.Engine:
    """Open Postgres with psycopg 3, or a SQLite file that several processes may write to."""
    if is_postgres(url):
        return sa.create_engine(f"postgresql+psycopg://{url.partition('://')[2]}", pool_pre_ping=True)
    engine = sa.create_engine(url, module=load_sqlite())
    sa.event.listen(engine, "connect", configure_sqlite)
    return engine


def configure_sqlite(connection: Any, record: object) -> None:  # noqa: ARG001 - the signature of a listener
    """Let writers wait for each other.

    They take the lock at the start of a transaction: one that reads first and writes later would fail.
    """
    connection.isolation_level = "IMMEDIATE"
    # One row that is not UTF-8 must not make a query over all sessions fail.
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    for pragma in ("journal_mode=WAL", "busy_timeout=30000", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def load_sqlite() -> Any:
    """Return a SQLite module that is new enough for DBOS: Python's own, or that of `pysqlite3-binary`."""
    import sqlite3  # noqa: PLC0415 - Postgres does without

    if sqlite3.sqlite_version_info >= OLDEST_SQLITE:
        return sqlite3.dbapi2
    try:
        from pysqlite3 import dbapi2  # type: ignore[import-untyped]  # noqa: PLC0415 - only where Python's own is too old
    except ModuleNotFoundError:
        raise SessionError(
            f"SQLite {sqlite3.sqlite_version} is too old for durable sessions, which need "
            f"{'.'.join(map(str, OLDEST_SQLITE))}. Install pysqlite3-binary, or use Postgres."
        ) from None
    return dbapi2


def open_store(url: str) -> BaseStore:
    """Open LangGraph's store in the database of events, through which a person steers runs."""
    if is_postgres(url):
        from langgraph.store.postgres import PostgresStore  # noqa: PLC0415
        from psycopg.rows import dict_row  # noqa: PLC0415
        from psycopg_pool import ConnectionPool  # noqa: PLC0415 - SQLite does without

        from wakeloop.sessions.postgres_locks import set_up_tables  # noqa: PLC0415

        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        pool: Any = ConnectionPool(
            url, kwargs=options, min_size=0, max_size=8, open=True, check=ConnectionPool.check_connection
        )
        store = PostgresStore(pool)
        set_up_tables(store, url)
        return store
    from langgraph.store.sqlite import SqliteStore  # noqa: PLC0415

    path = sa.make_url(url).database
    connection = load_sqlite().connect(path, check_same_thread=False, isolation_level=None, timeout=30)
    for pragma in ("journal_mode=WAL", "busy_timeout=30000"):
        connection.execute(f"PRAGMA {pragma}")
    local = SqliteStore(connection)
    with suppress(connection.IntegrityError):  # another process creates the tables at the same moment
        local.setup()
    return local


@contextmanager
def lock_sqlite_file(url: str) -> Iterator[None]:
    """Lock a SQLite file for one host. The lock ends with the process that holds it."""
    path = None if is_postgres(url) else sa.make_url(url).database
    if not path or path == ":memory:" or sys.platform == "win32":
        yield
        return
    with open(f"{os.path.realpath(path)}-host", "ab", opener=partial(os.open, mode=0o600)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SessionError(
                f"Another host is using the sessions of {path!r}. "
                "Stop it first, or use Postgres to run several."
            ) from None
        yield
