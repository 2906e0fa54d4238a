"""Advisory locks on Postgres: one process per thread."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2s
from typing import Any
from uuid import uuid4

import psycopg

from wakeloop.sessions.host import GRACE, TakenOverError

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
RETRY_EVERY = 0.1  # seconds between two attempts to take a lock that another process holds
CHECK_EVERY = 0.5  # seconds between two checks of the connection
LOW_BITS = 0xFFFFFFFF
TRY_LOCK = "SELECT pg_try_advisory_lock(%s)"
FIND_HOLDER = """SELECT pid, backend_start::text FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND objid = %s::bigint AND classid = %s::bigint
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
IS_CONNECTED = """SELECT EXISTS (SELECT 1 FROM pg_stat_activity
    WHERE pid = %s AND backend_start::text IS NOT DISTINCT FROM %s)"""

Holder = tuple[int, str | None]  # a connection: its server process, and when that started
THREAD, WORKER = "wakeloop thread {}".format, "wakeloop worker {}".format  # names of locks


def lock_number(name: str) -> int:
    """Return the 64-bit number of the lock with this name."""
    return int.from_bytes(
        blake2s(name.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True
    )


def set_up_tables(saver: Any, url: str) -> None:
    """Create a saver's tables on Postgres, even if several workers start at once on an empty database.

    If several processes call `saver.setup()` at once, all but one of them fail.

    Args:
        saver: Something that creates its own tables, such as a `PostgresSaver`.
        url: The database, `postgresql://…`.

    Example:
        >>> set_up_tables(saver, "postgresql://localhost/wakeloop")  # doctest: +SKIP
    """
    with closing(Locks(url)) as locks, locks.hold_setup():
        saver.setup()


@dataclass
class LockObservation:
    """What a process that waits for a lock has seen of it."""

    last: Holder | None = None
    since: float | None = None

    def is_free(self, holder: Holder | None, lives: Callable[[Holder], bool], grace: float) -> bool:
        """Tell whether the lock may be taken.

        It may if its last holder is still connected and so released it, or if it was free for the time of
        grace: a holder whose connection broke needs that time to take it again.
        """
        if holder is not None:
            self.last, self.since = holder, None
            return False
        if self.last is not None and lives(self.last):
            return True
        now = time.monotonic()
        self.since = self.since if self.since is not None else now
        return now - self.since >= grace


class Locks:
    """Session-level advisory locks. Postgres releases them when the connection that holds them ends.

    One direct connection holds all locks of a process. Locks mean nothing through a pooler that shares
    connections by transaction. If the connection breaks, `keep_alive` reconnects at once and takes the locks
    again. Other processes therefore wait until a lock has been free for `grace` seconds if its holder's
    connection is gone. A lock that its holder released may be taken at once.

    The `…_reconnecting` methods reconnect and try once more if the connection is broken; the others fail.
    """

    def __init__(self, url: str, grace: float = GRACE) -> None:
        self.url, self.grace = url, grace
        self.name = f"wakeloop {uuid4().hex[:12]}"  # of the connections of this object, and of no others
        self.guard = threading.RLock()
        self.closed = threading.Event()
        self.connection: psycopg.Connection[Any] | None = None
        self.made = 0  # how many connections were made: what one saw says nothing about the time after it
        self.beat = min(CHECK_EVERY, grace / 10)
        self.held: set[int] = set()  # even while the connection is lost
        self.names: set[int] = set()  # names of workers: taken again however long another process has them
        self.lost: set[int] = set()  # locks that another process has taken over
        self.doubtful: set[int] = set()  # locks that another process may have had meanwhile
        self.checked = -grace  # when the connection was last known to work

    # -- holding -------------------------------------------------------------------------------------------

    def hold_thread(self, thread: str) -> AbstractContextManager[None]:
        """Hold a thread during a run; wait while another process holds it."""
        return self.hold(THREAD(thread), self.grace)

    def hold_setup(self) -> AbstractContextManager[None]:
        """Hold the lock for creating tables, so that processes that start at once take turns."""
        return self.hold("wakeloop set-up")

    @contextmanager
    def hold(self, name: str, grace: float = 0.0) -> Iterator[None]:
        """Hold a lock.

        It polls while another process has the lock: Postgres builds no index while a query waits for a lock.
        """
        number = lock_number(name)
        if not self.acquire(number):
            self.wait_for_lock(number, grace)
        try:
            yield
        finally:
            self.release(number)

    def wait_for_lock(self, number: int, grace: float) -> None:
        """Wait until a lock that another process has may be taken, and take it."""
        observed, connection = LockObservation(), self.made
        while True:
            time.sleep(min(RETRY_EVERY, self.beat))
            try:
                holder = self.find_holder(number)
                if connection != self.made:
                    connection, observed.since = self.made, None  # nobody was watching while it was away
                free = observed.is_free(holder, self.is_connected, grace)
                if free and self.acquire(number, connection):
                    return
            except psycopg.OperationalError:
                if self.closed.is_set():
                    raise

    @contextmanager
    def hold_worker(self, worker: str, connection: int | None = None) -> Iterator[bool]:
        """Hold a worker's name, which shows that it is alive. Yields False if another process has it."""
        number = lock_number(WORKER(worker))
        taken = self.acquire(number, connection)
        if taken:
            self.names.add(number)
        try:
            yield taken
        finally:
            if taken:
                self.names.discard(number)
                self.release(number)

    def acquire(self, number: int, connection: int | None = None) -> bool:
        """Take a lock, unless this process (Postgres would count it twice) or another holds it.

        With `connection`, the number of the connection over which the lock was seen free, it is only taken
        over that same one: after a reconnect its owner may not be back yet.
        """
        with self.guard:
            if number in self.held or connection not in (None, self.made):
                return False
            check = self._check_reconnecting if connection is None else self._check
            if not check(TRY_LOCK, number):
                return False
            self.held.add(number)
            return True

    def release(self, number: int) -> None:
        """Release a lock. If its connection is gone, it is free already."""
        with self.guard:
            self.held.discard(number)
            self.doubtful.discard(number)
            if number in self.lost:
                self.lost.discard(number)
                return
            try:
                self._check("SELECT pg_advisory_unlock(%s)", number)
            except psycopg.OperationalError:
                self._disconnect()

    def confirm_held(self, thread: str, is_mine: Callable[[], bool]) -> None:
        """Make sure that a thread is still held, and take it again if the connection broke.

        Args:
            thread: The thread's id.
            is_mine: Called if the connection was away so long that another process may have had the thread
                and released it. Returns whether the run still belongs to this process.

        Raises:
            TakenOverError: Another process has taken the thread over.
            psycopg.OperationalError: The server is away; call again.
        """
        number = lock_number(THREAD(thread))
        if time.monotonic() - self.checked > self.grace / 4:  # before that, nobody can have taken it
            self.check_connection()
        if number in self.lost or (number in self.doubtful and not is_mine()):
            raise TakenOverError(thread)
        self.doubtful.discard(number)

    # -- the connection ------------------------------------------------------------------------------------

    def keep_alive(self) -> None:
        """Check the connection until `close`, and replace a broken one, with its locks, at once."""
        while not self.closed.wait(self.beat):
            with suppress(psycopg.Error):  # the server is away: try again soon
                self.check_connection()

    def check_connection(self) -> None:
        """Reconnect if the connection is broken, and try to get back the names that others have taken."""
        with self.guard:
            if self.closed.is_set():
                return
            now = time.monotonic()
            self._check_reconnecting("SELECT true")
            for number in self.lost & self.names:
                if self._check(TRY_LOCK, number):
                    self.lost.discard(number)
            self.checked = now

    def find_holder(self, number: int) -> Holder | None:
        """Return the holder of a lock without touching the lock."""
        with self.guard:
            found: Holder | None = self._fetch_reconnecting(
                FIND_HOLDER, number & LOW_BITS, number >> 32 & LOW_BITS
            )
            return found

    def find_worker(self, worker: str) -> Holder | None:
        """Return the holder of a worker's name."""
        return self.find_holder(lock_number(WORKER(worker)))

    def is_connected(self, holder: Holder) -> bool:
        """Tell whether a holder is still connected."""
        with self.guard:
            return self._check_reconnecting(IS_CONNECTED, *holder)

    def close(self) -> None:
        """Release all locks."""
        self.held.clear()
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
            self._reacquire()
        except BaseException:
            self._disconnect()  # without all of its locks the connection is of no use
            raise

    def _reacquire(self) -> None:
        """Take the locks over a new connection. Those that others have by then are lost."""
        now = time.monotonic()
        for number in self.held - self.lost:
            if not self._check(TRY_LOCK, number):
                self.lost.add(number)
        if now - self.checked >= self.grace:
            self.doubtful |= self.held
        self.checked = now

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
