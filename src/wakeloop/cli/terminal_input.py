"""Reads what a person types; Ctrl-C is heard at any moment."""

import select
import signal
import socket
import sys
import threading
from io import UnsupportedOperation
from typing import TextIO


def read_line(source: TextIO) -> str:
    """Read a line; empty at the end of the input.

    A read of Python's own sleeps on through a signal that comes just before it, or that the system gives to
    another thread: at a terminal the wait is for a key or a signal, whatever comes first.
    """
    if sys.platform != "win32" and source.isatty() and threading.current_thread() is threading.main_thread():
        try:
            descriptor = source.fileno()
        except UnsupportedOperation:  # a stand-in
            return source.readline()
        wait_for_key(descriptor)
    return source.readline()


def read_all(source: TextIO) -> str:
    """Read all that is given, at a terminal up to its Ctrl-D."""
    return "".join(iter(lambda: read_line(source), "")) if source.isatty() else source.read()


def wait_for_key(terminal: int) -> None:
    """Wait until there is something to read. What the handler of a signal raises is raised here."""
    heard, told = socket.socketpair()
    either: list[int | socket.socket] = [terminal, heard]
    with heard, told:
        told.setblocking(False)
        before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
        try:
            while terminal not in select.select(either, [], [])[0]:
                heard.recv(64)
        finally:
            signal.set_wakeup_fd(before)
