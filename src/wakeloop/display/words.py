"""What is said of a run: endings, counts, questions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from wakeloop.display.clean import clean, one_line
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
LEAST = 0.01  # of a budget: less is not told
SIGNS = {"pending": "○", "in_progress": "▸", "completed": "✔", "cancelled": "–", "blocked": "■"}
MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]", "blocked": "[!]"}


def ending(session: Mapping[str, Any]) -> str:
    """How a thread stands, in a sentence; a reason from elsewhere is named as it is."""
    reason = session.get("reason")
    blanks = {"open": 0, "budget": 0, "on": "a peer"} | dict(session)
    if reason is None:
        by_hand = BY_HAND if blanks["budget"] else NOT_BEGUN  # a thread that has run had a budget
        return (UNFINISHED if session.get("state") == "running" else by_hand).format(**blanks)
    budget = blanks["budget"]
    blanks["named"], blanks["are"] = one_line(str(reason)), "is" if budget == 1 else "are"
    blanks["budget"] = pluralize(budget, "wake") if isinstance(budget, int) else budget
    return SENTENCES.get(reason, "Ended: {named}; {open} open.").format(**blanks)


def progress(todos: Sequence[Todo]) -> str:
    """How far a list is: what is closed, of all, and what is held."""
    blocked = count_blocked(todos)
    held = f", {blocked} blocked" if blocked else ""
    return f"{closed(todos)}/{len(todos)} closed{held}"


def closed(todos: Sequence[Todo]) -> int:
    """How many items are closed."""
    return sum(map(is_closed, todos))


def list_of(todos: Sequence[Todo]) -> str:
    """A list in one line: how far it is, and the item at work or due; "" where there is none."""
    order = {"in_progress": 0, "pending": 1}
    due = min((todo for todo in todos if is_open(todo)), key=lambda todo: order[todo["status"]], default=None)
    return " ".join([f"list: {progress(todos)}", *([item(due)] if due else [])]) if todos else ""


def item(todo: Todo, mark: str | None = None) -> str:
    """One item as one line: mark, id, text, and why it is held."""
    why = f" ({todo['status']}: {todo['reason']})" if todo.get("reason") else ""
    text = one_line(redact_text(f"{todo['id']} {todo['content']}{why}"), 300)
    return f"{mark or MARKS.get(todo['status'], '[?]')} {text}"


def call(name: str, args: Mapping[str, Any]) -> str:
    """A tool call as one line, without what looks like a secret; long arguments are cut."""
    told = (f"{key}={as_text(value)}" for key, value in redact_json(args).items())
    return one_line(f"{name}({', '.join(told)})", 160)


def first_line(text: str) -> str:
    """The first line of a result that says something, and how many more there are."""
    first, *more = [line for line in clean(text).splitlines() if line.strip()] or [""]
    return one_line(redact_text(first), 160) + (f" (+ {pluralize(len(more), 'line')})" if more else "")


def as_text(value: Any) -> str:
    """A value as short JSON that a person can read."""
    return json.dumps(value, ensure_ascii=False, default=str)


def spending(spent: ActivationSpending) -> str:
    """What an activation has spent: requests, tokens and how much of the input was cached, cost."""
    told = [pluralize(spent["requests"], "request")]
    if tokens := spent["input"] + spent["output"]:
        about = "about " if spent["estimated"] else ""
        cached = f" ({_percent(spent['cached'] / spent['input'])} cached)" if spent["cached"] else ""
        told.append(f"{about}{pluralize(tokens, 'token')}{cached}")
    if spent["cost"] is not None:
        told.append(f"cost {spent['cost']:,.4f}")
    return ", ".join(told)


def nearest(name: str | None, share: float) -> str:
    """How much of the budget nearest to its end is spent; nothing below one percent."""
    return f"{_percent(share)} of max_{name}" if name and share >= LEAST else ""


def trouble(session: Mapping[str, Any], todos: Sequence[Todo]) -> str:
    """What went wrong on the way to whatever end: calls that failed, items that are blocked."""
    return failed_and_blocked(failed_calls(session), count_blocked(todos))


def failed_and_blocked(calls: int, items: int) -> str:
    """Both counts in words; "" where there is nothing to tell."""
    told = [f"{pluralize(calls, 'call')} failed"] if calls else []
    return ", ".join([*told, *([f"{pluralize(items, 'item')} blocked"] if items else [])])


def failed_calls(session: Mapping[str, Any]) -> int:
    """How many calls of the activation failed; a session in mid-run does not say."""
    spent = session.get("spent")
    return int(spent.get("failed_calls", 0)) if isinstance(spent, Mapping) else 0


def count_blocked(todos: Sequence[Todo]) -> int:
    """How many items are held."""
    return sum(todo["status"] == "blocked" for todo in todos)


def _percent(share: float) -> str:
    """A share without decimals, rounded down: 100% is all of it."""
    return f"{int(share * 100 + 1e-9)}%"


def elapsed(seconds: float) -> str:
    """A time span: 4.2 s, 3 min 05 s, 2 h 07 min."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours:.0f} h {minutes:02.0f} min"
    return f"{minutes:.0f} min {int(rest):02} s" if minutes else f"{rest:.1f} s"


LONG_LINES, LONG_TEXT = 20, 1000  # of a question: more may have scrolled away
APPROVAL = "y for yes; anything else is a no, and is passed on"
ITEM = {"id", "content", "status"}
SHAPE = {"action_requests", "review_configs", "on", "error"}
PLANNED = "y takes the list, e edits it; anything else is a no, and is passed on"


def wants_approval(value: Any) -> bool:
    """Tell whether an interrupt asks for approval."""
    return isinstance(value, Mapping) and value.get("on") == "approval"


def plan_in(value: Any) -> list[Any] | None:
    """Return the list that an interrupt puts to the person; None where it puts something else."""
    actions = actions_in(value)
    if [action["name"] for action in actions] != [PLAN_ACTION] or actions[0]["args"].keys() != {"todos"}:
        return None
    todos = actions[0]["args"]["todos"]
    sound = isinstance(todos, list) and all(isinstance(t, Mapping) and t.keys() >= ITEM for t in todos)
    return todos if sound else None


def actions_in(value: Any) -> list[Mapping[str, Any]]:
    """Return what an interrupt in LangChain's shape asks about; nothing of another."""
    found = value.get("action_requests") if isinstance(value, Mapping) else None
    sound = isinstance(found, list) and all(
        isinstance(one, Mapping) and isinstance(one.get("args"), Mapping) and "name" in one for one in found
    )
    return found if sound and found else []


def question(value: Any) -> list[str]:
    """An interrupt's value as lines: nothing in it stays hidden, since a person may approve it."""
    if isinstance(value, str):
        return whole(value)
    if not isinstance(value, Mapping):
        return whole(as_text(value))
    plan, asked, error = plan_in(value), value.get("question"), str(value.get("error", ""))
    lines = whole(asked) if isinstance(asked, str) else []
    known = {"question"} if lines else set()
    if plan is not None:  # its description shows the list as well, but not where an item ends
        lines = [*whole(f"{error}\nGo on with this list?".lstrip())]
        lines += [
            line for todo in plan for line in _named(MARKS.get(todo["status"], "[?]"), _whole_item(todo))
        ]
        known = SHAPE
    elif actions := actions_in(value):
        lines = [line for action in actions for line in _asked(action, named=wants_approval(value))]
        known = SHAPE - ({"error"} if error not in str(actions[0].get("description")) else set())
    lines += [line for key, more in value.items() if key not in known for line in _named(key, more)]
    return lines or ["{}"]


def _asked(action: Mapping[str, Any], *, named: bool) -> list[str]:
    """What is asked of one action: its description, and each part of it that this does not say already."""
    told = str(action.get("description") or f"{action['name']}?")
    parts = [(key, more) for key, more in action.items() if key not in ("args", "description", "name")]
    if named and str(action["name"]) not in told:
        parts = [("tool", action["name"]), *parts]
    parts += [(key, more) for key, more in action["args"].items() if more != told]
    return [*whole(told), *(line for key, more in parts for line in _named(key, more))]


def _whole_item(todo: Mapping[str, Any]) -> str:
    more = [str(todo[key]) for key in ("reason", "evidence") if todo.get(key)]
    told = f" ({', '.join(more)})" if more else ""
    return f"{todo['id']} {todo['content']}{told}"


def _named(name: Any, value: Any) -> list[str]:
    """One part of a question under its name, all of it."""
    first, *rest = whole(value if isinstance(value, str) else as_text(value))
    label = escape_invisible(str(name)).replace("\n", "\\n")
    return [f"  {label}: {first}", *(f"  | {line}" for line in rest)]


def whole(text: str) -> list[str]:
    """All of a text as lines, what cannot be seen spelled out, and a last one where that needs a word."""
    lines = escape_invisible(text).split("\n")
    unseen = sum(not is_visible(one) for one in text) - text.count("\n")
    if unseen:
        told = f"({pluralize(unseen, 'character')} of this cannot be seen, spelled out as \\x.. or \\u....)"
        lines.append(told)
    if len(lines) > LONG_LINES or len(text) > LONG_TEXT:
        lines.append(f"({pluralize(text.count(chr(10)) + 1, 'line')}, {len(text):,} characters; all above)")
    return lines
