"""How a run has ended: words, one JSON object, an exit code."""

import json
import math
import shlex
import signal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wakeloop.cli.failures import FAILED, INTERRUPTED, OPEN, SETTLED, TERMINATED, WAITING
from wakeloop.cli.store import DatabaseFile
from wakeloop.display.formatting import (
    APPROVAL_HELP,
    count_blocked,
    count_failed_calls,
    format_ending,
    format_interrupt,
    format_item,
    format_trouble,
    wants_approval,
)
from wakeloop.display.screen import Line
from wakeloop.loop.gates import ENDINGS
from wakeloop.thread.thread_status import answer_of, read_session, session_of
from wakeloop.todos.items import is_open

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from wakeloop.cli.stored_state import StoredState

MOST_ITEMS = 40  # of the list, at the end


def exit_code(session: Mapping[str, Any], stopped: int | None = None) -> int:
    """Return the exit code for a session, or for a run that a signal stopped."""
    if stopped is not None:
        return TERMINATED if stopped == signal.SIGTERM else INTERRUPTED
    if session["state"] == "waiting":
        return WAITING
    if session["state"] == "running":
        return FAILED
    if session["reason"] is None:
        return OPEN if session["open"] else SETTLED
    ended = ENDINGS.get(session["reason"])
    if ended is None:  # a damaged thread
        return OPEN if session["open"] else FAILED
    return ended.exit_code_open if session["open"] else ended.exit_code


def resume_command(thread: str, database: DatabaseFile, *more: str) -> str:
    """The command line that goes on with a thread."""
    words = ["wakeloop", "resume", thread, *more, *(["--db", str(database.path)] if database.named else [])]
    return shlex.join(words)


def closing_lines(
    snapshot: "StateSnapshot", thread: str, database: DatabaseFile, summary: str, *, whole: bool
) -> list[Line]:
    """What is said at the end: the list (`whole`, or what is not closed), the ending, how to go on."""
    session = read_session(snapshot)
    todos = [t for t in snapshot.values.get("todos") or () if whole or is_open(t) or t["status"] == "blocked"]
    lines = [Line("item", f"  {format_item(todo)}") for todo in todos[:MOST_ITEMS]]
    if len(todos) > MOST_ITEMS:
        rest = f"  … and {len(todos) - MOST_ITEMS} more: wakeloop todo {shlex.quote(thread)} list"
        lines.append(Line("item", rest))
    lines += [Line("end", format_ending(session)), Line("note", f"thread {thread}: {summary}")]
    if told := format_trouble(session, snapshot.values.get("todos") or ()):
        lines.append(Line("error", told))
    if snapshot.interrupts:
        asked = [text for one in snapshot.interrupts for text in format_interrupt(one.value)]
        lines += [Line("question", f"question: {text}") for text in asked]
        lines.append(Line("way", f"To answer: {resume_command(thread, database, 'your answer')}"))
        if any(wants_approval(one.value) for one in snapshot.interrupts):
            lines.append(Line("note", f"The answer: {APPROVAL_HELP}."))
    elif session["state"] == "running" or session["open"]:
        lines.append(Line("way", f"To go on: {resume_command(thread, database)}"))
    return lines


def final_state(
    thread: str,
    snapshot: "StateSnapshot | StoredState",
    *,
    usage: Mapping[str, int] | None = None,
    error: str | None = None,
) -> dict[str, Any]:
    """The final state as plain JSON.

    Keys: `thread`, `session` (as `session_of` has it), `todos`,
    `goal`, `answer` (the model's last text), `structured_response`, `messages` (their number), `wakes`,
    `failed_calls`, `blocked` (items),
    `questions` (`id` and `value` of each interrupt that waits), `usage` (`input_tokens`, `output_tokens`,
    `total_tokens` of this run's requests), `error` (a sentence, or None).
    """
    values, session = snapshot.values or {}, read_session(snapshot)
    return {
        "thread": thread,
        "session": session_of(snapshot),
        "todos": list(values.get("todos") or ()),
        "goal": str(values.get("todo_goal") or ""),
        "answer": answer_of(snapshot),
        "structured_response": values.get("structured_response"),
        "messages": len(values.get("messages") or ()),
        "wakes": session["wakes"],
        "failed_calls": count_failed_calls(session),
        "blocked": count_blocked(values.get("todos") or ()),
        "questions": [{"id": one.id, "value": one.value} for one in snapshot.interrupts],
        "usage": dict(usage or sum_usage(values.get("messages") or ())),
        "error": error,
    }


def sum_usage(messages: Sequence[Any]) -> dict[str, int]:
    """The tokens of a whole thread, as far as its messages tell."""
    told = [usage for message in messages if (usage := getattr(message, "usage_metadata", None))]
    read, written = (sum(usage[key] for usage in told) for key in ("input_tokens", "output_tokens"))
    return usage_counts(read, written)


def usage_counts(read: int, written: int) -> dict[str, int]:
    """Token counts under the names that LangChain gives them."""
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}


def to_json_line(value: Any) -> str:
    """One line of JSON in plain ASCII: no control code of a text reaches a terminal raw."""
    try:
        text = json.dumps(value, default=str, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        text = json.dumps(to_jsonable(value), allow_nan=False)
    return text.replace("\x7f", "\\u007f")


def to_jsonable(value: Any, room: int = 64) -> Any:
    """A value as JSON can hold it: a number that is none is null, a key is a text, what is too deep too."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if room and isinstance(value, Mapping):
        return {str(key): to_jsonable(part, room - 1) for key, part in value.items()}
    if room and isinstance(value, list | tuple):
        return [to_jsonable(part, room - 1) for part in value]
    return f"<{type(value).__name__}>" if not room else str(value)
