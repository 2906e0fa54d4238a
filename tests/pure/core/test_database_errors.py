"""The table of database errors: each code has its class, and no SQL text leaks."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest
import sqlalchemy as sa
from psycopg_pool import PoolClosed, PoolTimeout

from wakeloop.cli.failures import format_error
from wakeloop.platform.database_errors import OUTAGES, Outage, classify_outage, format_without_sql

WORDS = 'failed\nLINE 1: INSERT INTO "events"\n[parameters: secret]'


def sqlite_error(name: str) -> sqlite3.Error:
    error = sqlite3.OperationalError(WORDS)
    error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{name}")
    return error


CASES: list[tuple[Exception, Outage | None]] = [
    *[(sqlite_error(name), "locked") for name in ("BUSY", "BUSY_SNAPSHOT", "LOCKED")],
    *[(sqlite_error(name), "full") for name in ("FULL", "IOERR_WRITE")],
    (sqlite_error("IOERR_FSYNC"), "io"),
    (sqlite_error("CANTOPEN"), "gone"),
    (sqlite_error("READONLY"), "read-only"),
    (sqlite_error("CORRUPT"), None),
    (sqlite_error("ERROR"), None),
    (psycopg.errors.DiskFull(WORDS), "full"),
    (psycopg.errors.OutOfMemory(WORDS), "busy"),
    (psycopg.errors.TooManyConnections(WORDS), "busy"),
    (psycopg.errors.InsufficientResources(WORDS), "busy"),
    (psycopg.errors.InternalError_(WORDS), "faulty"),  # a file system's limit or quota
    (psycopg.errors.DataCorrupted(WORDS), None),
    (psycopg.errors.ReadOnlySqlTransaction(WORDS), "read-only"),
    (psycopg.errors.AdminShutdown(WORDS), "gone"),
    (psycopg.errors.CannotConnectNow(WORDS), "gone"),
    (psycopg.errors.ConnectionFailure(WORDS), "cut"),
    (psycopg.errors.SerializationFailure(WORDS), "locked"),
    (psycopg.errors.DeadlockDetected(WORDS), "locked"),
    (psycopg.errors.UndefinedTable(WORDS), None),
    (psycopg.OperationalError(WORDS), "cut"),
    (PoolTimeout(WORDS), "busy"),
    (PoolClosed(WORDS), None),
    (sa.exc.TimeoutError(WORDS), "busy"),
    (ValueError("a"), None),
]


@pytest.mark.parametrize(("error", "outage"), CASES)
def test_c82_c83_each_code_has_its_class(error: Exception, outage: Outage | None) -> None:
    wrapped = sa.exc.DBAPIError("INSERT INTO events", {"text": "secret"}, error)
    assert (classify_outage(error), classify_outage(wrapped)) == (outage, outage)


@pytest.mark.parametrize(("error", "outage"), CASES[:-1])
def test_c83_no_statement_and_no_value_is_shown(error: Exception, outage: Outage | None) -> None:
    for raised in (error, sa.exc.DBAPIError("INSERT INTO events", {"text": "secret"}, error)):
        words = OUTAGES[outage] if outage not in (None, "cut") else "failed"
        assert format_without_sql(raised) == f"{type(error).__name__}: {words}"
        assert not {"INSERT", "secret"} & {*format_error(raised).split()}
