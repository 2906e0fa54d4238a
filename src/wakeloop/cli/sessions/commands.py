"""Sessions: send, list, schedule and drain."""

import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from wakeloop.cli.failures import FAILED, SETTLED, usage_error
from wakeloop.cli.final_state import exit_code, to_json_line
from wakeloop.cli.launch import check_text
from wakeloop.cli.questions import find_questions
from wakeloop.cli.sessions.storage import POLL_SECONDS, SessionStorage, session_errors_as_usage
from wakeloop.cli.thread_lookup import check_thread_id, match_prefix
from wakeloop.display.formatting import format_interrupt, format_trouble, format_wait, format_waiting
from wakeloop.display.terminal_output import (
    clean_line,
    find_width,
    format_columns,
    strip_controls,
    write_text,
)
from wakeloop.loop.inbox import WakeEvent
from wakeloop.sessions.dbos import SessionClient
from wakeloop.sessions.host import SessionStatus
from wakeloop.text.characters import pluralize
from wakeloop.thread.steering import list_waiting
from wakeloop.thread.thread_status import answer_of, read_session

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot


SESSION_TITLES = ("SESSION", "STATE", "REASON", "OPEN", "DONE", "WAKES", "WAITS FOR", "QUEUED", "ERROR")


def format_status(status: SessionStatus) -> str:
    """Format a session's status as one line."""
    why = status.error or status.reason or "not started"
    if status.on and not status.error:
        why = f"for {format_wait(status.on, status.until)}"
    wakes = f"{status.wakes}/{pluralize(status.budget, 'wake')}"
    items = ", ".join(
        [f"{status.open} open", *_count_items(status, "completed", "cancelled", "blocked"), wakes]
    )
    return clean_line(f"{status.thread}: {status.state}, {why}; {items}", 500)


def _count_items(status: SessionStatus, *kinds: str) -> list[str]:
    return [f"{getattr(status, kind)} {kind}" for kind in kinds if getattr(status, kind)]


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
        [SESSION_TITLES, *map(format_session_cells, found)], find_width(sys.stdout), cuttable=(8,), spare=(5,)
    )
    for status in found:
        yield from format_waiting(asdict(status))
        for question in status.asks:
            answer = ["wakeloop", "send", clean_line(status.thread), "your answer"]
            yield f"To answer: {shlex.join([*answer, '--answers', clean_line(question)])}"


def format_session_cells(status: SessionStatus) -> tuple[str, ...]:
    """Format a session's status as table cells."""
    return (
        clean_line(status.thread),
        status.state,
        clean_line(status.reason or "-", 20),
        str(status.open),
        ", ".join([f"{status.completed} of {status.items}", *_count_items(status, "cancelled", "blocked")]),
        f"{status.wakes}/{status.budget}",
        status.on or "-",
        f"{status.queued}, {status.sent} sent" if status.sent else str(status.queued),
        clean_line(status.error or "-", 60),
    )


# -- send a session an event, and optionally wait for its run --------------------------------------------


def _build_event(text: str, kind: str, key: str | None, answers: str | None) -> WakeEvent:
    if answers is not None and (kind != "human" or not answers.strip()):
        raise usage_error("--answers takes an id from wakeloop ps, and works only with --kind human.")
    event: WakeEvent = {"kind": kind, "text": text}
    if key:
        event["id"] = key
    return event


def send_event(
    storage: SessionStorage,
    thread: str,
    text: str,
    kind: str,
    key: str | None,
    answers: str | None = None,
    *,
    now: bool = False,
    wait: bool,
    json: bool,
) -> tuple[list[str], int]:
    """Store an event for a session, and with `wait` wait for its run. Return lines and exit code.

    With `now` the run under way takes the text before its next request.
    """
    if now and (kind != "human" or key or answers is not None):
        raise usage_error("--now sends a person's words; leave out --kind, --id and --answers.")
    check_thread_id(thread)
    if text or kind != "kick":
        check_text(text, "The text is empty: write what to send.")
    event = _build_event(text, kind, key, answers)
    with storage.open_client() as client:
        thread = storage.resolve_session_id(client, thread, old=answers is not None)
        with session_errors_as_usage():
            if answers is not None:
                asked = client.status(thread).asks if client.mailbox.list_sessions(thread) else ()
                event["correlation_id"] = match_prefix(answers, asked, "questions") or answers
            key = client.steer(thread, text) if now else client.send(thread, event)
        if not wait:
            sent = {"thread": thread, "event": key}
            return [to_json_line(sent) if json else f"Sent to {clean_line(thread)}."], SETTLED
        if not client.mailbox.list_workers():
            write_text("Waiting for wakeloop serve: none is running.", sys.stderr)
        elif sys.stderr.isatty():
            write_text(f"Waiting for the run of {clean_line(thread)} …", sys.stderr)
        try:
            status, snapshot = wait_for_run(client, thread, key)
        except KeyboardInterrupt:
            write_text("Stopped waiting. The text is sent, and its run is not stopped.", sys.stderr)
            raise
    if snapshot is None:
        return [to_json_line(asdict(status)) if json else format_status(status)], FAILED
    return report_run(status, snapshot, json=json)


def wait_for_run(
    client: SessionClient, thread: str, key: str
) -> tuple[SessionStatus, "StateSnapshot | None"]:
    """Wait until the run that takes the event has ended, and any run that follows it at once.

    The snapshot is None if the session cannot be read.
    """
    graph = next(iter(client.agents.values()))
    while True:
        waiting = {letter.id for letter in client.mailbox.list_waiting(thread) if letter.error is None}
        waiting.update(entry.id for entry in list_waiting(client.find_store(thread), thread))
        status = client.status(thread)
        if key not in waiting and status.state in ("damaged", "unknown"):
            return status, None
        snapshot = graph.get_state({"configurable": {"thread_id": thread}})
        if key not in waiting and "running" not in (status.state, read_session(snapshot)["state"]):
            return status, snapshot
        time.sleep(POLL_SECONDS)


def report_run(status: SessionStatus, snapshot: "StateSnapshot", *, json: bool) -> tuple[list[str], int]:
    """Return the answer or the questions of a run as lines, and the exit code."""
    questions: list[str] = []
    for interrupt in find_questions(snapshot):
        questions += format_interrupt(interrupt.value)
    answer = answer_of(snapshot)
    code = FAILED if status.error else exit_code(read_session(snapshot))
    if json:
        return [to_json_line({**asdict(status), "answer": answer, "questions": questions})], code
    lines = questions or ([strip_controls(answer)] if answer else [])
    if code != SETTLED:
        lines.append(format_status(status))
    if problem := format_trouble(read_session(snapshot), snapshot.values.get("todos") or ()):
        lines.append(f"{clean_line(status.thread)}: {problem}")
    return lines, code


# -- add, list and remove the schedules that wake sessions -----------------------------------------------


CRON_USAGE = 'Usage: cron add THREAD "MIN HOUR DAY MONTH WEEKDAY" TEXT, cron list, or cron remove ID.'
SCHEDULE_TITLES = ("SCHEDULE", "SESSION", "CRON", "DUE", "TEXT")


def manage_schedules(
    storage: SessionStorage, action: str, words: Sequence[str], *, json: bool
) -> Iterator[str]:
    """Add, list or remove the schedules that wake sessions."""
    match action, words:
        case "add", [thread, line, text]:
            check_thread_id(thread)
            check_text(text, "The text is empty: write what the session should read.")
            with storage.open_client() as client:
                thread = storage.resolve_session_id(client, thread)
                with session_errors_as_usage():
                    key = client.schedule(thread, line, text)
                due = next(one.due for one in client.schedules(thread) if one.id == key)
            yield to_json_line({"schedule": key, "due": due}) if json else f"{key}: due {due}"
        case "list", []:
            yield from _list_schedules(storage, json=json)
        case "remove", [key]:
            check_text(key, CRON_USAGE)
            with storage.open_client() as client:
                known = [schedule.id for schedule in client.schedules()]
                whole = key if key in known else match_prefix(key, known, "schedules")
                if whole is None or not client.cancel(whole):
                    raise usage_error(f"Unknown schedule {key!r}; list them with wakeloop cron list.")
            yield f"Removed {whole}."
        case _:
            raise usage_error(CRON_USAGE)


def _list_schedules(storage: SessionStorage, *, json: bool) -> Iterator[str]:
    with storage.open_client() as client:
        found = client.schedules()
    if json:
        yield to_json_line([asdict(schedule) for schedule in found])
    elif not found:
        yield "No schedules."
    else:
        rows = [(s.id, clean_line(s.thread), s.cron, s.due or "-", clean_line(s.text, 60)) for s in found]
        yield from format_columns([SCHEDULE_TITLES, *rows], find_width(sys.stdout), cuttable=(4,))


# -- stop all workers of a database, losing nothing ------------------------------------------------------


def drain_workers(storage: SessionStorage, timeout: float) -> tuple[list[str], int]:
    """Ask all workers to stop and wait for them; return lines and the exit code."""
    with storage.open_client() as client:
        before = client.mailbox.list_workers()
        client.mailbox.request_drain()
        deadline = time.monotonic() + timeout
        while (left := client.mailbox.list_workers()) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
    if not before:
        return ["No worker is running."], SETTLED
    if left:
        return [f"{len(left)} of {len(before)} still running, or dead and not yet noticed."], FAILED
    return [f"{len(before)} drained. Unfinished work continues at the next start."], SETTLED
