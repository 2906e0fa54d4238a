"""The channel of the list: its items and its reducer."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, Self

from wakeloop.errors import DamagedError
from wakeloop.text.characters import shorten
from wakeloop.todos.changes import (
    Changes,
    ToolList,
    check_changes,
    find_added,
    find_changed_ids,
    keep_ours,
    merge_over,
    stamp_items,
)
from wakeloop.todos.items import STATUSES, OperationRefused, Todo, read_list, unify_ids


class Superstep(NamedTuple):
    """A superstep in which a todo call and other calls ran: the list before it, and what the call changed."""

    number: int
    base: list[Any]
    written: frozenset[int | str]


class Todos(list[Any]):
    """The list, with notes on who wrote it.

    If somebody else than the graph's own nodes wrote it, `before` is the list before that, until a node takes
    the new one over; `by` names the tool, `overruled` the items for which a todo call beside it has won.
    `fault` says why an input was refused. `began` is the list that the run was given, for `join_todos`.
    `loaded` says that it comes from a snapshot, which knows nothing of all this. `is_plain` says that its
    channel stores it as a whole. `stamp` is its stamp and `tally` the number of items with each status, once
    somebody has asked for them.
    """

    before: list[Todo] | None = None
    began: list[Todo] | None = None
    by: str | None = None
    fault: str | None = None
    is_plain = False
    loaded = False
    overruled: Sequence[int | str] = ()
    stamp: int | None = None
    superstep: Superstep | None = None
    tally: Mapping[str, int] | None = None

    def __copy__(self) -> Self:
        new = type(self)(self)
        vars(new).update(vars(self))
        return new

    def replaced_by(self, items: Sequence[Any]) -> Self:
        """Return other items with the same notes."""
        new = type(self)(items)
        vars(new).update({**vars(self), "stamp": None, "tally": None})
        return new


class OwnList(Todos):
    """The whole list as the loop's own hooks write it, so that a stream of updates shows it to a UI.

    As a write it is not taken for a list that somebody else wrote. A run that crashed before its superstep
    was stored reads it back as a plain list, which the ledger's `own` recognizes.
    """


def merge_todos(state: Sequence[Todo], writes: Sequence[Any]) -> list[Todo]:
    """Replace the list, or change items by id: the reducer of `todos`, for a `DeltaChannel`.

    A list replaces the old one, a dict of `Changes` changes it, None does nothing. Both are checked, since
    both may come from outside. A refused write leaves the list as it was and sets its `fault`: an error
    raised here would make the thread unreadable.

    Example:
        >>> merge_todos([], [[{"id": 1, "content": "Measure", "status": "pending"}]])
        [{'id': 1, 'content': 'Measure', 'status': 'pending'}]
    """
    merged = copy(state) if isinstance(state, Todos) else load_todos(state)
    for write in writes:
        if write is None:
            continue
        if isinstance(write, OwnList):
            began = getattr(merged, "began", None)
            merged = Todos(write)
            merged.began, merged.stamp = began, write.stamp
            continue
        given = write
        try:
            if write and isinstance(write, dict) and _CHANGES.issuperset(write):
                check_changes(write)
                if "own" in write:
                    merged = _apply_changes(merged, write)  # type: ignore[arg-type]
                    continue
                # somebody else's changes are like the list that they make
                given = list(_apply_changes(copy(merged), write))  # type: ignore[arg-type]
            replaced = _take_given(merged, given)
        except OperationRefused as refusal:
            replaced = copy(merged)
            replaced.fault = str(refusal)
        replaced.before = merged.before if merged.before is not None else list(merged)
        merged = replaced
    return merged


def merge_one_write(old: Sequence[Todo], new: Any) -> list[Todo]:
    """Merge one write: the reducer for a plain channel, which also gets the lists of an agent's tools."""
    merged = merge_todos(old, [new])
    if isinstance(merged, Todos) and isinstance(old, Todos) and old.began is not None:
        merged.began = old.began
    return merged


def load_todos(state: Any) -> Todos:
    """Return a stored list. If an input wrote it during a run, its items may still wait for their ids."""
    if isinstance(state, dict) and {"todos", "before"} <= state.keys():
        # as `PlainTodosChannel` stores a list that no node has taken over yet
        check_stored_todos(state["before"])
        todos = load_todos(state["todos"])
        todos.before, todos.by, todos.fault = state["before"], state.get("by"), state.get("fault")
        return todos
    check_stored_todos(state)
    todos = Todos(state)
    if not all("id" in todo for todo in todos):
        todos.before, todos.loaded = [], True
    return todos


_CHANGES = frozenset(Changes.__annotations__)


def _take_given(merged: Todos, write: Any) -> Todos:
    """Return the list that an input, a person or a tool wrote. Raises `OperationRefused`.

    A tool's list is merged by item if others have written in the same superstep: all of them began with one
    list, and none has seen what the others made of it.
    """
    if not (isinstance(write, dict) and ToolList.__required_keys__ <= write.keys()):
        given = unify_ids(read_list(write), merged)
        replaced = Todos(given)
        replaced.began = given
        return replaced
    given, now = read_list(write["given"]), merged.superstep
    if now is not None and now.number != write["step"]:
        now = None
    if now is None and "base" in write:
        base = read_list(write["base"])
        now = Superstep(write["step"], base, frozenset(find_changed_ids(base, merged)))
    if now is None:
        given = unify_ids(given, merged)
        replaced = merged.replaced_by(given)
        replaced.superstep = Superstep(write["step"], list(merged), frozenset())
    else:
        given = unify_ids(given, now.base)
        items, met = merge_over(now.base, merged, given, keep_ours(now.written))
        taken = {str(todo.get("id")) for todo in items}
        for todo in find_added(now.base, given):
            # a number that the todo call has just given to another item is not this one's
            items.append({k: v for k, v in todo.items() if k != "id" or str(v) not in taken})
        replaced = merged.replaced_by(items)
        replaced.superstep = now
        replaced.overruled = [*merged.overruled, *(key for key in met if key in now.written)]
    replaced.by = write["by"] if merged.by in (None, write["by"]) else f"{merged.by} and {write['by']}"
    return replaced


def _apply_changes(todos: Todos, difference: Changes) -> Todos:
    base = list(todos) if "step" in difference else []
    if "all" in difference:
        began, todos = todos.began, Todos(difference["all"])
        todos.began = began
    else:
        # a tool may have replaced the list in this round: `before` and its other notes are kept
        was = todos.before
        todos = _apply_difference(todos, difference)
        if was is not None and "own" in difference:
            todos.before = list(_apply_difference(Todos(was), difference))  # this is not what the other wrote
    if "step" in difference:
        todos.superstep = Superstep(difference["step"], base, frozenset(find_changed_ids(base, todos)))
    return todos


def _apply_difference(todos: Todos, difference: Changes) -> Todos:
    dropped = set(map(str, difference.get("drop", ())))
    if dropped:
        todos = todos.replaced_by([todo for todo in todos if str(todo.get("id", "")) not in dropped])
    places = {todo.get("id"): place for place, todo in enumerate(todos)}
    for todo in difference.get("put", ()):
        place = places.setdefault(todo["id"], len(todos))
        old = todos[place : place + 1]
        if todos.stamp is not None:
            todos.stamp ^= stamp_items([*old, todo])
        todos.tally = None
        todos[place : place + 1] = [todo]
    if "order" in difference:
        ranks = {key: rank for rank, key in enumerate(difference["order"])}
        todos = todos.replaced_by(sorted(todos, key=lambda todo: ranks.get(todo.get("id"), len(ranks))))
    return todos


def check_stored_todos(todos: object) -> None:
    """Refuse a stored value that is not a list of items. Raises `DamagedError`."""
    if todos is None or isinstance(todos, Todos):  # a reducer made it, so its items are checked already
        return
    if not isinstance(todos, list | tuple):
        raise DamagedError(f"todos must be a list, got {shorten(repr(todos))}")
    for todo in todos:
        is_item = type(todo) is dict and type(todo.get("content")) is str and todo.get("status") in STATUSES
        if not is_item:
            raise DamagedError(f"todos contains {shorten(repr(todo))}, which is not an item")


def check_channels(values: Mapping[str, Any]) -> None:
    """Refuse stored values of the wrong type. Raises `DamagedError`."""
    kinds = {"todo_session": dict, "todo_settings": dict, "todo_goal": str, "messages": list}
    for name, kind in kinds.items():
        value = values.get(name)
        if value is not None and not isinstance(value, kind):
            raise DamagedError(f"{name} must be a {kind.__name__}, got {shorten(repr(value))}")
    check_stored_todos(values.get("todos"))
