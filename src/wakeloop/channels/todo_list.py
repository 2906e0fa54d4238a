"""The channel of the list: its items and its reducer."""

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

from wakeloop.channels.indexed_list import IndexedList
from wakeloop.errors import DamagedError
from wakeloop.text.characters import shorten
from wakeloop.todos.changes import Changes, check_changes
from wakeloop.todos.items import STATUSES, OperationRefused, Todo, read_list


class Todos(IndexedList[Any]):
    """The list, with an index by id.

    If an input wrote it, `before` is the list before that, until `activate` takes the new one; `fault` says
    why the input was refused.
    """

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
        """Return an item's id, or None if an input has not set one."""
        return item.get("id")


def merge_todos(state: Sequence[Todo], writes: Sequence[Any]) -> list[Todo]:
    """Replace the list, or change items by id: the reducer of `todos`, for a `DeltaChannel`.

    A list replaces the old one, a dict of `Changes` changes it, None does nothing. Both are checked, since
    both may be an input. A refused write leaves the list as it was and sets its `fault`: an error raised here
    would make the thread unreadable.

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
    """Merge one write: the reducer for a plain channel."""
    return merge_todos(old, [new])


def _load_todos(state: Sequence[Todo]) -> Todos:
    """Return a stored list. If an input wrote it during a run, its items may still wait for their ids."""
    todos = Todos(checked_todos(state))
    if not all("id" in todo for todo in todos):
        todos.before = []
    return todos


_CHANGES = frozenset(Changes.__annotations__)


def _apply_changes(todos: Todos, difference: Changes) -> Todos:
    if "all" in difference:
        return Todos(difference["all"])
    before = todos.before  # set if a tool replaced the list in this round; a new `Todos` would lose it
    dropped = set(difference.get("drop", ()))
    if dropped:
        todos = Todos([todo for todo in todos if todo.get("id") not in dropped])
    for todo in difference.get("put", ()):
        todos.upsert(todo)
    if "order" in difference:
        ranks = {key: rank for rank, key in enumerate(difference["order"])}
        todos = Todos(sorted(todos, key=lambda todo: ranks.get(todo.get("id"), len(ranks))))
    todos.before = before
    return todos


def checked_todos(todos: Any) -> list[Any]:
    """Return a stored list. Raises `DamagedError` if it is not one."""
    check_stored_todos(list(todos) if isinstance(todos, tuple) else todos)
    return todos  # type: ignore[no-any-return]


def check_stored_todos(todos: object) -> None:
    """Refuse a stored value that is not a list of items. Raises `DamagedError`."""
    if todos is None:
        return
    if not isinstance(todos, list):
        raise DamagedError(f"todos must be a list, got {shorten(repr(todos))}")
    if type(todos) is not list:  # a reducer made it, so its items are checked already
        return
    for todo in todos:
        if (
            type(todo) is not dict
            or type(todo.get("content")) is not str
            or todo.get("status") not in STATUSES
        ):
            raise DamagedError(f"todos contains {shorten(repr(todo))}, which is not an item")
