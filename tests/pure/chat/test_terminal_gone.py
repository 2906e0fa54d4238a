"""The terminal may disappear while somebody types ahead."""

from __future__ import annotations

import os
import pty
import threading
from threading import Event, Thread

import pytest
from prompt_toolkit.input.vt100 import Vt100Input

from wakeloop.cli.chat.input import TypeAhead


@pytest.mark.parametrize("gone", ["hung up", "closed"])
def test_a_terminal_that_disappears_ends_the_reading_silently(
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
