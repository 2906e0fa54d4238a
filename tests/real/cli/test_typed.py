"""Waiting for what a person types: a signal that wakes no read, lines, the end."""

from __future__ import annotations

import os
import pty
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO

import pytest
from langgraph.types import Interrupt

from wakeloop.cli import discovery
from wakeloop.cli.chat.input import PipeInput
from wakeloop.cli.launch import read_stdin
from wakeloop.cli.questions import ask_questions
from wakeloop.cli.streams import read_all, read_line


@pytest.fixture
def terminal() -> Iterator[tuple[int, TextIO]]:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs) as source:
        yield ours, source
        os.close(ours)


@pytest.mark.parametrize(
    "reads",
    [
        pytest.param(
            lambda source: ask_questions([Interrupt("Go on?", "1")], print, source),
            id="a tool's question",
        ),
        pytest.param(lambda _: discovery.ask_line("Which one? "), id="a question of init"),
        pytest.param(lambda source: PipeInput(source).read_entry(""), id="a line of a chat"),
        pytest.param(read_stdin, id="a whole request"),
    ],
)
def test_a_signal_that_another_thread_got(reads, terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like one that comes just before a read begins: it wakes no read."""
    ours, source = terminal
    monkeypatch.setattr(sys, "stdin", source)
    over, unheard = threading.Event(), threading.Event()

    def elsewhere() -> None:
        time.sleep(0.3)  # by then it reads
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        if not over.wait(10):
            unheard.set()
            os.write(ours, b"a key\n\x04")

    sender = threading.Thread(target=elsewhere)
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            reads(source)
    finally:
        over.set()
        sender.join()
    assert not unheard.is_set()


def test_lines_and_the_end(terminal) -> None:
    ours, source = terminal
    os.write(ours, b"one\ntwo\n")
    assert (read_line(source), read_line(source)) == ("one\n", "two\n")
    os.write(ours, b"three\nfour\n\x04")
    assert read_all(source) == "three\nfour\n"
    assert signal.set_wakeup_fd(-1) == -1  # its owner has it back


def test_a_signal_that_stops_nothing_is_not_a_key(terminal) -> None:
    ours, source = terminal
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))

    def types() -> None:
        for _ in range(3):
            time.sleep(0.05)
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        os.write(ours, b"typed\n")

    typist = threading.Thread(target=types)
    typist.start()
    try:
        assert read_line(source) == "typed\n"
    finally:
        typist.join()
        signal.signal(signal.SIGUSR1, before)
    assert set(seen) == {signal.SIGUSR1}
