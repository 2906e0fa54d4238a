"""Send a session an event, and optionally wait for its run."""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from wakeloop.cli.failures import FAILED, SETTLED, usage_error
from wakeloop.cli.final_state import exit_code, to_json_line
from wakeloop.cli.launch import check_text
from wakeloop.cli.questions import find_questions
from wakeloop.cli.sessions.ps import format_status
from wakeloop.cli.sessions.storage import POLL_SECONDS, SessionStorage, session_errors_as_usage
from wakeloop.cli.thread_lookup import check_thread_id, match_prefix
from wakeloop.display.formatting import format_interrupt, format_trouble
from wakeloop.display.terminal_output import write_text
from wakeloop.display.terminal_text import clean_line, strip_controls
from wakeloop.loop.inbox import WakeEvent
from wakeloop.sessions.dbos import SessionClient
from wakeloop.sessions.host import SessionStatus
from wakeloop.thread.steering import list_waiting
from wakeloop.thread.thread_status import answer_of, read_session

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot


def build_event(text: str, kind: str, key: str | None, answers: str | None) -> WakeEvent:
    """Build the event from the typed arguments."""
    event: WakeEvent = {"kind": kind, "text": text}
    if key:
        event["id"] = key
    if answers is not None:
        if kind != "human" or not answers.strip():
            raise usage_error(
                "--answers takes the id of a question, as wakeloop ps shows it, and works only with "
                "--kind human."
            )
        event["correlation_id"] = answers
    return event


def list_open_questions(client: SessionClient, thread: str) -> Sequence[str]:
    """Return the ids of the questions that a session asks; () for an unknown session."""
    return client.status(thread).asks if client.mailbox.list_sessions(thread) else ()


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
    event = build_event(text, kind, key, answers)
    with storage.open_client() as client:
        thread = storage.resolve_session_id(client, thread, old=answers is not None)
        with session_errors_as_usage():
            if answers is not None:
                asked = list_open_questions(client, thread)
                event["correlation_id"] = match_prefix(answers, asked, "questions") or answers
            key = client.steer(thread, text) if now else client.send(thread, event)
        if not wait:
            line = (
                to_json_line({"thread": thread, "event": key}) if json else f"Sent to {clean_line(thread)}."
            )
            return [line], SETTLED
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
