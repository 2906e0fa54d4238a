"""The view that a run is shown in."""

import sys
from contextlib import ExitStack
from typing import Any, Self

from langgraph.types import StateSnapshot

from wakeloop.cli.execution import View
from wakeloop.cli.final_state import to_json_line
from wakeloop.cli.output_formats import OutputFormat
from wakeloop.cli.questions import suppress_echo
from wakeloop.cli.run_spec import RunSpec
from wakeloop.cli.spec_builder import settings_from_spec
from wakeloop.dialects import get_dialect
from wakeloop.display.formatting import SENTENCES
from wakeloop.display.live_view import LiveView, supports_live_view
from wakeloop.display.plain_view import PlainView
from wakeloop.display.screen import Line, Screen
from wakeloop.thread.thread_status import is_unfinished, read_session

GOOD = SENTENCES["settled"]


class QuietView(PlainView):
    """Says what went wrong, what is asked, how to go on, and any end but the good one."""

    def feed(self, mode: str, data: Any) -> None:
        """Take one part of the stream."""
        self.screen.feed(mode, data)

    def say(self, line: Line) -> None:
        """Write a line that a person has to read."""
        if line.kind in ("error", "question", "way") or (line.kind == "end" and line.text != GOOD):
            super().say(line)


class NoEchoLive(LiveView):
    """A live region that nothing typed tears: it stays to be read afterwards."""

    def __enter__(self) -> Self:
        self.typed = ExitStack()
        self.typed.enter_context(suppress_echo(sys.stdin))
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.typed.close()


def print_event(event: Any) -> None:
    """Write an event of the graph as a line of JSON on stdout."""
    print(to_json_line(event), flush=True)  # noqa: T201


def choose_view(job: RunSpec, before: StateSnapshot) -> View:
    """A live region in a terminal, plain lines elsewhere; what is not for stdout goes to stderr."""
    screen = Screen(
        title=job.thread,
        todo_tools=get_dialect(settings_from_spec(job.spec).dialect).tool_names,
        todos=list(before.values.get("todos") or ()),
    )
    if is_unfinished(before):
        session = read_session(before)
        screen.wakes, screen.spent = session["wakes"], session["spent"]
    if job.output.shows_progress:
        return (
            NoEchoLive(screen, sys.stdout)
            if supports_live_view(sys.stdout)
            else PlainView(screen, sys.stdout)
        )
    if job.output.format is OutputFormat.STREAM_JSON:
        screen.listener = print_event
    return (QuietView if job.output.quiet else PlainView)(screen, sys.stderr)
