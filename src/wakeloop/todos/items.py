"""The list: its items, and how they are read.

A list is a sequence of plain dicts; nothing here knows a framework.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, cast, get_args

from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.text.characters import fix_surrogates, is_blank, shorten, shorten_id, to_one_line

Status = Literal["pending", "in_progress", "completed", "cancelled", "blocked"]
STATUSES: tuple[str, ...] = get_args(Status)
OPEN = frozenset(("pending", "in_progress"))
CLOSED = frozenset(("completed", "cancelled"))
IN_PROGRESS = frozenset(("in_progress",))
ITEM_FIELDS = ("id", "content", "status", "reason", "evidence")
MAX_REFUSAL_LENGTH = 1000  # characters of a refusal: what a model sent may be of any length
TEXT_SHOWN, REASON_SHOWN, ID_SHOWN = 300, 150, 50  # characters that a nudge shows of an item
CUT_NOTE_ROOM = 32  # for the words that count what was cut
ID_LIMIT = 2**53  # ids stay below it: every JSON reader takes them


class Todo(TypedDict):
    """One item of the list: plain JSON.

    `id` is an int from a number that the thread never reuses, or the string that the model chose. `reason`
    says why an item is blocked or was cancelled; `evidence` is free text that speaks for its completion.

    Example:
        >>> Todo(id=1, content="Measure", status="pending")
        {'id': 1, 'content': 'Measure', 'status': 'pending'}
    """

    id: int | str
    content: str
    status: Status
    reason: NotRequired[str]
    evidence: NotRequired[str]


# -- reading a list --------------------------------------------------------------------------------------


def is_open(todo: Todo) -> bool:
    """Tell whether an item drives the agent on: `pending` or `in_progress`. The one predicate for it."""
    return todo["status"] in OPEN


def open_items(todos: Sequence[Todo]) -> list[Todo]:
    """Return the open items, in order."""
    return [todo for todo in todos if todo["status"] in OPEN]


def count_open(todos: Sequence[Todo]) -> int:
    """Count the open items."""
    return _count(todos, OPEN)


def count_closed(todos: Sequence[Todo]) -> int:
    """Count the items that are done with."""
    return _count(todos, CLOSED)


def count_running(todos: Sequence[Todo]) -> int:
    """Count the items in progress."""
    return _count(todos, IN_PROGRESS)


def _count(todos: Sequence[Todo], statuses: frozenset[str]) -> int:
    tally: Mapping[str, int] | None = getattr(todos, "tally", None)  # a board has counted already
    if tally is not None:
        return sum(tally.get(status, 0) for status in statuses)
    return len([True for todo in todos if todo["status"] in statuses])  # half a sum's time over a generator


def is_closed(todo: Todo) -> bool:
    """Tell whether an item is done with: `completed` or `cancelled` (a blocked one is held)."""
    return todo["status"] in CLOSED


def select_for_nudge(todos: Sequence[Todo], limit: int) -> tuple[list[Todo], int]:
    """Choose what a nudge shows, and count what it leaves out.

    Up to `limit` open and blocked items in list order; where there are more, the next open items only.
    """
    shown = [todo for todo in todos if not is_closed(todo)]
    if len(shown) <= limit:
        return shown, 0
    return open_items(shown)[:limit], len(shown) - min(limit, count_open(shown))


def read_list(value: object) -> list[Todo]:
    """Check a list that comes from outside and return it clean: known keys only, ids where they were given.

    Raises `OperationRefused` with a sentence that names the item, the value and what is allowed.
    """
    if not isinstance(value, list | tuple):
        raise OperationRefused(
            f"todos must be a list of items with content and status, got {type(value).__name__}"
        )
    clean = [_read_item(place, item) for place, item in enumerate(value, 1)]
    seen: set[str] = set()
    for key in (str(todo["id"]) for todo in clean if "id" in todo):
        if key in seen:
            raise OperationRefused(f"todos has the id {key!r} twice; each id must be unique")
        seen.add(key)
    return cast(list[Todo], clean)


def _read_item(place: int, item: object) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        raise OperationRefused(
            f"todos item {place} must be an object with content and status, got {shorten(repr(item))}"
        )
    content, status, key = item.get("content"), item.get("status", "pending"), item.get("id")
    if not isinstance(content, str) or is_blank(content):
        raise OperationRefused(
            f"todos item {place} has no content; every item needs a text that is not blank"
        )
    if status not in STATUSES:
        raise OperationRefused(
            f"todos item {place} ({shorten(to_one_line(content))}) has the status {shorten(repr(status))}; "
            f"allowed: {', '.join(STATUSES)}"
        )
    if key is not None and not is_id(key):
        raise OperationRefused(
            f"todos item {place} ({shorten(to_one_line(content))}) has the id {shorten(repr(key))}; "
            "an id is an integer or a string"
        )
    for name in ("reason", "evidence"):
        if not isinstance(item.get(name, ""), str | None):
            raise OperationRefused(
                f"todos item {place} ({shorten(to_one_line(content))}) has a {name} that is not a string"
            )
    clean = {name: fix_surrogates(item[name]) for name in ITEM_FIELDS if item.get(name) is not None}
    return {**clean, "status": status}


def is_id(key: object) -> bool:
    """Tell whether a value may be an item's id."""
    if isinstance(key, int):
        return not isinstance(key, bool) and abs(key) < ID_LIMIT
    return isinstance(key, str) and bool(key.strip())


def clip_text(text: str, limit: int = TEXT_SHOWN) -> str:
    """A text as a nudge shows it: on one line, and beyond the limit with a count of what is cut off."""
    line = to_one_line(text)
    if len(line) <= limit:
        return line
    kept = line[: limit - CUT_NOTE_ROOM].rstrip()
    return f"{kept}… (+{len(line) - len(kept):,} characters)"


def clip_item(todo: Todo) -> Todo:
    """An item as a nudge shows it: the same object where nothing is too long."""
    key, short = shorten_id(todo["id"], ID_SHOWN), clip_item_texts(todo)
    return short if key == todo["id"] else {**short, "id": key}


def clip_item_texts(todo: Todo) -> Todo:
    """An item as the result of a write shows it, its id whole: the same object where nothing is too long."""
    short: Todo = {**todo}
    if _is_too_long(todo["content"], TEXT_SHOWN):
        short["content"] = clip_text(todo["content"])
    if _is_too_long(todo.get("reason", ""), REASON_SHOWN):
        short["reason"] = clip_text(todo["reason"], REASON_SHOWN)
    return todo if short == todo else short


def _is_too_long(text: str, limit: int) -> bool:
    return len(text) > limit and len(to_one_line(text)) > limit


class OperationRefused(Exception):  # noqa: N818 - a ruling, not an error of the program
    """An operation breaks a rule; the text goes to whoever asked for it."""


def next_free_number(todos: Sequence[Mapping[str, Any]], at_least: int = 1) -> int:
    """Return a number that no item of the list has used, and that is not below the one given.

    The text "7" counts as the number: an item is found by either.
    """
    return max([at_least, *(_to_number(todo.get("id")) + 1 for todo in todos)])


def _to_number(key: object) -> int:
    if isinstance(key, str):
        return int(key) if key.isdecimal() and len(key) < len(str(ID_LIMIT)) else 0
    return key if isinstance(key, int) else 0


def assign_ids(todos: Sequence[Mapping[str, Any]], next_id: int) -> tuple[list[Todo], int]:
    """Give ids to the items that have none, and return the list with the next free number."""
    next_id, numbered = next_free_number(todos, next_id), []
    for todo in todos:
        numbered.append(cast(Todo, {"id": next_id, **todo}))
        next_id += "id" not in todo
    return numbered, next_id
