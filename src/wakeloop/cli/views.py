"""Choose the view that shows a run."""

import sys
from contextlib import ExitStack
from functools import partial
from typing import Any, Self, TextIO

from langgraph.types import StateSnapshot

from wakeloop.cli.execution import View
from wakeloop.cli.final_state import to_json_line
from wakeloop.cli.output_formats import OutputFormat
from wakeloop.cli.questions import suppress_echo
from wakeloop.cli.run_spec import RunSpec
from wakeloop.cli.spec_builder import settings_from_spec
from wakeloop.dialects import get_dialect
from wakeloop.display.live_view import LiveView, supports_live_view
from wakeloop.display.plain_view import PlainView
from wakeloop.display.screen import Line, Screen
from wakeloop.thread.thread_status import is_unfinished, read_session


class QuietView(PlainView):
    """Prints errors, questions, hints, every ending except success, and what is left of the list."""

    def feed(self, mode: str, data: Any) -> None:
        """Take one part of the stream."""
        self.screen.feed(mode, data)

    def say(self, line: Line) -> None:
        """Print a line if a person must read it."""
        if line.kind in ("error", "question", "way", "end"):
            super().say(line)


class NoEchoLive(LiveView):
    """A live region that typed keys do not tear apart; they stay for the next prompt."""

    def __enter__(self) -> Self:
        self.typed = ExitStack()
        self.typed.enter_context(suppress_echo(sys.stdin))
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.typed.close()


def print_event(out: TextIO | None, event: Any) -> None:
    """Print an event of the graph as a line of JSON."""
    print(to_json_line(event), file=out, flush=True)


def choose_view(run: RunSpec, before: StateSnapshot) -> View:
    """Return a live region for a terminal, else plain lines; machine output moves them to stderr."""
    screen = Screen(
        title=run.thread,
        todo_tools=get_dialect(settings_from_spec(run.spec).dialect).tool_names,
        todos=list(before.values.get("todos") or ()),
    )
    if is_unfinished(before):
        session = read_session(before)
        screen.wakes, screen.budget, screen.spent = session["wakes"], session["budget"], session["spent"]
    if run.output.shows_progress:
        return (
            NoEchoLive(screen, sys.stdout)
            if supports_live_view(sys.stdout)
            else PlainView(screen, sys.stdout)
        )
    if run.output.format is OutputFormat.STREAM_JSON:
        screen.listener = partial(print_event, run.output.data)
    return (QuietView if run.output.quiet else PlainView)(screen, sys.stderr)
