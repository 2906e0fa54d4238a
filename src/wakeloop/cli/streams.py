"""What a command reads and writes: formats, terminal, files."""

import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from io import UnsupportedOperation
from pathlib import Path
from secrets import token_hex
from shutil import copymode
from typing import Self, TextIO

from wakeloop.cli.failures import CommandError, usage_error


class OutputFormat(StrEnum):
    """What stdout gets: lines for people, the final state, or every event and then the final state."""

    TEXT = "text"
    JSON = "json"
    STREAM_JSON = "stream-json"


@dataclass(frozen=True)
class OutputOptions:
    """What stdout gets, and whether progress lines are left out; a quiet text run prints the answer alone."""

    format: OutputFormat = OutputFormat.TEXT
    quiet: bool = False
    data: TextIO | None = None  # where the data goes while stdout is kept for it

    @classmethod
    def from_flags(cls, output: OutputFormat | None, *, json: bool, quiet: bool) -> Self:
        """Read the flags; `--json` is short for `--output json`."""
        if json and output not in (None, OutputFormat.JSON):
            raise usage_error(f"--json means --output json: drop --json or --output {output}.")
        return cls(OutputFormat.JSON if json else output or OutputFormat.TEXT, quiet)

    @property
    def shows_progress(self) -> bool:
        """Whether the progress lines of a run go to stdout."""
        return self.format is OutputFormat.TEXT and not self.quiet


def at_a_terminal() -> bool:
    """Whether a person sees both outputs."""
    return sys.stderr.isatty() and sys.stdout.isatty()


# -- terminal input that Ctrl-C always interrupts --------------------------------------------------------


def read_line(source: TextIO) -> str:
    """Read a line; return "" at the end of the input.

    Python's own read misses a signal that arrives just before it, or in another thread. At a terminal, this
    waits for a key or a signal, whichever comes first.
    """
    if source.isatty() and threading.current_thread() is threading.main_thread():
        try:
            descriptor = source.fileno()
        except UnsupportedOperation:  # not a real file, as in tests
            return source.readline()
        wait_for_key(descriptor)
    return source.readline()


def read_all(source: TextIO) -> str:
    """Read all input, at a terminal until Ctrl-D."""
    return "".join(iter(lambda: read_line(source), "")) if source.isatty() else source.read()


def wait_for_key(terminal: int) -> None:
    """Wait until there is input. Exceptions of signal handlers are raised here."""
    receiver, sender = socket.socketpair()
    either: list[int | socket.socket] = [terminal, receiver]
    with receiver, sender:
        sender.setblocking(False)
        before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        try:
            while terminal not in select.select(either, [], [])[0]:
                receiver.recv(64)
        finally:
            signal.set_wakeup_fd(before)


# -- keeps stdout for data -------------------------------------------------------------------------------


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
    except (OSError, ValueError, UnsupportedOperation):
        return False


# -- atomic file writes ----------------------------------------------------------------------------------


DASH = Path("-")  # means stdout


def write_atomically(text: str, file: Path, *, force: bool = False) -> list[str]:
    """Write text to a file, completely or not at all; overwrite an existing file only with `force`.

    Returns the lines to print: the file's name, or nothing when the file is stdout (`-`).
    """
    data = text.encode("utf-8", "replace")
    if file == DASH:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return []
    try:
        exists = file.is_symlink() or file.exists()
        if file.exists() and not (file.is_file() or file.is_dir()):  # a device or a pipe
            file.write_bytes(data)
            return [str(file)]
        if exists and not force:
            raise usage_error(
                f"The file {str(file)!r} already exists. Name another one with -o, or add --force."
            )
        target = file.resolve()  # a link stays, and the file that it points to is replaced
        temporary = target.with_name(f".wakeloop-{token_hex(8)}")
        try:
            with temporary.open("xb") as new:  # a file or link that is already there is never written through
                new.write(data)
            if target.exists():
                copymode(target, temporary)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        reason = "its folder does not exist" if isinstance(error, FileNotFoundError) else error.strerror
        raise CommandError(f"Cannot write the file {str(file)!r}: {reason}.") from None
    return [str(file)]
