"""Which process has a thread, and which one runs it."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2s
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

RUNNING_PREFIX = "run "  # before the name of a thread; no name has a blank
MUTEX = threading.Lock()  # held while a file is opened, closed, or asked


@dataclass
class LockFile:
    """A file with a byte for each name, opened once in a process: closing any descriptor frees all locks."""

    file: BinaryIO
    users: int = 0
    owned: set[str] = field(default_factory=set)

    def acquire(self, name: str) -> bool:
        """Take a name, unless somebody has it."""
        with MUTEX:
            if name in self.owned or not _lock_byte(self.file, name):
                return False
            self.owned.add(name)
            return True

    def release(self, name: str) -> None:
        """Let go of a name."""
        with MUTEX:
            self.owned.discard(name)
            _lock_byte(self.file, name, free=True)

    def is_locked_elsewhere(self, name: str) -> bool:
        """Whether another process has a name."""
        with MUTEX:
            if name in self.owned:
                return False
            free = _lock_byte(self.file, name)
            if free:
                _lock_byte(self.file, name, free=True)
            return not free


@dataclass(frozen=True)
class ThreadLock:
    """A thread in the hands of this process."""

    locks: LockFile | None
    thread: str

    @contextmanager
    def mark_running(self) -> Iterator[None]:
        """Tell other processes that it is run, for as long as it is."""
        if self.locks is not None:
            self.locks.acquire(RUNNING_PREFIX + self.thread)
        try:
            yield
        finally:
            if self.locks is not None:
                self.locks.release(RUNNING_PREFIX + self.thread)


OPEN_FILES: dict[str, LockFile] = {}


@contextmanager
def open_lock_file(path: str, mode: str) -> Iterator[LockFile | None]:
    """The locks in a file, which the last user closes; None on Windows, which has no such locks."""
    if sys.platform == "win32":
        yield None
        return
    with MUTEX:
        if path not in OPEN_FILES:
            file = open(path, mode, opener=partial(os.open, mode=0o600))  # noqa: SIM115 - closed by the last
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
    """Take the byte of a name, unless another process has it, or let go of it."""
    if sys.platform == "win32":
        return True
    byte = int.from_bytes(blake2s(name.encode("utf-8", "surrogatepass"), digest_size=7).digest(), "big")
    try:
        fcntl.lockf(file, fcntl.LOCK_UN if free else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True
