"""Sends a session an event, and waits for what comes of it."""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from wakeloop.cli.failures import FAILED, SETTLED, usage_error
from wakeloop.cli.final_state import exit_code, to_json_line
from wakeloop.cli.launch import check_text
from wakeloop.cli.sessions.ps import format_status
from wakeloop.cli.sessions.storage import POLL_SECONDS, SessionStorage, session_errors_as_usage
from wakeloop.cli.thread_lookup import ELLIPSIS, check_thread_id, match_prefix
from wakeloop.display.formatting import format_interrupt, format_trouble
from wakeloop.display.terminal_output import write_text
from wakeloop.display.terminal_text import clean_line, strip_controls
from wakeloop.loop.inbox import WakeEvent
from wakeloop.sessions.dbos import SessionClient
from wakeloop.thread.thread_status import answer_of, read_session


def build_event(text: str, kind: str, key: str | None, answers: str | None) -> WakeEvent:
    """The event that was typed."""
    event: WakeEvent = {"kind": kind, "text": text}
    if key:
        event["id"] = key
    if answers is not None:
        if kind != "human" or not answers.strip():
            raise usage_error(
                "--answers takes the id of a question, which only a human answers; wakeloop ps shows it."
            )
        event["correlation_id"] = answers
    return event


def list_open_questions(post: SessionClient, thread: str) -> Sequence[str]:
    """The ids of the questions that a session has put to a person; none where there is no such session."""
    return post.status(thread).asks if post.mailbox.list_sessions(thread) else ()


def send_event(
    where: SessionStorage,
    thread: str,
    text: str,
    kind: str,
    key: str | None,
    answers: str | None = None,
    *,
    wait: bool,
    json: bool,
) -> tuple[list[str], int]:
    """Store an event for a session, and `wait` until its run has ended; return lines and exit code."""
    check_thread_id(thread.replace(ELLIPSIS, ""))
    if text or kind != "kick":
        check_text(text, "The text is empty: say what is to be sent.")
    event = build_event(text, kind, key, answers)
    with where.open_post() as post:
        thread = where.resolve_session_id(post, thread, old=answers is not None)
        with session_errors_as_usage():
            if answers is not None and (
                whole := match_prefix(answers, list_open_questions(post, thread), "questions")
            ):
                event["correlation_id"] = whole
            key = post.send(thread, event)
        if not wait:
            line = (
                to_json_line({"thread": thread, "event": key}) if json else f"Sent to {clean_line(thread)}."
            )
            return [line], SETTLED
        if not post.mailbox.list_workers():
            write_text("Waiting for a wakeloop serve: none is up.", sys.stderr)
        elif sys.stderr.isatty():
            write_text(f"Waiting for the run of {clean_line(thread)} …", sys.stderr)
        graph = next(iter(post.agents.values()))
        while True:
            left = {letter.id for letter in post.mailbox.list_waiting(thread) if letter.error is None}
            status = post.status(thread)
            if key not in left and status.state in ("damaged", "unknown"):
                return [to_json_line(asdict(status)) if json else format_status(status)], FAILED
            snapshot = graph.get_state({"configurable": {"thread_id": thread}})
            if key not in left and "running" not in (status.state, read_session(snapshot)["state"]):
                break  # neither in its run nor in one that followed
            time.sleep(POLL_SECONDS)
    asked = [line for one in snapshot.interrupts for line in format_interrupt(one.value)]
    answer = answer_of(snapshot)
    code = FAILED if status.error else exit_code(read_session(snapshot))
    if json:
        return [to_json_line({**asdict(status), "answer": answer, "questions": asked})], code
    said = asked or ([strip_controls(answer)] if answer else [])
    wrong = format_trouble(read_session(snapshot), snapshot.values.get("todos") or ())
    last = [] if code == SETTLED else [format_status(status)]
    return [*said, *last, *([f"{clean_line(thread)}: {wrong}"] if wrong else [])], code
