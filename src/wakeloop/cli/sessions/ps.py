"""Lists the sessions, and how each stands."""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict

from wakeloop.cli.final_state import to_json_line
from wakeloop.cli.sessions.storage import SessionStorage
from wakeloop.display.terminal_output import find_width, format_columns
from wakeloop.display.terminal_text import clean_line
from wakeloop.sessions.host import SessionStatus
from wakeloop.text.characters import pluralize

COLUMN_TITLES = ("SESSION", "STATE", "REASON", "OPEN", "WAKES", "WAITS FOR", "QUEUED", "ERROR")


def format_status(status: SessionStatus) -> str:
    """How a session stands, in a line."""
    why = status.error or status.reason or "not begun"
    wakes = f"{status.wakes}/{pluralize(status.budget, 'wake')}"
    return clean_line(f"{status.thread}: {status.state}, {why}; {status.open} open, {wakes}", 500)


def list_sessions(where: SessionStorage, *, json: bool) -> Iterator[str]:
    """The sessions, a line each."""
    with where.open_post() as post:
        found = post.list()
    if json:
        yield to_json_line([asdict(status) for status in found])
        return
    if not found:
        yield "No sessions yet."
        return
    yield from format_columns(
        [COLUMN_TITLES, *map(format_cells, found)], find_width(sys.stdout), texts=(7,), spare=(4,)
    )
    for status in found:
        yield from (format_answer_command(status.thread, question) for question in status.asks)


def format_answer_command(thread: str, question: str) -> str:
    """The command that answers one question and no other."""
    words = ["wakeloop", "send", clean_line(thread), "your answer", "--answers", clean_line(question)]
    return f"To answer: {shlex.join(words)}"


def format_cells(status: SessionStatus) -> tuple[str, ...]:
    """One session's cells."""
    return (
        clean_line(status.thread),
        status.state,
        clean_line(status.reason or "-", 20),
        str(status.open),
        f"{status.wakes}/{status.budget}",
        status.on or "-",
        str(status.queued),
        clean_line(status.error or "-", 60),
    )
