"""What is typed ahead: the terminal may go away meanwhile."""

from __future__ import annotations

import os
import pty
import threading
from threading import Event, Thread

import pytest
from prompt_toolkit.input.vt100 import Vt100Input

from wakeloop.cli.chat.input import TypeAhead


@pytest.mark.parametrize("gone", ["hung up", "closed"])
def test_a_terminal_that_goes_away_ends_the_reading_without_a_word(
    gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs) as terminal:
        reader = Thread(target=TypeAhead(Vt100Input(terminal)).read_keys, args=(Event(), bool), daemon=True)
        reader.start()
        os.close(ours) if gone == "hung up" else terminal.close()
        reader.join(10)
        assert (reader.is_alive(), raised) == (False, [])
    if gone == "closed":
        os.close(ours)
