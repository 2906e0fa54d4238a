"""Reducers for a parent graph with parallel agents."""

from wakeloop.stream import Session
from wakeloop.todos.items import Todo, next_free_number

_PROGRESS_RANK = {"pending": 0, "in_progress": 1, "blocked": 2, "cancelled": 3, "completed": 4}


def join_todos(left: list[Todo] | None, right: list[Todo] | None) -> list[Todo]:
    """Merge two lists without losing an item or a completion.

    Use it for the channel of the parent graph: `todos: Annotated[list[Todo], join_todos]`. If both lists have
    an item with one id and content, the one with more progress is kept. If the contents differ, the right
    item is merged with an item of its content, or else gets a new number. `Overwrite([])` empties it.

    Example:
        >>> open_item = {"id": 1, "content": "Measure", "status": "pending"}
        >>> join_todos([open_item], [{**open_item, "status": "completed"}])
        [{'id': 1, 'content': 'Measure', 'status': 'completed'}]
    """
    merged = list(left or ())
    places: dict[int | str, int] = {}
    by_content: dict[str, int] = {}
    for at, todo in enumerate(merged):
        places[todo["id"]] = at
        by_content.setdefault(todo["content"], at)
    next_id = max(next_free_number(merged), next_free_number(right or ()))
    for todo in right or ():
        place = places.get(todo["id"])
        if place is None:
            places[todo["id"]] = len(merged)
            by_content.setdefault(todo["content"], len(merged))
            merged.append(todo)
            continue
        # Parallel agents count from the same number, so one number may name two different items.
        if merged[place]["content"] != todo["content"]:
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

    Example:
        >>> join_session({"state": "running", "list": 3}, {"state": "idle", "list": 2})
        {'state': 'idle', 'list': 3}
    """
    newest = right or left
    lists = [session["list"] for session in (left, right) if session and "list" in session]
    if newest and lists:
        return {**newest, "list": max(lists)}
    return newest
