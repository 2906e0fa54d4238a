"""The command in a terminal, whose screen an emulator shows."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pyte
import pytest
from processes import Shell
from seated import seated

ROWS = 40


class Emulator:
    """A process in a terminal, and its screen; it answers cursor position queries, as terminals do."""

    def __init__(self, shell: Shell, state: Path, *args: str, rows: int = ROWS) -> None:
        self.child: Any = seated(shell, state, *args, rows=rows, columns=80)
        self.screen = pyte.Screen(80, rows)
        self.screen.write_process_input = self.child.send
        self.stream = pyte.Stream(self.screen)

    def rows(self) -> list[str]:
        """Return the screen without empty rows and without what differs between runs."""
        shown = [re.sub(r"\d+\.\d s$", "S s", row.rstrip()) for row in self.screen.display]
        return [row for row in shown if row]

    def until(self, seen: Callable[[], object], seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not seen():
            if time.monotonic() > deadline:
                pytest.fail("\n".join(self.rows()))
            try:
                self.stream.feed(self.child.read_nonblocking(65_536, 0.05))
            except pexpect.TIMEOUT:
                continue
            except pexpect.EOF:
                return

    def until_last(self, *rows: str) -> None:
        self.until(lambda: self.rows()[-len(rows) :] == list(rows))

    def resized(self, columns: int) -> None:
        self.screen.resize(self.screen.lines, columns)
        self.child.setwinsize(self.screen.lines, columns)
        self.screen.reset()
