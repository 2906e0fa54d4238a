"""What is said of a run: endings, counts, questions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from wakeloop.display.terminal_text import clean_line, strip_controls
from wakeloop.loop.approval import PLAN_ACTION
from wakeloop.loop.gates import ENDINGS
from wakeloop.stream import ActivationSpending
from wakeloop.text.characters import escape_invisible, is_visible, pluralize
from wakeloop.text.secrets import redact_json, redact_text
from wakeloop.todos.items import Todo, is_closed, is_open

SENTENCES = {
    **{name: one.sentence for name, one in ENDINGS.items()},
    "interrupted": "Waiting for your answer to a tool's question.",
    "damaged": "What is stored of it is damaged; this is what can be read, {open} open.",
}
UNFINISHED = "The run has not finished; {open} open."
NOT_BEGUN = "Nothing has been run yet; {open} open."
BY_HAND = "Idle with {open} open, as the list was left by hand."
MIN_SHARE = 0.01  # of a budget: less is not told
SIGNS = {"pending": "○", "in_progress": "▸", "completed": "✔", "cancelled": "–", "blocked": "■"}
MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]", "blocked": "[!]"}


def format_ending(session: Mapping[str, Any]) -> str:
    """How a thread stands, in a sentence; a reason from elsewhere is named as it is."""
    reason = session.get("reason")
    blanks = {"open": 0, "budget": 0, "on": "a peer"} | dict(session)
    if reason is None:
        by_hand = BY_HAND if blanks["budget"] else NOT_BEGUN  # a thread that has run had a budget
        return (UNFINISHED if session.get("state") == "running" else by_hand).format(**blanks)
    budget = blanks["budget"]
    blanks["named"], blanks["are"] = clean_line(str(reason)), "is" if budget == 1 else "are"
    blanks["budget"] = pluralize(budget, "wake") if isinstance(budget, int) else budget
    return SENTENCES.get(reason, "Ended: {named}; {open} open.").format(**blanks)


def format_progress(todos: Sequence[Todo]) -> str:
    """How far a list is: what is closed, of all, and what is held."""
    blocked = count_blocked(todos)
    held = f", {blocked} blocked" if blocked else ""
    return f"{count_closed(todos)}/{len(todos)} closed{held}"


def count_closed(todos: Sequence[Todo]) -> int:
    """How many items are closed."""
    return sum(map(is_closed, todos))


def format_list_line(todos: Sequence[Todo]) -> str:
    """A list in one line: how far it is, and the item at work or due; "" where there is none."""
    order = {"in_progress": 0, "pending": 1}
    due = min((todo for todo in todos if is_open(todo)), key=lambda todo: order[todo["status"]], default=None)
    return (
        " ".join([f"list: {format_progress(todos)}", *([format_item(due)] if due else [])]) if todos else ""
    )


def format_item(todo: Todo, mark: str | None = None) -> str:
    """One item as one line: mark, id, text, and why it is held."""
    why = f" ({todo['status']}: {todo['reason']})" if todo.get("reason") else ""
    text = clean_line(redact_text(f"{todo['id']} {todo['content']}{why}"), 300)
    return f"{mark or MARKS.get(todo['status'], '[?]')} {text}"


def format_call(name: str, args: Mapping[str, Any]) -> str:
    """A tool call as one line, without what looks like a secret; long arguments are cut."""
    told = (f"{key}={to_json(value)}" for key, value in redact_json(args).items())
    return clean_line(f"{name}({', '.join(told)})", 160)


def format_first_line(text: str) -> str:
    """The first line of a result that says something, and how many more there are."""
    first, *more = [line for line in strip_controls(text).splitlines() if line.strip()] or [""]
    return clean_line(redact_text(first), 160) + (f" (+ {pluralize(len(more), 'line')})" if more else "")


def to_json(value: Any) -> str:
    """A value as short JSON that a person can read."""
    return json.dumps(value, ensure_ascii=False, default=str)


def format_spent(spent: ActivationSpending) -> str:
    """What an activation has spent: requests, tokens and how much of the input was cached, cost."""
    told = [pluralize(spent["requests"], "request")]
    if tokens := spent["input"] + spent["output"]:
        about = "about " if spent["estimated"] else ""
        cached = f" ({_format_percent(spent['cached'] / spent['input'])} cached)" if spent["cached"] else ""
        told.append(f"{about}{pluralize(tokens, 'token')}{cached}")
    if spent["cost"] is not None:
        told.append(f"cost {spent['cost']:,.4f}")
    return ", ".join(told)


def format_budget_share(name: str | None, share: float) -> str:
    """How much of the budget nearest to its end is spent; nothing below one percent."""
    return f"{_format_percent(share)} of max_{name}" if name and share >= MIN_SHARE else ""


def format_trouble(session: Mapping[str, Any], todos: Sequence[Todo]) -> str:
    """What went wrong on the way to whatever end: calls that failed, items that are blocked."""
    return format_failures(count_failed_calls(session), count_blocked(todos))


def format_failures(calls: int, items: int) -> str:
    """Both counts in words; "" where there is nothing to tell."""
    told = [f"{pluralize(calls, 'call')} failed"] if calls else []
    return ", ".join([*told, *([f"{pluralize(items, 'item')} blocked"] if items else [])])


def count_failed_calls(session: Mapping[str, Any]) -> int:
    """How many calls of the activation failed; a session in mid-run does not say."""
    spent = session.get("spent")
    return int(spent.get("failed_calls", 0)) if isinstance(spent, Mapping) else 0


def count_blocked(todos: Sequence[Todo]) -> int:
    """How many items are held."""
    return sum(todo["status"] == "blocked" for todo in todos)


def _format_percent(share: float) -> str:
    """A share without decimals, rounded down: 100% is all of it."""
    return f"{int(share * 100 + 1e-9)}%"


def format_elapsed(seconds: float) -> str:
    """A time span: 4.2 s, 3 min 05 s, 2 h 07 min."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours:.0f} h {minutes:02.0f} min"
    return f"{minutes:.0f} min {int(rest):02} s" if minutes else f"{rest:.1f} s"


LONG_LINES, LONG_TEXT = 20, 1000  # of a question: more may have scrolled away
APPROVAL_HELP = "y for yes; anything else is a no, and is passed on"
ITEM_KEYS = {"id", "content", "status"}
REQUEST_KEYS = {"action_requests", "review_configs", "on", "error"}
PLAN_HELP = "y takes the list, e edits it; anything else is a no, and is passed on"


def wants_approval(value: Any) -> bool:
    """Tell whether an interrupt asks for approval."""
    return isinstance(value, Mapping) and value.get("on") == "approval"


def find_plan(value: Any) -> list[Any] | None:
    """Return the list that an interrupt puts to the person; None where it puts something else."""
    actions = find_actions(value)
    if [action["name"] for action in actions] != [PLAN_ACTION] or actions[0]["args"].keys() != {"todos"}:
        return None
    todos = actions[0]["args"]["todos"]
    sound = isinstance(todos, list) and all(isinstance(t, Mapping) and t.keys() >= ITEM_KEYS for t in todos)
    return todos if sound else None


def find_actions(value: Any) -> list[Mapping[str, Any]]:
    """Return what an interrupt in LangChain's shape asks about; nothing of another."""
    found = value.get("action_requests") if isinstance(value, Mapping) else None
    sound = isinstance(found, list) and all(
        isinstance(one, Mapping) and isinstance(one.get("args"), Mapping) and "name" in one for one in found
    )
    return found if sound and found else []


def format_interrupt(value: Any) -> list[str]:
    """An interrupt's value as lines: nothing in it stays hidden, since a person may approve it."""
    if isinstance(value, str):
        return format_full_text(value)
    if not isinstance(value, Mapping):
        return format_full_text(to_json(value))
    plan, asked, error = find_plan(value), value.get("question"), str(value.get("error", ""))
    lines = format_full_text(asked) if isinstance(asked, str) else []
    known = {"question"} if lines else set()
    if plan is not None:  # its description shows the list as well, but not where an item ends
        lines = [*format_full_text(f"{error}\nContinue with this list?".lstrip())]
        lines += [
            line
            for todo in plan
            for line in _format_part(MARKS.get(todo["status"], "[?]"), _format_plan_item(todo))
        ]
        known = REQUEST_KEYS
    elif actions := find_actions(value):
        lines = [line for action in actions for line in _format_action(action, named=wants_approval(value))]
        known = REQUEST_KEYS - ({"error"} if error not in str(actions[0].get("description")) else set())
    lines += [line for key, more in value.items() if key not in known for line in _format_part(key, more)]
    return lines or ["{}"]


def _format_action(action: Mapping[str, Any], *, named: bool) -> list[str]:
    """What is asked of one action: its description, and each part of it that this does not say already."""
    told = str(action.get("description") or f"{action['name']}?")
    parts = [(key, more) for key, more in action.items() if key not in ("args", "description", "name")]
    if named and str(action["name"]) not in told:
        parts = [("tool", action["name"]), *parts]
    parts += [(key, more) for key, more in action["args"].items() if more != told]
    return [*format_full_text(told), *(line for key, more in parts for line in _format_part(key, more))]


def _format_plan_item(todo: Mapping[str, Any]) -> str:
    more = [str(todo[key]) for key in ("reason", "evidence") if todo.get(key)]
    told = f" ({', '.join(more)})" if more else ""
    return f"{todo['id']} {todo['content']}{told}"


def _format_part(name: Any, value: Any) -> list[str]:
    """One part of a question under its name, all of it."""
    first, *rest = format_full_text(value if isinstance(value, str) else to_json(value))
    label = escape_invisible(str(name)).replace("\n", "\\n")
    return [f"  {label}: {first}", *(f"  | {line}" for line in rest)]


def format_full_text(text: str) -> list[str]:
    """All of a text as lines, what cannot be seen spelled out, and a last one where that needs a word."""
    lines = escape_invisible(text).split("\n")
    unseen = sum(not is_visible(one) for one in text) - text.count("\n")
    if unseen:
        told = f"({pluralize(unseen, 'character')} of this cannot be seen, spelled out as \\x.. or \\u....)"
        lines.append(told)
    if len(lines) > LONG_LINES or len(text) > LONG_TEXT:
        lines.append(f"({pluralize(text.count(chr(10)) + 1, 'line')}, {len(text):,} characters; all above)")
    return lines
