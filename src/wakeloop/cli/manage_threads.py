"""Edit, remove, rename and export stored threads."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from enum import StrEnum
from typing import Any

from wakeloop.cli.agent_spec import refuse_non_utf8
from wakeloop.cli.failures import redact, usage_error
from wakeloop.cli.final_state import final_state, resume_command, to_json_line
from wakeloop.cli.show import format_time, format_todos, message_as_json, summarize_thread
from wakeloop.cli.store import DatabaseFile, open_to_read, open_to_write
from wakeloop.cli.stored_state import read_state
from wakeloop.cli.thread_lookup import check_thread_id, find_thread
from wakeloop.display.formatting import format_ending, format_item, format_progress
from wakeloop.display.terminal_output import clean_line, strip_controls
from wakeloop.text.secrets import redact_json
from wakeloop.todos.items import count_open

SPEAKERS = {"human": "You", "ai": "Model", "tool": "Result", "system": "System"}
SESSION_TABLES = {"wakeloop_events", "wakeloop_schedules", "wakeloop_sessions"}


def remove_threads(database: DatabaseFile, threads: Sequence[str]) -> Iterator[str]:
    """Remove threads, or none of them if one does not exist or belongs to a server."""
    known = {record.id: record for record in (find_thread(database, thread) for thread in threads)}.values()
    for record in known:
        refuse_hosted_thread(database, record.id)
    for record in known:
        with open_to_write(database) as store, store.hold(record.id):
            store.forget(record.id)
        yield f"Removed {clean_line(record.id)} ({clean_line(record.request, 50) or 'no request'})."


def hold_stored_thread(database: DatabaseFile, thread: str | None) -> Iterator[str]:
    """Put a thread on hold."""
    from wakeloop.cli.offline_graph import build_offline_graph
    from wakeloop.thread.outside import hold_thread

    known = find_thread(database, thread)
    with open_to_write(database) as store, store.hold(known.id):
        graph = build_offline_graph(store.saver, known.spec)
        held = hold_thread(graph, {"configurable": {"thread_id": known.id}})
    now = "now" if held else "already"
    yield f"{clean_line(known.id)} is {now} on hold."
    yield f"To release it: {resume_command(known.id, database)}"


def rename_thread(database: DatabaseFile, thread: str, name: str) -> Iterator[str]:
    """Give a thread another id that is not taken."""
    check_thread_id(name)
    known = find_thread(database, thread)
    refuse_hosted_thread(database, known.id)
    taken = usage_error(f"The thread {name!r} already exists: choose another name.")
    if name == known.id:
        raise taken
    with open_to_write(database) as store, store.hold(known.id), store.hold(name):
        if store.find(name) is not None:
            raise taken
        store.rename(known.id, name)
    yield f"Renamed {clean_line(known.id)} to {name}."


def refuse_hosted_thread(database: DatabaseFile, thread: str) -> None:
    """Refuse a thread that a server hosts: events and schedules refer to it by its id."""
    events = database.path.with_name(f"{database.path.name}-sessions")
    if not events.is_file():
        return
    with closing(sqlite3.connect(f"{events.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        for table in tables & SESSION_TABLES:
            if connection.execute(f"SELECT 1 FROM {table} WHERE thread = ?", [thread]).fetchone():  # noqa: S608
                raise usage_error(
                    f"The thread {thread!r} is a session of wakeloop serve and cannot be removed or renamed."
                )


def export_thread(database: DatabaseFile, thread: str | None, *, json: bool) -> str:
    """Export a thread, or the latest one, as Markdown or JSON without secrets."""
    known = find_thread(database, thread)
    with open_to_read(database) as store:
        view = read_state(store.saver, known.id, partly=True)
        row = summarize_thread(known, view, database, live=store.is_running(known.id))
    messages = view.values.get("messages") or ()
    history = redact_json([message_as_json(message) for message in messages], redact)
    if json:
        state = redact_json(final_state(known.id, view), redact)
        return to_json_line({**state, "history": history}) + "\n"
    todos = redact_json(view.values.get("todos") or [], redact)
    why = f" ({row['reason']})" if row["reason"] not in (None, row["state"]) else ""
    lines = [f"# Thread {clean_line(known.id)}", ""]
    lines.append(f"{row['state']}{why}, changed {format_time(row['changed'])}.")
    if row["state"] == "damaged":
        lines.append(format_ending({"reason": "damaged", "open": count_open(todos)}))
    lines.append("")
    if todos:
        lines += [f"## List: {format_progress(todos)}", "", *(f"- {format_item(todo)}" for todo in todos), ""]
    lines += ["## Conversation", ""]
    for message in history:
        lines += format_message(message)
    return strip_controls("\n".join(lines)).rstrip() + "\n"


def format_message(message: Any) -> Iterator[str]:
    """Yield a message under its speaker, in fences, so that it cannot alter the page."""
    if "source" in message:
        who = f"Inserted by {clean_line(message['source'])}"
    elif "graph" in message:
        who = f"Graph ({message['graph']})"
    else:
        who = SPEAKERS.get(message["type"], "Other")
    if message["type"] == "tool":
        who += f" of {clean_line(message['name'] or 'a tool')}"
    yield from (f"### {who}", "")
    if text := message["text"].strip():
        yield from fence_text(text)
    for call in message.get("tool_calls", ()):
        yield from fence_text(f"{call['name']} {to_json_line(call['args'])}", "json")


def fence_text(text: str, kind: str = "text") -> Iterator[str]:
    """Yield text in a code fence that is longer than any fence in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    yield from (f"{fence}{kind}", text, fence, "")


# -- edit a thread's todo list by hand -------------------------------------------------------------------


class TodoAction(StrEnum):
    """The actions of `wakeloop todo THREAD`."""

    ADD = "add"
    DONE = "done"
    START = "start"
    BLOCK = "block"
    CANCEL = "cancel"
    REOPEN = "reopen"
    REMOVE = "remove"
    EDIT = "edit"
    CLEAR = "clear"
    LIST = "list"


def edit_todos(database: DatabaseFile, typed: Sequence[str]) -> list[str]:
    """Edit a thread's list, and return the list as lines."""
    which, word, words = parse_words(typed)
    action = parse_action(word, which)
    refuse_non_utf8(*words)
    changes = build_changes(action, words, "wakeloop todo THREAD")
    hint = f" Actions: {', '.join(TodoAction)}." if len(typed) == 1 else ""
    known = find_thread(database, which, hint)
    thread = known.id
    if action is TodoAction.LIST:
        with open_to_read(database) as store:
            return format_todos(read_state(store.saver, thread, partly=True).values.get("todos") or [])
    from wakeloop.cli.offline_graph import build_offline_graph
    from wakeloop.thread.edits import update_todos

    with open_to_write(database) as store, store.hold(thread):
        graph = build_offline_graph(store.saver, known.spec)
        return format_todos(update_todos(graph, {"configurable": {"thread_id": thread}}, **changes))


def parse_words(typed: Sequence[str]) -> tuple[str | None, str, Sequence[str]]:
    """Split the words into thread, action and arguments; without a thread (None) the last one is meant."""
    first, *rest = typed or [TodoAction.LIST]
    actions = list(TodoAction)
    if first in actions and not (rest and rest[0] in actions):
        return None, first, rest
    action, *words = rest or [TodoAction.LIST]
    return first, action, words


def parse_action(word: str, thread: str | None = None) -> TodoAction:
    """Return the action of this name. The error also names the `thread` typed before it."""
    try:
        return TodoAction(word)
    except ValueError:
        what = f"Neither {thread!r} nor {word!r} is an action" if thread else f"Unknown action {word!r}"
        raise usage_error(f"{what}. Available: {', '.join(TodoAction)}.") from None


def build_changes(action: TodoAction, words: Sequence[str], command: str) -> dict[str, Any]:
    """Return the arguments of `update_todos`; {} to show the list. `command` is what takes the action."""
    if action in (TodoAction.CLEAR, TodoAction.LIST):
        if words:
            raise usage_error(f"{command} {action} takes no arguments, got {words[0]!r}.")
        return {"clear": True} if action is TodoAction.CLEAR else {}
    takes, least, parse = ACTION_ARGUMENTS[action]
    if len(words) < least:
        raise usage_error(f"{command} {action} needs {takes}.")
    return {action.value: parse(words)}


def parse_id_and_text(words: Sequence[str]) -> dict[str, str]:
    """Return {id: text}, where the text is everything after the id."""
    return {words[0]: " ".join(words[1:])}


MANY_ITEMS = (TodoAction.DONE, TodoAction.START, TodoAction.CANCEL, TodoAction.REOPEN, TodoAction.REMOVE)
ACTION_ARGUMENTS: dict[TodoAction, tuple[str, int, Callable[[Sequence[str]], Any]]] = {
    TodoAction.ADD: ("the text of each item", 1, list),
    TodoAction.BLOCK: ("an id and a reason", 2, parse_id_and_text),
    TodoAction.EDIT: ("an id and the new text", 2, parse_id_and_text),
    **dict.fromkeys(MANY_ITEMS, ("the id of an item, or several", 1, list)),
}
"""What each action needs, the least number of words, and how they become its argument."""
