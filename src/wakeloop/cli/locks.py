"""Which process has a thread, and which one runs it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2s
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

RUNNING = "run "  # before the name of a thread; no name has a blank


@dataclass(frozen=True)
class Hold:
    """A thread in the hands of this process."""

    file: BinaryIO | None
    thread: str

    @contextmanager
    def running(self) -> Iterator[None]:
        """Tell other processes that it is run, for as long as it is."""
        if self.file is None:
            yield
            return
        locked(self.file, RUNNING + self.thread)
        try:
            yield
        finally:
            locked(self.file, RUNNING + self.thread, free=True)


def locked(file: BinaryIO, name: str, *, free: bool = False) -> bool:
    """Take the byte of a name, unless another process has it, or let go of it."""
    if sys.platform == "win32":
        return True
    byte = int.from_bytes(blake2s(name.encode("utf-8", "surrogatepass"), digest_size=7).digest(), "big")
    try:
        fcntl.lockf(file, fcntl.LOCK_UN if free else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True
