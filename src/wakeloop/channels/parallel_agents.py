"""Reducers for a parent whose agents run side by side."""

from wakeloop.stream import Session
from wakeloop.todos.items import Todo, next_free_number

_PROGRESS_RANK = {"pending": 0, "in_progress": 1, "blocked": 2, "cancelled": 3, "completed": 4}


def join_todos(left: list[Todo] | None, right: list[Todo] | None) -> list[Todo]:
    """Merge two lists so that no item and no completion is lost: for a parent with parallel agents.

    Annotate the parent's channel: `todos: Annotated[list[Todo], join_todos]`. Of two items with one id and
    one content the further one is kept; of two different items under one number the later one is the item of
    its content that is there already, else it is kept under a new number. Pass `Overwrite([])` to empty the
    channel.

    Example:
        >>> open_item = {"id": 1, "content": "Measure", "status": "pending"}
        >>> join_todos([open_item], [{**open_item, "status": "completed"}])
        [{'id': 1, 'content': 'Measure', 'status': 'completed'}]
    """
    merged = list(left or ())
    places = {todo["id"]: i for i, todo in enumerate(merged)}
    same = {todo["content"]: i for i, todo in reversed(list(enumerate(merged)))}
    next_id = max(next_free_number(merged), next_free_number(right or ()))
    for todo in right or ():
        place = places.get(todo["id"])
        if place is None:
            places[todo["id"]] = len(merged)
            same.setdefault(todo["content"], len(merged))
            merged.append(todo)
            continue
        if merged[place]["content"] != todo["content"]:
            place = same.get(todo["content"])
        if place is None:
            same[todo["content"]] = len(merged)
            merged.append({**todo, "id": next_id})
            next_id += 1
        else:
            further = max(merged[place], todo, key=lambda item: _PROGRESS_RANK[item["status"]])
            merged[place] = {**further, "id": merged[place]["id"]}
    return merged


def join_goal(left: str | None, right: str | None) -> str:
    """Keep the newest goal that says something: for a parent with parallel agents.

    Example:
        >>> join_goal("Measure", "")
        'Measure'
    """
    return right or left or ""


def join_session(left: Session | None, right: Session | None) -> Session | None:
    """Keep the session of the agent that reported last, over the newest list: for parallel agents.

    Example:
        >>> join_session(None, None)
    """
    lists = [one["list"] for one in (left, right) if one and "list" in one]
    newest = right or left
    return {**newest, "list": max(lists)} if newest and lists else newest
