"""Which errors of SQLite and Postgres pass, and their words."""

import sqlite3
from typing import Literal

Outage = Literal["busy", "locked", "full", "io", "read-only", "gone", "cut", "faulty"]
OUTAGES: dict[Outage, str] = {  # what passes by itself, or once somebody mends it: the statement is right
    "busy": "it is overloaded",
    "locked": "another program is using the same rows",
    "full": "its disk is full",
    "io": "its disk reports an error",
    "read-only": "it is read-only",
    "gone": "it is not available",
    "cut": "its connection was lost",
    "faulty": "it reports an error of its own",
}
SQLITE_CODES: dict[int, Outage] = {  # an extended code first, then the primary code in its lowest byte
    sqlite3.SQLITE_IOERR_WRITE: "full",
    sqlite3.SQLITE_IOERR_SHMSIZE: "full",
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_IOERR: "io",
    sqlite3.SQLITE_READONLY: "read-only",
    sqlite3.SQLITE_CANTOPEN: "gone",
}
POSTGRES_CODES: dict[str, Outage] = {  # a whole code first, then its first four and two characters
    "53100": "full",
    "53": "busy",  # out of memory, connections, open files
    "25006": "read-only",
    "40001": "locked",
    "40P01": "locked",
    "55P03": "locked",
    "58030": "io",
    "57P0": "gone",  # shutting down, crashed, starting
    "08": "cut",
    "XX000": "faulty",  # among them a file system's limit or quota, for which it has no code
}
DRIVERS = ("sqlite3", "pysqlite3", "sqlalchemy", "psycopg", "psycopg_pool")


def is_database_error(error: BaseException) -> bool:
    """Tell whether an error is from a database's driver or from SQLAlchemy."""
    return any(_package_of(kind) in DRIVERS for kind in type(error).__mro__)


def classify_outage(error: BaseException) -> Outage | None:
    """Return why a database could not do what is worth trying again; None for any other error.

    >>> from sqlite3 import OperationalError
    >>> classify_outage(OperationalError("no such table: todos")) is None
    True
    """
    original = _unwrap(error)
    if (code := getattr(original, "sqlite_errorcode", None)) is not None:
        return SQLITE_CODES.get(code) or SQLITE_CODES.get(code & 0xFF)
    if (state := getattr(original, "sqlstate", None)) is not None:
        found = (POSTGRES_CODES.get(state[:length]) for length in (5, 4, 2))
        return next(filter(None, found), None)
    names = {f"{_package_of(kind)}.{kind.__name__}" for kind in type(original).__mro__}
    if "psycopg_pool.PoolClosed" in names:  # by this program, for good
        return None
    if "psycopg_pool.PoolTimeout" in names or "sqlalchemy.TimeoutError" in names:
        return "busy"
    return "cut" if "psycopg.OperationalError" in names else None  # the server said nothing, so no code


def describe_database_error(error: BaseException) -> str:
    """Describe a database's error without the statement and its values."""
    if (outage := classify_outage(error)) is not None and outage != "cut":
        return OUTAGES[outage]
    original = _unwrap(error)
    lines = str(original).splitlines()  # the next ones quote the statement and its values
    return lines[0].rstrip(".") if lines else type(original).__name__


def format_without_sql(error: BaseException) -> str:
    """Return an error's type and text; of a database's error without the statement and its values."""
    if not is_database_error(error):
        return f"{type(error).__name__}: {error}"
    return f"{type(_unwrap(error)).__name__}: {describe_database_error(error)}"


def _unwrap(error: BaseException) -> BaseException:
    """Return the driver's own error, which SQLAlchemy wraps."""
    return getattr(error, "orig", None) or error


def _package_of(kind: type) -> str:
    return kind.__module__.partition(".")[0]
