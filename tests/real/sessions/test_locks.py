"""Advisory locks on a real Postgres: one connection per process, replaced when it breaks."""

from __future__ import annotations

import threading
from contextlib import closing

import psycopg

from wakeloop.sessions.postgres_locks import Locks, lock_number


def test_a_thread_is_held_by_one_at_a_time(postgres: str) -> None:
    with closing(Locks(postgres)) as here, closing(Locks(postgres)) as there:
        number = lock_number("wakeloop thread x")
        entered = threading.Event()

        def wait() -> None:
            with there.hold_thread("x"):
                entered.set()

        with here.hold_thread("x"):
            assert here.acquire(number) is False  # not even twice in one process
            assert there.acquire(number) is False
            other = threading.Thread(target=wait)
            other.start()
            assert entered.wait(0.3) is False
        assert entered.wait(60) is True
        other.join()
        assert (here.held, there.held) == (set(), set())


def test_a_broken_connection_is_restored_and_takes_its_locks_again(postgres: str) -> None:
    with closing(Locks(postgres)) as here, closing(Locks(postgres)) as there, here.hold_thread("x"):
        with psycopg.connect(postgres, autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", [here.connection.info.backend_pid])  # type: ignore[union-attr]
        assert here.acquire(lock_number("other")) is True  # on a new connection
        assert there.acquire(lock_number("wakeloop thread x")) is False
        here.release(lock_number("other"))
