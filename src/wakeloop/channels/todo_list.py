"""The list: items found by id, and their reducer."""

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

from wakeloop.channels.indexed_list import IndexedList
from wakeloop.errors import DamagedError
from wakeloop.text.characters import shorten
from wakeloop.todos.changes import Changes, check_changes
from wakeloop.todos.items import STATUSES, OperationRefused, Todo, read_list


class Todos(IndexedList[Any]):
    """The list, found by id. What came from outside waits for `activate`: `before` and `fault` say so."""

    __slots__ = ("before", "fault")
    before: "list[Todo] | None"
    fault: str | None

    def __init__(self, items: Sequence[Any] = (), where: dict[Any, int] | None = None) -> None:
        super().__init__(items, where)
        self.before, self.fault = None, None

    def __copy__(self) -> Self:
        new = type(self)(self, self.places)
        new.before, new.fault = self.before, self.fault
        return new

    @staticmethod
    def key(item: Any) -> Any:
        """Return an item's id; one from outside may have none yet."""
        return item.get("id")


def merge_todos(state: Sequence[Todo], writes: Sequence[Any]) -> list[Todo]:
    """Replace the list, or change it by id: the reducer of `todos`, for a `DeltaChannel`.

    A list replaces: it is checked, and a bad one is set aside with a sentence while the old one stays, so
    that reading the thread never raises. A dict of `Changes` changes it, under the same check: it, too, may
    come from outside. None does nothing.

    Example:
        >>> merge_todos([], [[{"id": 1, "content": "Measure", "status": "pending"}]])
        [{'id': 1, 'content': 'Measure', 'status': 'pending'}]
    """
    merged = copy(state) if isinstance(state, Todos) else _load_todos(state)
    for write in writes:
        if write is None:
            continue
        try:
            if write and isinstance(write, dict) and _CHANGES.issuperset(write):
                check_changes(write)
                merged = _apply_changes(merged, write)  # type: ignore[arg-type]
                continue
            replaced = Todos(read_list(write))
        except OperationRefused as refusal:
            replaced = copy(merged)
            replaced.fault = str(refusal)
        replaced.before = merged.before if merged.before is not None else list(merged)
        merged = replaced
    return merged


def merge_one_write(old: Sequence[Todo], new: Any) -> list[Todo]:
    """Do the same for one write: the reducer of a plain channel, whose value is the list."""
    return merge_todos(old, [new])


def _load_todos(state: Sequence[Todo]) -> Todos:
    """Read a list as it was stored: one written by hand in mid-run waits for its ids."""
    todos = Todos(checked_todos(state))
    if not all("id" in todo for todo in todos):
        todos.before = []
    return todos


_CHANGES = frozenset(Changes.__annotations__)


def _apply_changes(todos: Todos, difference: Changes) -> Todos:
    if "all" in difference:
        return Todos(difference["all"])
    before = todos.before  # a tool may have replaced the list in the same round
    if gone := set(difference.get("drop", ())):
        todos = Todos([todo for todo in todos if todo.get("id") not in gone])
    for todo in difference.get("put", ()):
        todos.upsert(todo)
    if "order" in difference:
        rank = {key: i for i, key in enumerate(difference["order"])}
        todos = Todos(sorted(todos, key=lambda todo: rank.get(todo.get("id"), len(rank))))
    todos.before = before
    return todos


def checked_todos(todos: Any) -> list[Any]:
    """Return a list that was stored, checked."""
    check_stored_todos(list(todos) if isinstance(todos, tuple) else todos)
    return todos  # type: ignore[no-any-return]


def check_stored_todos(todos: object) -> None:
    """Refuse a list that is none. Only a plain one is looked at: what a reducer has made is another type."""
    if todos is None or (type(todos) is not list and isinstance(todos, list)):
        return
    if not isinstance(todos, list):
        raise DamagedError(f"todos must be a list, got {shorten(repr(todos))}")
    for todo in todos:
        if (
            type(todo) is not dict
            or type(todo.get("content")) is not str
            or todo.get("status") not in STATUSES
        ):
            raise DamagedError(f"todos contains {shorten(repr(todo))}, which is not an item")
