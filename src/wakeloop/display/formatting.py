"""Sentences about a run: endings, counts, questions."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from wakeloop.display.terminal_output import clean_line, strip_controls
from wakeloop.loop.approval import PLAN_ACTION
from wakeloop.loop.gates import ENDINGS, lacks_proof
from wakeloop.stream import ActivationSpending
from wakeloop.text.characters import escape_invisible, is_visible, pluralize
from wakeloop.text.marks import activation_messages
from wakeloop.text.secrets import redact_json, redact_text
from wakeloop.thread.thread_status import drop_misfits, has_only_talked
from wakeloop.todos.items import Todo, count_items, is_open

SENTENCES = {
    **{name: one.sentence for name, one in ENDINGS.items()},
    "damaged": "The stored thread is damaged; this is what could be read, {open} open.",
}
ONLY_TALKED = "Answered without a list and without calling a tool."
ONLY_FAILED = "Answered without a list, and no call of a tool succeeded."
UNVERIFIED = " No item of the list passed the verifier."
UNFINISHED = "The run has not finished; {open} open."
NOT_BEGUN = "Nothing has been run yet; {open} open."
BY_HAND = "Idle with {open} open; the list was edited by hand."
WAITS = {
    "human": "your answer",
    "approval": "your approval",
    "peer": "another agent",
    "subagent": "a subagent",
    "work": "work in the background",
    "limit": "a limit of the provider",
    "condition": "a condition",
    "hold": "you: it is on hold",
}
LONGEST_MISSING = 300  # characters of what is missing
MIN_SHARE = 0.01  # of a budget; less is not shown
SIGNS = {"pending": "○", "in_progress": "▸", "completed": "✔", "cancelled": "–", "blocked": "■"}
MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]", "blocked": "[!]"}


def format_ending(session: Mapping[str, Any], messages: Sequence[Any] | None = None) -> str:
    """Say in a sentence how a thread's last run ended; another package's reason is quoted as it is.

    With the thread's messages, a run that has only talked says so.
    """
    session = drop_misfits(session)
    reason = session.get("reason")
    blanks: dict[str, Any] = {**count_items(()), "budget": 0, "on": "peer", **session}
    blanks["repeated"] = _quote(blanks.get("repeated") or "its calls")
    blanks["error"] = _quote(blanks.get("error") or "the run raised").rstrip(".")
    budget = blanks["budget"]
    if session.get("state") == "running" and reason is None:
        sentence = UNFINISHED
    elif reason is None:
        sentence = BY_HAND if budget else NOT_BEGUN  # every run notes a budget
    else:
        sentence = SENTENCES.get(reason, "Ended: {named}; {open} open.")
        if messages is not None and has_only_talked(session, messages):
            # a refused todo call is not among the failed calls of the session
            refused = any(getattr(one, "status", "") == "error" for one in activation_messages(messages))
            sentence = ONLY_FAILED if refused or count_failed_calls(session) else ONLY_TALKED
        if lacks_proof(session):
            sentence += UNVERIFIED
        blanks["named"], blanks["are"] = clean_line(str(reason)), "is" if budget == 1 else "are"
        blanks["budget"] = pluralize(budget, "wake") if isinstance(budget, int) else budget
    missing = _quote(session.get("missing") or "", LONGEST_MISSING)
    if blanks["on"] == "condition" and missing:
        blanks["on"], missing = missing.rstrip("."), ""
    blanks["on"] = format_wait(blanks["on"], session.get("until"))
    text = sentence.format(**blanks)
    if not missing:
        return text
    return f"{text} {'Impossible' if reason == 'blocked' else 'Missing'}: {missing.rstrip('.')}."


def _quote(words: object, limit: int = 200) -> str:
    """Return what a model, a tool or a check said, on one line and without secrets."""
    return clean_line(redact_text(str(words)), limit)


def format_wait(on: str, until: float | None, now: float | None = None) -> str:
    """Say what a thread waits for, and until when in local time: with the date unless it is today."""
    words = WAITS.get(on) or clean_line(on)
    if until is None:
        return words
    moment = datetime.fromtimestamp(until)  # noqa: DTZ006 - local time is meant
    today = datetime.fromtimestamp(time.time() if now is None else now)  # noqa: DTZ006
    form = "%H:%M:%S" if moment.date() == today.date() else "%Y-%m-%d %H:%M"
    return f"{words}, until {moment.strftime(form)}"


def format_waiting(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines that say what a thread waits for, its question, and what its goal still misses."""
    name = clean_line(str(row["thread"]))
    if row["on"]:
        yield f"{name}: waits for {format_wait(row['on'], row['until'])}."
    for key in ("question", "missing"):
        if row[key]:
            yield f"{name}: {key}: {clean_line(row[key], LONGEST_MISSING)}"


def format_progress(todos: Sequence[Todo]) -> str:
    """Count the closed items, those of them that were cancelled, and the blocked: `2/5 closed, 1 blocked`."""
    counts = count_items(todos)
    progress = f"{counts['completed'] + counts['cancelled']}/{counts['items']} closed"
    if counts["cancelled"]:
        progress += f" ({counts['cancelled']} cancelled)"
    if counts["blocked"]:
        progress += f", {counts['blocked']} blocked"
    return progress


def format_list_line(todos: Sequence[Todo]) -> str:
    """Format a list as one line: its progress, and the item in progress or next; "" for an empty list."""
    if not todos:
        return ""
    open_items = [todo for todo in todos if is_open(todo)]
    started = [todo for todo in open_items if todo["status"] == "in_progress"]
    line = f"list: {format_progress(todos)}"
    if open_items:
        line += f" {format_item((started or open_items)[0])}"
    return line


def format_item(todo: Todo, mark: str | None = None) -> str:
    """Format an item as one line: mark, id, text, and why it is blocked or cancelled."""
    why = f" ({todo['status']}: {todo['reason']})" if todo.get("reason") else ""
    text = clean_line(redact_text(f"{todo['id']} {todo['content']}{why}"), 300)
    return f"{mark or MARKS.get(todo['status'], '[?]')} {text}"


def format_call(name: str, args: Mapping[str, Any]) -> str:
    """Format a tool call as one line, without secrets; long arguments are cut."""
    pairs = ", ".join(f"{key}={to_json(value)}" for key, value in redact_json(args).items())
    return clean_line(f"{name}({pairs})", 160)


def format_first_line(text: str) -> str:
    """Return the first line that is not blank, and the number of further ones."""
    lines = [line for line in strip_controls(text).splitlines() if line.strip()]
    if not lines:
        return ""
    first = clean_line(redact_text(lines[0]), 160)
    if len(lines) > 1:
        first += f" (+ {pluralize(len(lines) - 1, 'line')})"
    return first


def to_json(value: Any) -> str:
    """Return a value as JSON that a person can read."""
    return json.dumps(value, ensure_ascii=False, default=str)


def format_spent(spent: ActivationSpending) -> str:
    """List what an activation has spent: requests, tokens with the share that was cached, cost."""
    parts = [pluralize(spent["requests"], "request")]
    if tokens := spent["input"] + spent["output"]:
        part = pluralize(tokens, "token")
        if spent["estimated"]:
            part = f"about {part}"
        if spent["cached"]:
            part += f" ({_format_percent(spent['cached'] / spent['input'])} cached)"
        parts.append(part)
    if spent["cost"] is not None:
        parts.append(f"cost {spent['cost']:,.4f}")
    return ", ".join(parts)


def format_budget_share(name: str | None, share: float) -> str:
    """Say how much of the budget nearest to its limit is spent; "" below one percent."""
    if not name or share < MIN_SHARE:
        return ""
    return f"{_format_percent(share)} of max_{name}"


def format_context(share: float | None) -> str:
    """Say how full the model's context window is; "" if that is not known, or below one percent."""
    return "" if share is None or share < MIN_SHARE else f"{_format_percent(share)} of the context"


def format_trouble(session: Mapping[str, Any], todos: Sequence[Todo]) -> str:
    """Count failed calls, blocked and cancelled items, which a good ending would hide; "" without any."""
    counts = count_items(todos)
    return format_failures(count_failed_calls(session), counts["blocked"], counts["cancelled"])


def format_failures(calls: int, blocked: int, cancelled: int) -> str:
    """Say how many calls failed, and how many items are blocked and cancelled; "" if none."""
    parts = []
    if calls:
        parts.append(f"{pluralize(calls, 'call')} failed")
    if blocked:
        parts.append(f"{pluralize(blocked, 'item')} blocked")
    if cancelled:
        parts.append(f"{pluralize(cancelled, 'item')} cancelled")
    return ", ".join(parts)


def count_failed_calls(session: Mapping[str, Any]) -> int:
    """Return how many calls of the activation failed; 0 in mid-run, where the session does not say."""
    spent = session.get("spent")
    return int(spent.get("failed_calls", 0)) if isinstance(spent, Mapping) else 0


def _format_percent(share: float) -> str:
    """Format a share without decimals, rounded down so that 100% means all of it."""
    return f"{int(share * 100 + 1e-9)}%"


def format_elapsed(seconds: float) -> str:
    """Format a time span: 4.2 s, 3 min 05 s, 2 h 07 min."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours:.0f} h {minutes:02.0f} min"
    if minutes:
        return f"{minutes:.0f} min {int(rest):02} s"
    return f"{rest:.1f} s"


LONG_LINES, LONG_TEXT = 20, 1000  # of a question; more may have scrolled out of view
APPROVAL_HELP = "y for yes, or n and your reason for no"
ALL_HELP = "y for all, n and your reason for none, or o to decide one by one"
ITEM_KEYS = {"id", "content", "status"}
REQUEST_KEYS = {"action_requests", "review_configs", "on", "error"}
PLAN_HELP = "y takes the list, e edits it; anything else is a no, and is passed on"


def wants_approval(value: Any) -> bool:
    """Tell whether an interrupt asks for approval."""
    return isinstance(value, Mapping) and value.get("on") == "approval"


def find_plan(value: Any) -> list[Any] | None:
    """Return the plan that an interrupt asks to approve; None if it asks something else."""
    actions = find_actions(value)
    if len(actions) != 1 or actions[0]["name"] != PLAN_ACTION or actions[0]["args"].keys() != {"todos"}:
        return None
    todos = actions[0]["args"]["todos"]
    if not isinstance(todos, list):
        return None
    for todo in todos:
        if not (isinstance(todo, Mapping) and todo.keys() >= ITEM_KEYS):
            return None
    return todos


def find_actions(value: Any) -> list[Mapping[str, Any]]:
    """Return the actions that an interrupt in LangChain's format asks about; [] for other formats."""
    found = value.get("action_requests") if isinstance(value, Mapping) else None
    if not isinstance(found, list):
        return []
    for one in found:
        if not (isinstance(one, Mapping) and isinstance(one.get("args"), Mapping) and "name" in one):
            return []
    return found


def format_interrupt(value: Any) -> list[str]:
    """Format an interrupt's value as lines. It is shown whole, since a person may approve it."""
    if isinstance(value, str):
        return format_full_text(value)
    if not isinstance(value, Mapping):
        return format_full_text(to_json(value))
    plan, actions, error = find_plan(value), find_actions(value), str(value.get("error", ""))
    lines: list[str] = []
    known: set[str] = set()
    if plan is not None:
        # The action's description shows the list as well, but not where an item's text ends.
        lines += format_full_text(f"{error}\nContinue with this list?".lstrip())
        for todo in plan:
            lines += _format_part(MARKS.get(todo["status"], "[?]"), _format_plan_item(todo))
        known = REQUEST_KEYS
    elif actions:
        for action in actions:
            lines += _format_action(action, named=wants_approval(value))
        repeats_error = error in str(actions[0].get("description"))
        known = REQUEST_KEYS if repeats_error else REQUEST_KEYS - {"error"}
    elif isinstance(question := value.get("question"), str):
        lines += format_full_text(question)
        known = {"question"}
    for key, part in value.items():
        if key not in known:
            lines += _format_part(f"{key}:", part)
    return lines or ["{}"]


def _format_action(action: Mapping[str, Any], *, named: bool) -> list[str]:
    """Format an action: its description, and each part that the description does not contain."""
    description = str(action.get("description") or f"{action['name']}?")
    lines = format_full_text(description)
    if named and str(action["name"]) not in description:
        lines += _format_part("tool:", action["name"])
    for key, part in action.items():
        if key not in ("args", "description", "name"):
            lines += _format_part(f"{key}:", part)
    for key, part in action["args"].items():
        if part != description:
            lines += _format_part(f"{key}:", part)
    return lines


def _format_plan_item(todo: Mapping[str, Any]) -> str:
    line = f"{todo['id']} {todo['content']}"
    more = [str(todo[key]) for key in ("reason", "evidence") if todo.get(key)]
    return f"{line} ({', '.join(more)})" if more else line


def _format_part(name: str, value: Any) -> list[str]:
    """Format one part of a question after its name or mark, in full."""
    first, *rest = format_full_text(value if isinstance(value, str) else to_json(value))
    label = escape_invisible(name).replace("\n", "\\n")
    return [f"  {label} {first}", *(f"  | {line}" for line in rest)]


def format_full_text(text: str) -> list[str]:
    """Return all lines with invisible characters escaped, and notes about those and about a great length."""
    lines = escape_invisible(text).split("\n")
    unseen = sum(not is_visible(one) for one in text) - text.count("\n")
    if unseen:
        lines.append(f"({pluralize(unseen, 'invisible character')}, shown as \\x.. or \\u....)")
    if len(lines) > LONG_LINES or len(text) > LONG_TEXT:
        count = pluralize(text.count("\n") + 1, "line")
        lines.append(f"({count}, {len(text):,} characters; all above)")
    return lines
