"""File locks: which process holds a thread, and runs it."""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2s
from typing import BinaryIO

RUNNING_PREFIX = "run "  # before a thread's name; no name contains a blank
MUTEX = threading.Lock()  # guards opening, closing and asking a file


@dataclass
class LockFile:
    """A file with one lockable byte per name.

    It is open only once in a process: closing any descriptor of it would release all of its locks.
    """

    file: BinaryIO
    users: int = 0
    owned: set[str] = field(default_factory=set)

    def acquire(self, name: str) -> bool:
        """Lock a name; return False if somebody else has it."""
        with MUTEX:
            if name in self.owned or not _lock_byte(self.file, name):
                return False
            self.owned.add(name)
            return True

    def release(self, name: str) -> None:
        """Unlock a name."""
        with MUTEX:
            self.owned.discard(name)
            _lock_byte(self.file, name, free=True)

    def is_locked_elsewhere(self, name: str) -> bool:
        """Whether another process has locked a name."""
        with MUTEX:
            if name in self.owned:
                return False
            free = _lock_byte(self.file, name)
            if free:
                _lock_byte(self.file, name, free=True)
            return not free


@dataclass(frozen=True)
class ThreadLock:
    """A thread that this process has locked."""

    locks: LockFile
    thread: str

    @contextmanager
    def mark_running(self) -> Iterator[None]:
        """Show other processes that the thread is running, not just held by an idle chat."""
        self.locks.acquire(RUNNING_PREFIX + self.thread)
        try:
            yield
        finally:
            self.locks.release(RUNNING_PREFIX + self.thread)


OPEN_FILES: dict[str, LockFile] = {}


@contextmanager
def open_lock_file(path: str, mode: str) -> Iterator[LockFile]:
    """Open a lock file, which its last user closes."""
    with MUTEX:
        if path not in OPEN_FILES:
            file = open(path, mode, opener=partial(os.open, mode=0o600))  # noqa: SIM115 - the last user closes it
            OPEN_FILES[path] = LockFile(file)  # type: ignore[arg-type]
        found = OPEN_FILES[path]
        found.users += 1
    try:
        yield found
    finally:
        with MUTEX:
            found.users -= 1
            if not found.users:
                OPEN_FILES.pop(path).file.close()


def _lock_byte(file: BinaryIO, name: str, *, free: bool = False) -> bool:
    """Lock or free the byte of a name; return False if another process has it."""
    byte = int.from_bytes(blake2s(name.encode("utf-8", "surrogatepass"), digest_size=7).digest(), "big")
    try:
        fcntl.lockf(file, fcntl.LOCK_UN if free else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True
