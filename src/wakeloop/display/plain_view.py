"""Plain view: lines for pipes, logs, simple terminals."""

from typing import Any, Self, TextIO

from wakeloop.display.screen import Line, Screen
from wakeloop.display.terminal_output import write_text


class PlainView:
    """A view that writes and flushes each line as it comes."""

    def __init__(self, screen: Screen, out: TextIO) -> None:
        self.screen, self.out = screen, out

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def feed(self, mode: str, data: Any) -> None:
        """Show one part of the stream."""
        for line in self.screen.feed(mode, data):
            self.say(line)

    def say(self, line: Line) -> None:
        """Write a line."""
        write_text(line.text, self.out)
