"""Threads that are kept: removed, renamed, taken out."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from wakeloop.cli.failures import redact, usage_error
from wakeloop.cli.final_state import final_state, to_json_line
from wakeloop.cli.show import message_as_json
from wakeloop.cli.store import DatabaseFile, open_to_read, open_to_write
from wakeloop.cli.stored_state import read_state
from wakeloop.cli.thread_list import format_time, summarize_thread
from wakeloop.cli.thread_lookup import check_thread_id, find_thread
from wakeloop.display.formatting import MARKS, format_ending, format_progress
from wakeloop.display.terminal_text import clean_line, strip_controls
from wakeloop.text.secrets import redact_json
from wakeloop.todos.items import count_open

SPEAKERS = {"human": "You", "ai": "Model", "tool": "Result", "system": "System"}


def remove_threads(database: DatabaseFile, threads: Sequence[str]) -> Iterator[str]:
    """Remove threads, each named by its id or how it begins; none where one is not there, or a server's."""
    known = [find_thread(database, thread) for thread in threads]
    for one in known:
        refuse_hosted_thread(database, one.id)
    for one in known:
        with open_to_write(database) as store, store.hold(one.id):
            store.forget(one.id)
        yield f"Removed {clean_line(one.id)} ({clean_line(one.request, 50) or 'no request'})."


def rename_thread(database: DatabaseFile, thread: str, name: str) -> Iterator[str]:
    """Give a thread another id, which no other has."""
    check_thread_id(name)
    known = find_thread(database, thread)
    refuse_hosted_thread(database, known.id)
    with open_to_write(database) as store, store.hold(known.id), store.hold(name):
        if store.find(name) is not None:
            raise usage_error(f"There is a thread {name!r} already: choose another name.")
        store.rename(known.id, name)
    yield f"{clean_line(known.id)} is {name} now."


def refuse_hosted_thread(database: DatabaseFile, thread: str) -> None:
    """Refuse a thread that a server hosts: its events and clocks know it by its id."""
    events = database.path.with_name(f"{database.path.name}-sessions")
    if not events.is_file():
        return
    with closing(sqlite3.connect(f"{events.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        for table in tables & {"wakeloop_events", "wakeloop_schedules", "wakeloop_sessions"}:
            if connection.execute(f"SELECT 1 FROM {table} WHERE thread = ?", [thread]).fetchone():  # noqa: S608
                raise usage_error(f"The thread {thread!r} is a session of wakeloop serve: it stays as it is.")


def export_thread(database: DatabaseFile, thread: str | None, *, json: bool) -> str:
    """A thread, or the last, as one text to keep elsewhere, without what looks like a secret."""
    known = find_thread(database, thread)
    with open_to_read(database) as store:
        view = read_state(store.saver, known.id, rest=True)
        row = summarize_thread(known, view, database, live=store.is_running(known.id))
    messages = view.values.get("messages") or ()
    history = redact_json(list(map(message_as_json, messages)), redact)
    if json:
        return to_json_line({**redact_json(final_state(known.id, view), redact), "history": history}) + "\n"
    why = f" ({row['reason']})" if row["reason"] not in (None, row["state"]) else ""
    todos = redact_json(view.values.get("todos") or [], redact)
    head = [
        f"# Thread {clean_line(known.id)}",
        "",
        f"{row['state']}{why}, changed {format_time(row['changed'])}.",
        *(
            [format_ending({"reason": "damaged", "open": count_open(todos)})]
            if row["state"] == "damaged"
            else []
        ),
        "",
    ]
    if todos:
        head += [f"## List: {format_progress(todos)}", "", *map(format_todo_item, todos), ""]
    spoken = [line for message in history for line in format_message(message)]
    return strip_controls("\n".join([*head, "## Conversation", "", *spoken])).rstrip() + "\n"


def format_todo_item(todo: Any) -> str:
    """An item as Markdown; only what is completed has its box ticked."""
    mark = MARKS.get(todo["status"], "[?]")
    box, state = ("[x]", "") if mark == "[x]" else ("[ ]", "" if mark == "[ ]" else f" ({todo['status']})")
    why = f": {todo['reason']}" if todo.get("reason") else ""
    return f"- {box} {clean_line(str(todo['id']))} {clean_line(todo['content'])}{state}{clean_line(why)}"


def format_message(message: Any) -> Iterator[str]:
    """A message under its speaker; texts are fenced, so that nothing in them is taken for the page's own."""
    who = f"Graph ({message['graph']})" if "graph" in message else SPEAKERS.get(message["type"], "Other")
    who = f"Put in by {clean_line(message['source'])}" if "source" in message else who
    name = f" of {clean_line(message['name'] or 'a tool')}" if message["type"] == "tool" else ""
    yield from (f"### {who}{name}", "")
    if text := message["text"].strip():
        yield from fence_text(text)
    for call in message.get("tool_calls", ()):
        yield from fence_text(f"{call['name']} {to_json_line(call['args'])}", "json")


def fence_text(text: str, kind: str = "text") -> Iterator[str]:
    """A text in a fence that is longer than any in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    yield from (f"{fence}{kind}", text, fence, "")
