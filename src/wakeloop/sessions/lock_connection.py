"""The connection that holds the locks of a process."""

import threading
import time
from typing import Any
from uuid import uuid4

import psycopg

KEEPALIVE: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,  # milliseconds
}
SERVER_KEEPALIVE = tuple(
    f"SELECT set_config('tcp_keepalives_{name}', '{value}', false)"
    for name, value in (("idle", 10), ("interval", 5), ("count", 3))
)
CLOSE_TRIES, CLOSE_PAUSE = 50, 0.02  # checks for the end of the previous connection, and seconds between them
END_PREVIOUS = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE application_name = %s AND pid <> pg_backend_pid()"""


class LockConnection:
    """A direct connection to the server. A broken one is replaced, and its predecessor is ended first.

    The `…_reconnecting` methods reconnect and try once more if the connection is broken; the others fail.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = f"wakeloop {uuid4().hex[:12]}"  # of the connections of this object, and of no others
        self.guard = threading.RLock()
        self.closed = threading.Event()
        self.connection: psycopg.Connection[Any] | None = None
        self.made = 0  # how many connections were made: what one saw says nothing about the time after it

    def reacquire(self) -> None:
        """Take the locks that the previous connection held."""

    def close(self) -> None:
        """Close the connection for good."""
        self.closed.set()
        with self.guard:
            self._disconnect()

    def _check_reconnecting(self, query: str, *values: object) -> bool:
        row = self._fetch_reconnecting(query, *values)
        return bool(row and row[0])

    def _fetch_reconnecting(self, query: str, *values: object) -> Any:
        try:
            return self._fetch(query, *values)
        except psycopg.OperationalError:
            self._connect()
            return self._fetch(query, *values)

    def _check(self, query: str, *values: object) -> bool:
        row = self._fetch(query, *values)
        return bool(row and row[0])

    def _fetch(self, query: str, *values: object) -> Any:
        if self.connection is None:
            raise psycopg.OperationalError("not connected")
        return self.connection.execute(query, values).fetchone()  # type: ignore[call-overload,unused-ignore]

    def _connect(self) -> None:
        self._disconnect()
        if self.closed.is_set():
            raise psycopg.OperationalError("the locks are closed")
        name: Any = {"application_name": self.name}
        self.connection = psycopg.connect(self.url, autocommit=True, **name, **KEEPALIVE)
        self.made += 1
        try:
            for setting in SERVER_KEEPALIVE:  # so that the server, too, notices a machine that vanished
                self._fetch(setting)
            self._end_previous()
            self.reacquire()
        except BaseException:
            self._disconnect()  # without all of its locks the connection is of no use
            raise

    def _end_previous(self) -> None:
        """Wait for the previous connection to end: while the server has it, it still holds the locks."""
        for _ in range(CLOSE_TRIES):
            if not self._check(END_PREVIOUS, self.name):
                return
            time.sleep(CLOSE_PAUSE)
        raise psycopg.OperationalError("the previous connection has not ended yet")

    def _disconnect(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = None
