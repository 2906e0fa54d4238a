"""Show threads: one, or the list of all."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.failures import CommandError, redact
from wakeloop.cli.final_state import final_state, format_raise_hint, sum_usage, to_json_line
from wakeloop.cli.questions import find_questions
from wakeloop.cli.store import DatabaseFile, Store, ThreadRecord, open_to_read
from wakeloop.cli.stored_state import DAMAGED, StoredState, read_state
from wakeloop.cli.thread_lookup import require_thread
from wakeloop.display import formatting
from wakeloop.display.formatting import count_failed_calls, format_failures
from wakeloop.display.terminal_output import (
    clean_line,
    cut_text,
    find_width,
    format_columns,
    indent_continuation,
    strip_controls,
)
from wakeloop.loop.silences import QUESTION_WAIT
from wakeloop.text.characters import pluralize, quote_path
from wakeloop.text.marks import is_model_reply, is_user_message, kind_of, source_of, split_result_text
from wakeloop.text.secrets import redact_json
from wakeloop.thread.thread_status import read_session
from wakeloop.todos.items import count_closed

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot


LABELS = {  # of what the graph wrote; anything else is "graph"
    "wake": "graph wake",
    "guard": "graph correction",
    "nag": "graph reminder",
    "retry": "graph retry",
    "repair": "graph repair",
    "event": "event",
}


def show_thread(database: DatabaseFile, named: str | None, *, history: bool, json: bool) -> Iterator[str]:
    """Show a thread (default: the latest): state, agent, list, and its answer or history."""
    with open_to_read(database) as store:
        known = require_thread(store, named)
        thread = known.id
        snapshot = read_state(store.saver, thread, partly=True)
        live = store.is_running(thread)
    messages = snapshot.values.get("messages") or ()
    if json:
        state = final_state(thread, snapshot)
        questions = state["questions"]
        if history:
            state["history"] = [message_as_json(message) for message in messages]
        # questions are not redacted, because whoever answers them must see them whole
        yield to_json_line(redact_json(state, redact) | {"questions": questions})
        return
    yield from describe_thread(known, snapshot, database, live=live)
    if history:
        yield ""
        for message in messages:
            yield from map(redact, format_message(message))
    elif answer := final_state(thread, snapshot)["answer"].strip():
        yield f"answer: {redact(indent_continuation(answer))}"


def describe_thread(
    known: ThreadRecord, snapshot: "StateSnapshot | StoredState", database: DatabaseFile, *, live: bool
) -> Iterator[str]:
    """Describe a thread: state, agent, request, usage, list, questions."""
    row, values = summarize_thread(known, snapshot, database, live=live), snapshot.values or {}
    session = read_session(snapshot)
    yield f"thread: {clean_line(known.id)}"
    reason = ""
    if row["reason"] not in (None, row["state"]):
        reason = f" ({clean_line(str(row['reason']))})"
    yield f"state: {clean_line(str(row['state']))}{reason}, changed {format_time(row['changed'])}"
    yield f"  {clean_line(formatting.format_ending(session, values.get('messages') or ()))}"
    if row["raise"]:
        yield f"  {row['raise']}"
    if known.spec:
        yield from describe_spec(known.spec)
    yield f"request: {redact(clean_line(row['request']))}"
    usage = sum_usage(values.get("messages") or ())
    spent = pluralize(row["wakes"], "wake")
    if taken := session.get("spent"):
        spent += f", {formatting.format_spent(taken)}"
    # Many servers report no usage for a stream. The estimates are those of the last activation only.
    total = f", {pluralize(usage['total_tokens'], 'token')} in all" if usage["total_tokens"] else ""
    yield f"spent: {spent} in the last activation{total}"
    if trouble := formatting.format_trouble(session, values.get("todos") or ()):
        yield f"trouble: {trouble}"
    if values.get("todo_goal"):
        yield f"goal: {redact(clean_line(str(values['todo_goal'])))}"
    yield from format_todos(values.get("todos") or [])
    for one in find_questions(snapshot):
        for line in formatting.format_interrupt(one.value):
            yield f"question: {line}"
        if one.id != QUESTION_WAIT:  # the next message answers it
            yield f"  its id: {clean_line(one.id)}"


def describe_spec(spec: AgentSpec) -> Iterator[str]:
    """Describe an agent: model, tools, preset, role, settings."""
    tools = "the demo's own" if spec.demo else ", ".join(spec.tools) or "none"
    yield f"model: {clean_line(spec.model_title)}"
    yield f"tools: {clean_line(tools)}, in {quote_path(clean_line(spec.root))}"
    for kind, name in (("preset", spec.preset), ("role", spec.role), ("agent", spec.agent)):
        if name:
            yield f"{kind}: {clean_line(name)}"
    if spec.settings:
        yield f"settings: {clean_line(to_json_line(spec.settings))}"


def format_todos(todos: Sequence[Any]) -> list[str]:
    """Return the list, one line per item."""
    lines = [f"list: {formatting.format_progress(todos)}"]
    for todo in todos:
        lines.append(f"  {redact(formatting.format_item(todo))}")
    return lines


def format_message(message: BaseMessage) -> Iterator[str]:
    """Format a message of the history, labelled with its author, which may be the graph."""
    if isinstance(message, ToolMessage):
        result, added = split_result_text(message)
        failed = " error" if message.status == "error" else ""
        yield f"  result{failed} of {clean_line(message.name or 'a tool')}: {clean_line(result)}"
        if added.strip():
            yield f"graph reminder: {clean_line(added)}"
        return
    kind, text = kind_of(message), strip_controls(message.text)
    speaker = {"human": "user", "ai": "model"}.get(message.type, message.type)
    who = LABELS.get(kind, "graph") if kind else speaker
    if source := source_of(message):
        who = f"added by {clean_line(source)}"
    if text.strip():
        yield f"{who}: " + indent_continuation(text.strip())
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            yield f"  call: {formatting.format_call(call['name'], call['args'])}"


def message_as_json(message: BaseMessage) -> dict[str, Any]:
    """Return a message as plain JSON: author, content, and whether the graph wrote it."""
    plain: dict[str, Any] = {"id": message.id, "type": message.type, "text": message.text}
    if kind := kind_of(message):
        plain["graph"] = kind
    if source := source_of(message):
        plain["source"] = source
    if isinstance(message, AIMessage) and message.tool_calls:
        plain["tool_calls"] = []
        for call in message.tool_calls:
            plain["tool_calls"].append({"id": call["id"], "name": call["name"], "args": call["args"]})
    if isinstance(message, ToolMessage):
        plain |= {"name": message.name, "tool_call_id": message.tool_call_id, "status": message.status}
    return plain


# -- rows of the list of threads -------------------------------------------------------------------------


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


# -- the list of threads ---------------------------------------------------------------------------------


LISTED_THREADS = 20  # without --all


def list_threads(database: DatabaseFile, *, everything: bool, json: bool) -> Iterator[str]:
    """List the threads, the latest first."""
    with open_to_read(database) as store:
        known = store.threads()
        shown = known if everything else known[:LISTED_THREADS]
        rows = [thread_row(store, one, database) for one in shown]
    if json:
        yield to_json_line(rows)
        return
    if not rows:
        yield f"No threads yet in {quote_path(database.path)}."
        return
    yield from format_table(rows)
    for row in rows:
        if row["raise"]:
            yield f"{row['thread']}: {row['raise']}"
        yield from formatting.format_waiting(row)
    if len(known) > len(shown):
        yield f"… and {pluralize(len(known) - len(shown), 'older one')}: --all"
