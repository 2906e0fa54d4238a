"""What changed between two lists, by id."""

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.text.characters import shorten
from wakeloop.todos.items import OperationRefused, Todo, is_id, read_list


class Changes(TypedDict, total=False):
    """The difference between two lists, as it is written to the channel: plain JSON.

    `put` holds new and changed items, `drop` ids that went away, `order` all ids where putting and dropping
    alone would leave another order; `all` replaces the list. An empty dict changes nothing.
    """

    all: list[Todo]
    put: list[Todo]
    drop: list[int | str]
    order: list[int | str]


def diff_lists(old: Sequence[Todo], new: Sequence[Todo]) -> Changes:
    """Describe how to get from one list to another, by id."""
    differing = [(a, b) for a, b in zip(old, new, strict=False) if a is not b]
    if len(old) == len(new) and all(
        a["id"] == b["id"] for a, b in differing
    ):  # an update: a tenth of the time
        updated = [b for a, b in differing if a != b]
        return {"put": updated} if updated else {}
    was = {todo["id"]: todo for todo in old}
    now = {todo["id"] for todo in new}
    put = [todo for todo in new if was.get(todo["id"]) != todo]
    drop = [key for key in was if key not in now]
    result: Changes = {}
    if put:
        result["put"] = put
    if drop:
        result["drop"] = drop
    natural = [key for key in was if key in now] + [todo["id"] for todo in new if todo["id"] not in was]
    order = [todo["id"] for todo in new]
    if natural != order:
        result["order"] = order
    return result


def check_changes(difference: Mapping[str, Any]) -> None:
    """Refuse a difference with items that no list may hold, or with ids that are none."""
    for name in ("all", "put"):
        if not all("id" in todo for todo in read_list(difference.get(name, ()))):
            raise OperationRefused(f"todos has an item without an id under {name!r}")
    for name in ("drop", "order"):
        keys = difference.get(name, ())
        if not (isinstance(keys, list | tuple) and all(map(is_id, keys))):
            raise OperationRefused(f"todos has {name!r} {shorten(repr(keys))}; it must be a list of ids")


def changed_ids(difference: Changes) -> list[int | str]:
    """Return the ids that a difference touches, those that went away last."""
    return [todo["id"] for todo in difference.get("put", ())] + list(difference.get("drop", ()))


def make_todos_event(before: Sequence[Todo], todos: Sequence[Todo]) -> dict[str, Any]:
    """Return the event of a list that came in the place of another."""
    return {"type": "todos", "todos": list(todos), "changed": changed_ids(diff_lists(before, todos))}
