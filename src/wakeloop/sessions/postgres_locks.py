"""One process a thread: advisory locks on Postgres."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2s
from typing import Protocol

import psycopg

from wakeloop.sessions.host import GRACE, TakenOverError
from wakeloop.sessions.lock_connection import LockConnection

RETRY_EVERY = 0.1  # seconds between two tries for a thread that another process holds
CHECK_EVERY = 0.5  # seconds between two looks at the connection
LOW_BITS = 0xFFFFFFFF
TRY_LOCK = "SELECT pg_try_advisory_lock(%s)"
FIND_HOLDER = """SELECT pid, backend_start::text FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND objid = %s::bigint AND classid = %s::bigint
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
IS_CONNECTED = """SELECT EXISTS (SELECT 1 FROM pg_stat_activity
    WHERE pid = %s AND backend_start::text IS NOT DISTINCT FROM %s)"""

Holder = tuple[int, str | None]  # a connection: its process in the server, and when that began


def lock_number(name: str) -> int:
    """Return the 64-bit number of a lock."""
    return int.from_bytes(
        blake2s(name.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True
    )


def thread_lock_name(thread: str) -> str:
    """Return the name of a thread's lock."""
    return f"wakeloop thread {thread}"


def worker_lock_name(worker: str) -> str:
    """Return the name of a worker's lock."""
    return f"wakeloop worker {worker}"


class HasSetup(Protocol):
    """What makes its tables itself, such as a `PostgresSaver`."""

    def setup(self) -> None:
        """Make the tables that are not there yet."""


def set_up_tables(saver: HasSetup, url: str) -> None:
    """Make a saver's tables on Postgres, also where several workers begin at once on an empty database.

    `saver.setup()` alone is for one process: of several at once, all but one fail.

    Args:
        saver: What makes its tables itself, such as a `PostgresSaver`.
        url: The database, `postgresql://…`.
    """
    with closing(Locks(url)) as locks, locks.hold_setup():
        saver.setup()


@dataclass
class LockObservation:
    """What somebody who waits for a lock has seen of it."""

    last: Holder | None = None
    since: float | None = None

    def is_free(self, holder: Holder | None, lives: Callable[[Holder], bool], grace: float) -> bool:
        """Tell whether it may be taken: given back by one who lives, or free for the time of grace."""
        if holder is not None:
            self.last, self.since = holder, None
            return False
        if self.last is not None and lives(self.last):
            return True
        now = time.monotonic()
        self.since = self.since if self.since is not None else now
        return now - self.since >= grace


class Locks(LockConnection):
    """Session advisory locks: Postgres lets go of them when the connection that holds them is gone.

    All of a process are held by one connection, straight to the server: through a pooler that shares
    connections by transaction they mean nothing. Where it broke, `keep` makes it anew at once and takes its
    locks again. So nobody takes a lock whose holder's connection is gone before it has been free for `grace`
    seconds; one that its holder gave back is taken at once.
    """

    def __init__(self, url: str, grace: float = GRACE) -> None:
        super().__init__(url)
        self.grace = grace
        self.beat = min(CHECK_EVERY, grace / 10)
        self.held: set[int] = set()  # also while the connection is away
        self.names: set[int] = set()  # those of them that are taken again, however long another has them
        self.lost: set[int] = set()  # those that another has taken over
        self.doubtful: set[int] = set()  # those that another may have had meanwhile
        self.seen = -grace  # when the server said last that the connection lives

    # -- holding -------------------------------------------------------------------------------------------

    def hold_thread(self, thread: str) -> AbstractContextManager[None]:
        """Hold a thread for the length of a run; wait while another process holds it."""
        return self.hold(thread_lock_name(thread), self.grace)

    def hold_setup(self) -> AbstractContextManager[None]:
        """Hold what makes tables: of several processes that begin at once, one after another."""
        return self.hold("wakeloop set-up")

    @contextmanager
    def hold(self, name: str, grace: float = 0.0) -> Iterator[None]:
        """Hold a lock; try again while another has it, since an index is never built while a query waits."""
        number = lock_number(name)
        if not self.acquire(number):
            self.wait_for_lock(number, grace)
        try:
            yield
        finally:
            self.release(number)

    def wait_for_lock(self, number: int, grace: float) -> None:
        """Take a lock that another has, once it may be taken."""
        found, over = LockObservation(), self.made
        while True:
            time.sleep(min(RETRY_EVERY, self.beat))
            try:
                holder = self.find_holder(number)
                if over != self.made:
                    over, found.since = self.made, None  # nobody looked meanwhile
                if found.is_free(holder, self.is_connected, grace) and self.acquire(number, over):
                    return
            except psycopg.OperationalError:
                if self.closed.is_set():
                    raise

    @contextmanager
    def hold_worker(self, worker: str, over: int | None = None) -> Iterator[bool]:
        """Hold a worker's name, which shows that it lives; False where another process has it."""
        number = lock_number(worker_lock_name(worker))
        taken = self.acquire(number, over)
        if taken:
            self.names.add(number)
        try:
            yield taken
        finally:
            if taken:
                self.names.discard(number)
                self.release(number)

    def acquire(self, number: int, over: int | None = None) -> bool:
        """Take a lock, unless it is held: in this process (Postgres would count it twice) or in another.

        What was seen free `over` a connection is taken over the same one, else its owner may not be back yet.
        """
        with self.guard:
            if number in self.held or over not in (None, self.made):
                return False
            ask = self._check_reconnecting if over is None else self._check  # which makes no new connection
            if not ask(TRY_LOCK, number):
                return False
            self.held.add(number)
            return True

    def release(self, number: int) -> None:
        """Let go of a lock; one whose connection is gone is free already."""
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
        """Make sure that a thread is still held; take it again where the connection broke.

        Args:
            thread: The thread's id.
            is_mine: Asked where the connection was away for so long that another may have had the thread
                and given it back: whether it is this process's by the engine's records.

        Raises:
            TakenOverError: Another process has taken it over since.
            psycopg.OperationalError: The server is away: call again.
        """
        number = lock_number(thread_lock_name(thread))
        if time.monotonic() - self.seen > self.grace / 4:  # else nobody can have taken it
            self.check_connection()
        if number in self.lost or (number in self.doubtful and not is_mine()):
            raise TakenOverError(thread)
        self.doubtful.discard(number)

    # -- the connection ------------------------------------------------------------------------------------

    def keep_alive(self) -> None:
        """Look after the connection until `close`: one that broke is made anew at once, with its locks."""
        while not self.closed.wait(self.beat):
            with suppress(psycopg.Error):  # the server is away: again at once
                self.check_connection()

    def check_connection(self) -> None:
        """See whether the connection lives, else make it anew; try again for names that others have."""
        with self.guard:
            if self.closed.is_set():
                return
            now = time.monotonic()
            self._check_reconnecting("SELECT true")
            self.lost -= {number for number in self.lost & self.names if self._check(TRY_LOCK, number)}
            self.seen = now

    def find_holder(self, number: int) -> Holder | None:
        """Return who has a lock, without touching it."""
        with self.guard:
            found: Holder | None = self._fetch_reconnecting(
                FIND_HOLDER, number & LOW_BITS, number >> 32 & LOW_BITS
            )
            return found

    def find_worker(self, worker: str) -> Holder | None:
        """Return who has a worker's name."""
        return self.find_holder(lock_number(worker_lock_name(worker)))

    def is_connected(self, holder: Holder) -> bool:
        """Tell whether a holder is still connected."""
        with self.guard:
            return self._check_reconnecting(IS_CONNECTED, *holder)

    def reacquire(self) -> None:
        """Take the locks over a new connection; what another has by then is lost."""
        now = time.monotonic()
        for number in self.held - self.lost:
            if not self._check(TRY_LOCK, number):
                self.lost.add(number)
        if now - self.seen >= self.grace:
            self.doubtful |= self.held
        self.seen = now

    def close(self) -> None:
        """Let go of all."""
        self.held.clear()
        super().close()
