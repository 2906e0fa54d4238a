"""List the sessions and their status."""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict

from wakeloop.cli.final_state import to_json_line
from wakeloop.cli.sessions.storage import SessionStorage
from wakeloop.display.formatting import format_wait, format_waiting
from wakeloop.display.terminal_output import find_width, format_columns
from wakeloop.display.terminal_text import clean_line
from wakeloop.sessions.host import SessionStatus
from wakeloop.text.characters import pluralize

COLUMN_TITLES = ("SESSION", "STATE", "REASON", "OPEN", "DONE", "WAKES", "WAITS FOR", "QUEUED", "ERROR")


def format_status(status: SessionStatus) -> str:
    """Format a session's status as one line."""
    why = status.error or status.reason or "not started"
    if status.on and not status.error:
        why = f"for {format_wait(status.on, status.until)}"
    wakes = f"{status.wakes}/{pluralize(status.budget, 'wake')}"
    items = [f"{status.open} open"]
    for kind in ("completed", "cancelled", "blocked"):
        if count := getattr(status, kind):
            items.append(f"{count} {kind}")
    return clean_line(f"{status.thread}: {status.state}, {why}; {', '.join([*items, wakes])}", 500)


def list_sessions(storage: SessionStorage, *, json: bool) -> Iterator[str]:
    """Yield the sessions, one line each, and the commands that answer their questions."""
    with storage.open_client() as client:
        found = client.list()
    if json:
        yield to_json_line([asdict(status) for status in found])
        return
    if not found:
        yield "No sessions yet."
        return
    yield from format_columns(
        [COLUMN_TITLES, *map(format_cells, found)], find_width(sys.stdout), cuttable=(8,), spare=(5,)
    )
    for status in found:
        yield from format_waiting(asdict(status))
        for question in status.asks:
            yield format_answer_command(status.thread, question)


def format_answer_command(thread: str, question: str) -> str:
    """Format the command that answers this question and no other."""
    words = ["wakeloop", "send", clean_line(thread), "your answer", "--answers", clean_line(question)]
    return f"To answer: {shlex.join(words)}"


def format_done(status: SessionStatus) -> str:
    """Format how many items are completed, and how many were given up: `2 of 5, 1 blocked`."""
    parts = [f"{status.completed} of {status.items}"]
    for kind in ("cancelled", "blocked"):
        if count := getattr(status, kind):
            parts.append(f"{count} {kind}")
    return ", ".join(parts)


def format_cells(status: SessionStatus) -> tuple[str, ...]:
    """Format a session's status as table cells."""
    return (
        clean_line(status.thread),
        status.state,
        clean_line(status.reason or "-", 20),
        str(status.open),
        format_done(status),
        f"{status.wakes}/{status.budget}",
        status.on or "-",
        f"{status.queued}, {status.sent} sent" if status.sent else str(status.queued),
        clean_line(status.error or "-", 60),
    )
