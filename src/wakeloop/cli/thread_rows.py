"""Rows of the list of threads."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage

from wakeloop.cli.budget_hints import format_raise_hint
from wakeloop.cli.failures import CommandError, redact
from wakeloop.cli.store import DatabaseFile, Store, ThreadRecord
from wakeloop.cli.stored_state import DAMAGED, StoredState, read_state
from wakeloop.display.formatting import count_failed_calls, format_failures
from wakeloop.display.terminal_output import cut_text, find_width, format_columns
from wakeloop.display.terminal_text import clean_line
from wakeloop.text.marks import is_model_reply, is_user_message
from wakeloop.thread.thread_status import read_session
from wakeloop.todos.items import count_closed

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

COLUMNS = ("THREAD", "STATE", "OPEN", "REASON", "WAKES", "CHANGED", "TROUBLE", "REQUEST", "LAST MESSAGE")
TEXT_COLUMNS = ("REQUEST", "LAST MESSAGE")  # shortened on a narrow terminal
OPTIONAL_COLUMNS = ("WAKES", "REASON", "TROUBLE", "CHANGED")  # left out before that, in this order


def format_table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Format threads as a table that fits the terminal."""
    cells = list(map(format_cells, rows))
    columns = [*COLUMNS]
    if not any(row["TROUBLE"] for row in cells):
        columns.remove("TROUBLE")
    lines = [columns]
    for row in cells:
        lines.append([row[name] for name in columns])
    cuttable = [columns.index(name) for name in TEXT_COLUMNS]
    optional = [columns.index(name) for name in OPTIONAL_COLUMNS if name in columns]
    return format_columns(lines, find_width(sys.stdout), cuttable, optional)


def thread_row(store: Store, known: ThreadRecord, database: DatabaseFile) -> dict[str, Any]:
    """Return one thread as plain JSON; a damaged thread is only marked as such."""
    damaged = StoredState({"todo_session": {**DAMAGED}})
    try:
        state = damaged if known.damaged else read_state(store.saver, known.id)
    except CommandError:
        state = damaged
    row = summarize_thread(known, state, database, live=store.is_running(known.id))
    return {**row, "sent": store.count_waiting(known.id, state.values or {})}


def summarize_thread(
    known: ThreadRecord, snapshot: "StateSnapshot | StoredState", database: DatabaseFile, *, live: bool
) -> dict[str, Any]:
    """Return one thread as plain JSON; `raise` says how to raise the budget that ended its last run."""
    session, values = read_session(snapshot), snapshot.values or {}
    todos = values.get("todos") or []
    state: str = session["state"]
    if not values:
        state = "running" if live else "not started"
    elif state == "running" and not live:
        state = "interrupted"
    return {
        "thread": known.id,
        "state": state,
        "reason": session["reason"],
        "open": session["open"],
        "closed": count_closed(todos),
        "total": len(todos),
        "wakes": session["wakes"],
        "failed_calls": count_failed_calls(session),
        "completed": session["completed"],
        "cancelled": session["cancelled"],
        "blocked": session["blocked"],
        "on": session.get("on"),
        "until": session.get("until"),
        "question": redact(session.get("question", "")),
        "missing": redact(session.get("missing", "")),
        "changed": snapshot.created_at,
        "raise": format_raise_hint(
            session, known.spec, values.get("todo_settings") or {}, known.id, database
        ),
        "request": redact(known.request or first_request(values.get("messages") or ())),
        "last": redact(last_message(values.get("messages") or ())),
    }


def first_request(messages: Sequence[BaseMessage]) -> str:
    """Return the first message of the user."""
    for message in messages:
        if is_user_message(message):
            return message.text
    return ""


def last_message(messages: Sequence[BaseMessage]) -> str:
    """Return the last message of user or model; messages of the graph are skipped."""
    for message in reversed(messages):
        if (is_user_message(message) or is_model_reply(message)) and message.text.strip():
            return message.text
    return ""


def format_cells(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the cells of a thread by column."""
    return {
        "THREAD": clean_line(row["thread"]),
        "STATE": clean_line(f"{row['state']}, {row['sent']} sent" if row["sent"] else str(row["state"]), 20),
        "OPEN": f"{row['open']} of {row['total']}",
        "REASON": clean_line(str(row["reason"] or "-"), 20),
        "WAKES": str(row["wakes"]),
        "CHANGED": format_time(row["changed"]),
        "TROUBLE": format_failures(row["failed_calls"], row["blocked"], row["cancelled"]),
        "REQUEST": cut_text(clean_line(row["request"]), 32),
        "LAST MESSAGE": cut_text(clean_line(row["last"]), 40) or "-",
    }


def format_time(stamp: str | None) -> str:
    """Format a time in the local time zone, to the minute; "-" for a missing or invalid one."""
    try:
        return datetime.fromisoformat(stamp or "").astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return "-"
