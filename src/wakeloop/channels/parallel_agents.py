"""Reducers for a parent graph with parallel agents."""

from collections.abc import Sequence
from typing import Any

from wakeloop.stream import Session
from wakeloop.todos.changes import find_added, merge_over
from wakeloop.todos.items import Todo, assign_ids, next_free_number, read_fields, unify_ids

_PROGRESS_RANK = {"pending": 0, "in_progress": 1, "blocked": 2, "cancelled": 3, "completed": 4}


def join_todos(left: list[Todo] | None, right: list[Todo] | None) -> list[Todo]:
    """Merge two lists without losing an item, a completion, or what only one of them changed.

    Use it for the channel of the parent graph: `todos: Annotated[list[Todo], join_todos]`. The list that an
    agent returns remembers the one that its run began with, until it is joined. An item that only this agent
    removed, changed or reopened is joined like that; what it left alone stays as the others made it. If both
    changed an item, or if a list remembers nothing, the one with more progress is kept. A new item is merged
    with one of its content, or else gets a new number, as does an item without an id. `Overwrite([])` empties
    the list.

    Example:
        >>> open_item = {"id": 1, "content": "Measure", "status": "pending"}
        >>> join_todos([open_item], [{**open_item, "status": "completed"}])
        [{'id': 1, 'content': 'Measure', 'status': 'completed'}]
    """
    base = getattr(right, "began", None)
    ours, _ = assign_ids(_read_items(left), 1)
    theirs = unify_ids(
        [{**todo, "status": todo.get("status", "pending")} for todo in _read_items(right)], ours
    )
    if base is None:
        return _add_items(ours, theirs)
    base = unify_ids(base, ours)
    merged, _ = merge_over(base, ours, theirs, _choose_further)
    return _add_items(merged, find_added(base, theirs))


def _read_items(todos: Sequence[Any] | None) -> list[dict[str, Any]]:
    """Return items as dicts of what is set, so without an id that is None."""
    read = map(read_fields, todos or ())
    return [{key: todo[key] for key in todo if todo[key] is not None} for todo in read]


def _choose_further(ours: Todo | None, theirs: Todo | None) -> Todo | None:
    """Choose between two changes of one item: more progress wins, and any change wins over a removal."""
    if ours is None or theirs is None:
        return ours or theirs
    return max(ours, theirs, key=_get_rank)


def _add_items(merged: list[Any], added: list[Any]) -> list[Todo]:
    """Add items of another list; of one with the same id and content, the one with more progress is kept."""
    places = {todo["id"]: at for at, todo in enumerate(merged)}
    by_content = {todo["content"]: at for at, todo in reversed([*enumerate(merged)])}
    next_id = max(next_free_number(merged), next_free_number(added))
    for todo in added:
        if "id" in todo and todo["id"] not in places:
            places[todo["id"]] = len(merged)
            by_content.setdefault(todo["content"], len(merged))
            merged.append(todo)
            continue
        place = places.get(todo.get("id"))
        # Parallel agents count from the same number, so one number may name two different items.
        if place is None or merged[place]["content"] != todo["content"]:
            place = by_content.get(todo["content"])
        if place is None:
            by_content[todo["content"]] = len(merged)
            merged.append({**todo, "id": next_id})
            next_id += 1
        else:
            further = max(merged[place], todo, key=_get_rank)
            merged[place] = {**further, "id": merged[place]["id"]}
    return merged


def _get_rank(todo: Todo) -> int:
    return _PROGRESS_RANK[todo["status"]]


def join_goal(left: str | None, right: str | None) -> str:
    """Keep the newest goal that is not empty: for a parent graph with parallel agents.

    Example:
        >>> join_goal("Measure", "")
        'Measure'
    """
    return right or left or ""


def join_session(left: Session | None, right: Session | None) -> Session | None:
    """Keep the newest session, with the newest list number of both: for a parent graph with parallel agents.

    Its counters are those of one agent's list: `session_of(parent.get_state(config))` counts the joined list.

    Example:
        >>> join_session({"state": "running", "list": 3}, {"state": "idle", "list": 2})
        {'state': 'idle', 'list': 3}
    """
    newest = right or left
    lists = [session["list"] for session in (left, right) if session and "list" in session]
    if newest and lists:
        return {**newest, "list": max(lists)}
    return newest
