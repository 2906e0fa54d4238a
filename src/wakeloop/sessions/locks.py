"""One process a thread: advisory locks on Postgres."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2s
from typing import Any

import psycopg

KEEPALIVE: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


def lock_number(name: str) -> int:
    """Return the 64-bit number of a lock."""
    return int.from_bytes(
        blake2s(name.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True
    )


class Locks:
    """Session advisory locks: Postgres lets go of them when the process that holds them is gone.

    They need a connection of their own each, straight to the server: through a pooler that shares
    connections by transaction they mean nothing.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    @contextmanager
    def thread(self, thread: str) -> Iterator[None]:
        """Hold a thread for the length of a turn; wait while another process holds it."""
        with self._connect() as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", [lock_number(f"wakeloop thread {thread}")])
            yield

    @contextmanager
    def worker(self, worker: str) -> Iterator[bool]:
        """Hold a worker's name, which shows that it lives; False where another process has it."""
        with self._connect() as connection:
            row = connection.execute(
                "SELECT pg_try_advisory_lock(%s)", [lock_number(f"wakeloop worker {worker}")]
            ).fetchone()
            yield bool(row and row[0])

    def _connect(self) -> "psycopg.Connection[Any]":
        return psycopg.connect(self.url, autocommit=True, application_name="wakeloop", **KEEPALIVE)
