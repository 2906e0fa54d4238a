"""The items of a list, and functions that read them.

A list is a sequence of plain dicts. Nothing here depends on a framework.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import repeat
from typing import Any, Literal, NotRequired, cast, get_args

from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.text.characters import fix_surrogates, is_blank, shorten, shorten_id, to_one_line

Status = Literal["pending", "in_progress", "completed", "cancelled", "blocked"]
STATUSES: tuple[str, ...] = get_args(Status)
OPEN = frozenset(("pending", "in_progress"))
CLOSED = frozenset(("completed", "cancelled"))
ITEM_FIELDS = ("id", "content", "status", "reason", "evidence")
MAX_REFUSAL_LENGTH = 1000  # characters; a refusal quotes what the model sent, which may be of any length
TEXT_SHOWN, REASON_SHOWN, ID_SHOWN = 300, 150, 50  # characters that a nudge shows of an item
CUT_NOTE_ROOM = 32  # characters for the note that counts what was cut
ID_LIMIT = 2**53  # larger numbers are not exact in every JSON reader


class Todo(TypedDict):
    """One item of the list: plain JSON.

    `id` is an int that the thread never reuses, or a string that the model chose. `reason` says why an item
    is blocked or was cancelled; `evidence` is free text that supports its completion.

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
    """Return whether an item is still to be done: `pending` or `in_progress`. Only these wake the model."""
    return todo["status"] in OPEN


def open_items(todos: Sequence[Todo]) -> list[Todo]:
    """Return the open items, in order."""
    return [todo for todo in todos if todo["status"] in OPEN]


def count_open(todos: Sequence[Todo]) -> int:
    """Count the open items."""
    tally = getattr(todos, "tally", None) or tally_statuses(todos)
    return sum(map(tally.get, OPEN, repeat(0)))


class ItemCounts(TypedDict):
    """The counts of a list that a session shows."""

    open: int
    items: int
    completed: int
    cancelled: int
    blocked: int


def count_items(todos: Sequence[Todo]) -> ItemCounts:
    """Count the items of a list by what became of them."""
    tally = tally_statuses(todos)
    closed = {status: tally.get(status, 0) for status in ("completed", "cancelled", "blocked")}
    return cast(ItemCounts, {"open": count_open(todos), "items": len(todos), **closed})


def count_closed(todos: Sequence[Todo]) -> int:
    """Count the completed and cancelled items."""
    return sum(map(tally_statuses(todos).get, CLOSED, repeat(0)))


def count_running(todos: Sequence[Todo]) -> int:
    """Count the items in progress."""
    return tally_statuses(todos).get("in_progress", 0)


def tally_statuses(todos: Sequence[Todo]) -> Mapping[str, int]:
    """Return how many items have each status. A list with a `tally` is counted once, and keeps it."""
    known: Mapping[str, int] | None = getattr(todos, "tally", None)
    if known is None:
        known = Counter([todo["status"] for todo in todos])
        if hasattr(todos, "tally"):
            todos.tally = known
    return known


def is_closed(todo: Todo) -> bool:
    """Return whether an item is `completed` or `cancelled`. A blocked one is neither open nor closed."""
    return todo["status"] in CLOSED


def select_for_nudge(todos: Sequence[Todo], limit: int) -> tuple[list[Todo], int]:
    """Return the items that a nudge shows, and how many it leaves out.

    It shows the open and blocked items in list order, or if these are more than `limit`, the first open ones.
    """
    shown = [todo for todo in todos if not is_closed(todo)]
    if len(shown) <= limit:
        return shown, 0
    return open_items(shown)[:limit], len(shown) - min(limit, count_open(shown))


def read_list(value: object) -> list[Todo]:
    """Check a list from outside and return it with the known keys only. Items may lack an id.

    Raises `OperationRefused` with the item, its value and what is allowed.
    """
    if not isinstance(value, list | tuple):
        raise OperationRefused(
            f"todos must be a list of items with content and status, got {type(value).__name__}"
        )
    clean = [_read_item(place, item) for place, item in enumerate(value, 1)]
    seen: set[str] = set()
    for todo in clean:
        if "id" not in todo:
            continue
        key = str(todo["id"])  # as text: a call may name the item 1 as "1"
        if key in seen:
            raise OperationRefused(f"todos has the id {key!r} twice; each id must be unique")
        seen.add(key)
    return cast(list[Todo], clean)


def read_fields(item: Any) -> Any:
    """Return an item of the caller's own class, a dataclass or pydantic model, as a dict."""
    if is_dataclass(item) and not isinstance(item, type):
        return {field.name: getattr(item, field.name) for field in fields(item)}
    dump = getattr(item, "model_dump", None)
    return dump() if callable(dump) else item


def _read_item(place: int, item: Any) -> dict[str, Any]:
    item = read_fields(item)
    if not isinstance(item, Mapping):
        raise OperationRefused(
            f"todos item {place} must be an object with content and status, got {shorten(repr(item))}"
        )
    content, status, key = item.get("content"), item.get("status", "pending"), item.get("id")
    if not isinstance(content, str) or is_blank(content):
        raise OperationRefused(f"todos item {place} has no content; every item needs text that is not blank")
    fault = None
    if status not in STATUSES:
        fault = f"the status {shorten(repr(status))}; allowed: {', '.join(STATUSES)}"
    elif key is not None and not is_id(key):
        fault = f"the id {shorten(repr(key))}; an id is an integer or a string"
    for name in ("reason", "evidence"):
        if not isinstance(item.get(name, ""), str | None):
            fault = fault or f"a {name} that is not a string"
    if fault is not None:
        raise OperationRefused(f"todos item {place} ({shorten(to_one_line(content))}) has {fault}")
    clean: dict[str, Any] = {}
    for name in ITEM_FIELDS:
        value = item.get(name)
        if value is not None:
            # plain, also if it is a member of an enum: a checkpoint must not need the caller's class
            clean[name] = fix_surrogates(str.__str__(value)) if isinstance(value, str) else int(value)
    return {**clean, "status": str.__str__(status)}


def unify_ids(todos: Iterable[Any], *known: Iterable[Any]) -> list[Any]:
    """Return items of a list with the ids that other lists have for them: 5 and "5" are one id."""
    ids = {str(todo["id"]): todo["id"] for others in known for todo in others if "id" in todo}
    unified = []
    for todo in todos:
        key = todo.get("id")
        same = ids.get(str(key), key)
        unified.append(todo if same == key else {**todo, "id": same})
    return unified


def is_id(key: object) -> bool:
    """Return whether a value can be an item's id."""
    if isinstance(key, int):
        return not isinstance(key, bool) and abs(key) < ID_LIMIT
    return isinstance(key, str) and bool(key.strip())


def clip_text(text: str, limit: int = TEXT_SHOWN) -> str:
    """Put text on one line, as a nudge shows it. Beyond the limit it ends with a count of the rest."""
    line = to_one_line(text)
    if len(line) <= limit:
        return line
    kept = line[: limit - CUT_NOTE_ROOM].rstrip()
    return f"{kept}… (+{len(line) - len(kept):,} characters)"


def clip_item(todo: Todo) -> Todo:
    """Return an item as a nudge shows it. It is the same object unless something was cut."""
    key, short = shorten_id(todo["id"], ID_SHOWN), clip_item_texts(todo)
    return short if key == todo["id"] else {**short, "id": key}


def clip_item_texts(todo: Todo) -> Todo:
    """Return an item as a result shows it: long texts cut, its id whole. The same object if none is."""
    if len(todo["content"]) <= TEXT_SHOWN and len(todo.get("reason", "")) <= REASON_SHOWN:
        return todo
    short: Any = {**todo}
    for name, limit in (("content", TEXT_SHOWN), ("reason", REASON_SHOWN)):
        if len(to_one_line(short.get(name, ""))) > limit:
            short[name] = clip_text(short[name], limit)
    return todo if short == todo else cast(Todo, short)


class OperationRefused(Exception):  # noqa: N818 - a ruling, not an error of the program
    """An operation breaks a rule of the list. The message goes to the model or caller that asked for it."""


def next_free_number(todos: Sequence[Mapping[str, Any]], at_least: int = 1) -> int:
    """Return the lowest number that is above those of all items and not below `at_least`.

    The string "7" counts as the number, since an item is found by either.
    """
    number = at_least
    for todo in todos:
        key = todo.get("id")
        # The thread never counts beyond ID_LIMIT, and Python refuses to read thousands of digits.
        if isinstance(key, str) and key.isdecimal() and len(key) < len(str(ID_LIMIT)):
            key = int(key)
        if isinstance(key, int) and key >= number:
            number = key + 1
    return number


def assign_ids(todos: Sequence[Mapping[str, Any]], next_id: int) -> tuple[list[Todo], int]:
    """Return the list with ids for items that have none, and the next free number."""
    next_id = next_free_number(todos, next_id)
    numbered: list[Todo] = []
    for todo in todos:
        numbered.append(cast(Todo, {"id": next_id, **todo}))
        if "id" not in todo:
            next_id += 1
    return numbered, next_id
