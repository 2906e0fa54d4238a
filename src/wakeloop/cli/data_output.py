"""Keeps stdout for data."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

STDOUT, STDERR = 1, 2  # file descriptors


@contextmanager
def keep_stdout_for_data() -> Iterator[TextIO]:
    """Yield stdout, and send to stderr whatever else is written there, by the user's tools or their children.

    The descriptor itself is moved, because a child process, a C library or `os.write` knows no `sys.stdout`.
    It stays moved until the process ends: what a module prints at exit is not data either.
    """
    out = data = sys.stdout
    if _is_descriptor(out):
        out.flush()
        data = os.fdopen(os.dup(STDOUT), "w", encoding=out.encoding, errors=out.errors)
        os.dup2(STDERR, STDOUT)
    sys.stdout = sys.stderr
    try:
        yield data
    finally:
        if data is out:  # a stream in memory, which its owner keeps using
            sys.stdout = out


def _is_descriptor(out: TextIO) -> bool:
    """Tell whether a stream is the stdout of the process, not one that is kept in memory."""
    try:
        return out.fileno() == STDOUT
    except (OSError, ValueError, io.UnsupportedOperation):
        return False
