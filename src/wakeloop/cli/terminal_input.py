"""Terminal input that Ctrl-C always interrupts."""

import select
import signal
import socket
import threading
from io import UnsupportedOperation
from typing import TextIO


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
