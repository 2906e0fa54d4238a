"""One process a thread: advisory locks on Postgres."""

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from hashlib import blake2s
from typing import Any, Protocol

import psycopg

KEEPALIVE: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
AGAIN = 0.1  # seconds between two tries for a thread that another process holds


def lock_number(name: str) -> int:
    """Return the 64-bit number of a lock."""
    return int.from_bytes(
        blake2s(name.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True
    )


class Made(Protocol):
    """What makes its tables itself, such as a `PostgresSaver`."""

    def setup(self) -> None:
        """Make the tables that are not there yet."""


def set_up(saver: Made, url: str) -> None:
    """Make a saver's tables on Postgres, also where several workers begin at once on an empty database.

    `saver.setup()` alone is for one process: of several at once, all but one fail.

    Args:
        saver: What makes its tables itself, such as a `PostgresSaver`.
        url: The database, `postgresql://…`.
    """
    with closing(Locks(url)) as locks, locks.setting_up():
        saver.setup()


class Locks:
    """Session advisory locks: Postgres lets go of them when the process that holds them is gone.

    All of a process are held by one connection, straight to the server: through a pooler that shares
    connections by transaction they mean nothing. A connection that broke is made anew and takes its locks
    again, if nobody has them by then.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.held: set[int] = set()
        self.guard = threading.Lock()
        self.connection: psycopg.Connection[Any] | None = None

    def thread(self, thread: str) -> AbstractContextManager[None]:
        """Hold a thread for the length of a run; wait while another process holds it."""
        return self.held_alone(f"wakeloop thread {thread}")

    def setting_up(self) -> AbstractContextManager[None]:
        """Hold what makes tables: of several processes that begin at once, one after another."""
        return self.held_alone("wakeloop set-up")

    @contextmanager
    def held_alone(self, name: str) -> Iterator[None]:
        """Hold a lock; try again while another has it, since an index is never built while a query waits."""
        number = lock_number(name)
        while not self.take(number):
            time.sleep(AGAIN)
        try:
            yield
        finally:
            self.give(number)

    @contextmanager
    def worker(self, worker: str) -> Iterator[bool]:
        """Hold a worker's name, which shows that it lives; False where another process has it."""
        number = lock_number(f"wakeloop worker {worker}")
        taken = self.take(number)
        try:
            yield taken
        finally:
            if taken:
                self.give(number)

    def take(self, number: int) -> bool:
        """Take a lock, unless it is held: in this process (Postgres would count it twice) or in another."""
        with self.guard:
            if number in self.held or not self._ask("SELECT pg_try_advisory_lock(%s)", number):
                return False
            self.held.add(number)
            return True

    def give(self, number: int) -> None:
        """Let go of a lock."""
        with self.guard:
            self.held.discard(number)
            self._ask("SELECT pg_advisory_unlock(%s)", number)

    def close(self) -> None:
        """Let go of all."""
        with self.guard:
            self.held.clear()
            if self.connection is not None:
                self.connection.close()
            self.connection = None

    def _ask(self, query: str, number: int) -> bool:
        if self.connection is None or self.connection.closed:
            self._connect()
        try:
            return self._answer(query, number)
        except psycopg.OperationalError:
            self._connect()
            return self._answer(query, number)

    def _connect(self) -> None:
        self.connection = psycopg.connect(self.url, autocommit=True, application_name="wakeloop", **KEEPALIVE)
        for number in self.held:
            self._answer("SELECT pg_try_advisory_lock(%s)", number)

    def _answer(self, query: str, number: int) -> bool:
        assert self.connection is not None  # noqa: S101 - it was made just now
        row = self.connection.execute(query, [number]).fetchone()  # type: ignore[call-overload,unused-ignore]
        return bool(row and row[0])
