"""Checkpoints of sessions on Postgres."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from wakeloop.cli.failures import CommandError, format_database_error
from wakeloop.sessions.postgres_locks import set_up_tables
from wakeloop.thread.strict_saver import strict_saver


def is_valid_address(url: str) -> bool:
    """Whether an address is unambiguous; otherwise part of a password might be taken for a host."""
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return False
    return url.partition("?")[0].count("@") <= 1


@contextmanager
def open_postgres_saver(url: str) -> Iterator[BaseCheckpointSaver[Any]]:
    """Open the checkpoints on Postgres, with one connection per running session."""
    options: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    try:
        # a single connection says why it fails; the pool would only say that it timed out
        psycopg.connect(url, connect_timeout=10).close()
        size: Any = {"min_size": 1, "max_size": 20, "timeout": 10, "open": False}
        # check a connection when it is handed out, so that a lost one is replaced
        with ConnectionPool(url, kwargs=options, check=ConnectionPool.check_connection, **size) as pool:
            pool.open(wait=True, timeout=10)
            saver = strict_saver(PostgresSaver, pool)
            set_up_tables(saver, url)
            yield saver
    except (psycopg.OperationalError, PoolTimeout) as error:
        raise CommandError(f"The database cannot be reached: {format_database_error(error)}.") from error
