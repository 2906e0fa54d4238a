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

RUNNING = "run "  # before the name of a thread; no name has a blank
ONE = threading.Lock()  # held while a file is opened, closed, or asked


@dataclass
class Locks:
    """A file with a byte for each name, opened once in a process: closing any descriptor frees all locks."""

    file: BinaryIO
    users: int = 0
    mine: set[str] = field(default_factory=set)

    def take(self, name: str) -> bool:
        """Take a name, unless somebody has it."""
        with ONE:
            if name in self.mine or not _locked(self.file, name):
                return False
            self.mine.add(name)
            return True

    def leave(self, name: str) -> None:
        """Let go of a name."""
        with ONE:
            self.mine.discard(name)
            _locked(self.file, name, free=True)

    def is_elsewhere(self, name: str) -> bool:
        """Whether another process has a name."""
        with ONE:
            if name in self.mine:
                return False
            free = _locked(self.file, name)
            if free:
                _locked(self.file, name, free=True)
            return not free


@dataclass(frozen=True)
class Hold:
    """A thread in the hands of this process."""

    locks: Locks | None
    thread: str

    @contextmanager
    def running(self) -> Iterator[None]:
        """Tell other processes that it is run, for as long as it is."""
        if self.locks is not None:
            self.locks.take(RUNNING + self.thread)
        try:
            yield
        finally:
            if self.locks is not None:
                self.locks.leave(RUNNING + self.thread)


OPEN: dict[str, Locks] = {}


@contextmanager
def locks(path: str, mode: str) -> Iterator[Locks | None]:
    """The locks in a file, which the last user closes; None on Windows, which has no such locks."""
    if sys.platform == "win32":
        yield None
        return
    with ONE:
        if path not in OPEN:
            file = open(path, mode, opener=partial(os.open, mode=0o600))  # noqa: SIM115 - closed by the last
            OPEN[path] = Locks(file)  # type: ignore[arg-type]
        found = OPEN[path]
        found.users += 1
    try:
        yield found
    finally:
        with ONE:
            found.users -= 1
            if not found.users:
                OPEN.pop(path).file.close()


def _locked(file: BinaryIO, name: str, *, free: bool = False) -> bool:
    """Take the byte of a name, unless another process has it, or let go of it."""
    if sys.platform == "win32":
        return True
    byte = int.from_bytes(blake2s(name.encode("utf-8", "surrogatepass"), digest_size=7).digest(), "big")
    try:
        fcntl.lockf(file, fcntl.LOCK_UN if free else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True
