"""The end of a run: lines, JSON, exit code, budgets."""

import json
import math
import shlex
import signal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.failures import FAILED, INTERRUPTED, SETTLED, TERMINATED, WAITING
from wakeloop.cli.questions import find_questions
from wakeloop.cli.spec_builder import LIMIT_OPTIONS, settings_from_spec
from wakeloop.cli.store import DatabaseFile
from wakeloop.display import formatting
from wakeloop.display.screen import Line
from wakeloop.errors import SettingsError
from wakeloop.loop.gates import LIMITS, choose_exit_code
from wakeloop.loop.overrides import apply_overrides, check_overrides
from wakeloop.loop.waits import ENDED_BY_KICK
from wakeloop.thread.thread_status import answer_of, read_session, session_of
from wakeloop.todos.items import count_items, is_open

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from wakeloop.cli.stored_state import StoredState


MOST_ITEMS = 40  # items of the list that are printed at the end
UNFINISHED = ("running", "idle", "failed", "cancelled")  # states of a session that can be continued


def exit_code(session: Mapping[str, Any], stopped: int | None = None) -> int:
    """Return the exit code for a session, or for a run that a signal stopped."""
    if stopped is not None:
        return TERMINATED if stopped == signal.SIGTERM else INTERRUPTED
    if session["state"] == "waiting":
        return WAITING
    if session["state"] == "running":
        return FAILED
    return choose_exit_code(session)


def resume_command(thread: str, database: DatabaseFile, *more: str) -> str:
    """Return the command line that resumes a thread."""
    words = ["wakeloop", "resume", thread, *more]
    if database.named:
        words += ["--db", str(database.path)]
    return shlex.join(words)


def closing_lines(
    snapshot: "StateSnapshot", thread: str, database: DatabaseFile, summary: str, *, whole: bool
) -> list[Line]:
    """Return the last lines of a run: the list, its counts, the ending, and how to continue.

    The list is `whole`, or only its open and blocked items.
    """
    session = read_session(snapshot)
    todos = snapshot.values.get("todos") or []
    problem = formatting.format_trouble(session, todos)
    progress = formatting.format_progress(todos) if todos else ""
    good = exit_code(session) == SETTLED and session["completed"] == session["items"]
    if not whole:
        todos = [todo for todo in todos if is_open(todo) or todo["status"] == "blocked"]
    lines = [Line("item", f"  {formatting.format_item(todo)}") for todo in todos[:MOST_ITEMS]]
    if len(todos) > MOST_ITEMS:
        rest = f"  … and {len(todos) - MOST_ITEMS} more: wakeloop todo {shlex.quote(thread)} list"
        lines.append(Line("item", rest))
    if progress:
        lines.append(Line("item" if good else "end", f"list: {progress}"))
    ending = formatting.format_ending(session, snapshot.values.get("messages") or ())
    lines += [Line("good" if good else "end", ending), Line("note", f"thread {thread}: {summary}")]
    if problem:
        lines.append(Line("error", problem))
    if questions := find_questions(snapshot):
        for interrupt in questions:
            lines += [
                Line("question", f"question: {text}") for text in formatting.format_interrupt(interrupt.value)
            ]
        lines.append(Line("way", f"To answer: {resume_command(thread, database, 'your answer')}"))
        if any(formatting.wants_approval(one.value) for one in questions):
            lines.append(Line("note", f"The answer: {formatting.APPROVAL_HELP}."))
    elif session["state"] == "waiting" and session.get("on") == "human":  # it said that it waits
        lines.append(Line("way", f"To continue: {resume_command(thread, database, 'your message')}"))
    elif session["state"] in UNFINISHED or session["open"] or session.get("on") in ENDED_BY_KICK:
        lines.append(Line("way", f"To continue: {resume_command(thread, database)}"))
    return lines


def final_state(
    thread: str,
    snapshot: "StateSnapshot | StoredState",
    *,
    usage: Mapping[str, int] | None = None,
    error: str | None = None,
) -> dict[str, Any]:
    """Return the final state of a thread as plain JSON.

    Keys: `thread`, `session` (as `session_of` returns it), `todos`, `goal`, `answer` (the model's last text),
    `structured_response`, `messages` (their number), `wakes`, `failed_calls`, `blocked` (number of items),
    `questions` (`id` and `value` of each pending question), `usage` (`input_tokens`, `output_tokens`,
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
        "failed_calls": formatting.count_failed_calls(session),
        "blocked": count_items(values.get("todos") or ())["blocked"],
        "questions": [{"id": one.id, "value": one.value} for one in find_questions(snapshot)],
        "usage": dict(usage or sum_usage(values.get("messages") or ())),
        "error": error,
    }


def sum_usage(messages: Sequence[Any]) -> dict[str, int]:
    """Sum the token counts that the messages of a thread report."""
    read = written = 0
    for message in messages:
        if usage := getattr(message, "usage_metadata", None):
            read += usage["input_tokens"]
            written += usage["output_tokens"]
    return usage_counts(read, written)


def usage_counts(read: int, written: int) -> dict[str, int]:
    """Return token counts under LangChain's names."""
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}


def to_json_line(value: Any) -> str:
    """Return one line of ASCII JSON, so that no control character reaches a terminal raw."""
    try:
        text = json.dumps(value, default=str, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        text = json.dumps(to_jsonable(value), allow_nan=False)
    return text.replace("\x7f", "\\u007f")


def to_jsonable(value: Any, room: int = 64) -> Any:
    """Return a value that JSON can hold: NaN becomes null, keys and unknown objects become strings.

    Values nested deeper than `room` are replaced by the name of their type.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if room and isinstance(value, Mapping):
        return {str(key): to_jsonable(part, room - 1) for key, part in value.items()}
    if room and isinstance(value, list | tuple):
        return [to_jsonable(part, room - 1) for part in value]
    return f"<{type(value).__name__}>" if not room else str(value)


# -- say which budget ended a run, and how to raise it ---------------------------------------------------


def format_raise_hint(
    session: Mapping[str, Any],
    spec: AgentSpec | None,
    own: Mapping[str, Any],
    thread: str,
    database: DatabaseFile | None,
) -> str | None:
    """Return the command that raises the budget which ended the last run; None if no budget did.

    `own` are the thread's own values. Without a database it is a chat, whose command is `.set`.
    """
    name = LIMITS.get(str(session.get("reason")))
    if name is None or spec is None:
        return None
    try:
        base = settings_from_spec(spec)
        limit = getattr(apply_overrides(base, check_overrides(base, own)), name)
    except SettingsError:  # of a preset or setting that this version does not have
        return None
    if limit is None:
        return None
    twice = f"{2 * limit:.12f}".rstrip("0").rstrip(".")  # as a user would type it
    how = f"change {name} in the agent's file" if spec.agent else f".set {name} {twice}"
    if database is not None:
        message = [] if session["open"] or session["state"] == "idle" else ["your message"]  # a settled list
        option = ("--agent", spec.agent) if spec.agent else (LIMIT_OPTIONS[name], twice)
        command = resume_command(thread, database, *message, *option)
        how = f"{how}, then {command}" if spec.agent else command
    return f"To raise the budget: {how}"
