"""Changes between two lists, by id."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired

from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.text.characters import shorten
from wakeloop.todos.items import OperationRefused, Todo, is_id, read_list
from wakeloop.todos.rows import Rows


class Changes(TypedDict, total=False):
    """The difference between two lists, as written to the channel: plain JSON.

    `put` has new and changed items, `drop` the ids that went away, `order` all ids if `put` and `drop` alone
    would give another order. `all` replaces the list. `step` is the superstep, if other calls ran in it, so
    that a list that one of them wrote can be merged. `own` marks a write of the graph, which notes itself
    what the model does not know; other changes are somebody else's. An empty dict is refused, since it is
    more likely a slip for an empty list.
    """

    all: list[Todo]
    put: list[Todo]
    drop: list[int | str]
    order: list[int | str]
    step: int
    own: bool


class ToolList(TypedDict):
    """A list that a tool has written, with the tool's name and the superstep.

    `base` is the list before the round's todo calls, if they were applied a superstep earlier.
    """

    given: list[Todo]
    by: str
    step: int
    base: NotRequired[list[Todo]]


def write_all(todos: Sequence[Todo]) -> Changes:
    """Return the changes with which the graph itself writes the whole list."""
    return {"all": list(todos), "own": True}


def diff_lists(old: Sequence[Todo], new: Sequence[Todo]) -> Changes:
    """Return the changes that turn one list into the other."""
    updated = _find_updates(old, new)
    if updated is not None:
        return {"put": updated} if updated else {}
    was = {todo["id"]: todo for todo in old}
    put: list[Todo] = []
    added: list[int | str] = []
    order: list[int | str] = []
    for todo in new:
        key = todo["id"]
        order.append(key)
        if key not in was:
            added.append(key)
        if was.get(key) != todo:
            put.append(todo)
    now = set(order)
    kept: list[int | str] = []
    drop: list[int | str] = []
    for key in was:
        if key in now:
            kept.append(key)
        else:
            drop.append(key)
    result: Changes = {}
    if put:
        result["put"] = put
    if drop:
        result["drop"] = drop
    if kept + added != order:
        result["order"] = order
    return result


def _find_updates(old: Sequence[Todo], new: Sequence[Todo]) -> list[Todo] | None:
    """Return the changed items if both lists have the same ids in the same order, else None."""
    # Most rounds only update items. Comparing in pairs takes a tenth of the time of a search by id.
    pairs = _pair_items(old, new)
    if pairs is None:
        return None
    updated: list[Todo] = []
    for before, after in pairs:
        if before is after:
            continue
        if before["id"] != after["id"]:
            return None
        if before != after:
            updated.append(after)
    return updated


def _pair_items(old: Sequence[Todo], new: Sequence[Todo]) -> Sequence[tuple[Todo, Todo]] | None:
    """Return the items at the same places, without those that rows share; None if the lengths differ."""
    if isinstance(old, Rows) and isinstance(new, Rows):
        return new.pair_changed(old)
    return list(zip(old, new, strict=True)) if len(old) == len(new) else None


def keeps_contents(old: Sequence[Todo], new: Sequence[Todo]) -> bool:
    """Tell whether two lists have the same texts at the same places."""
    pairs = _pair_items(old, new)
    if pairs is None:
        return False
    return all(before["content"] == after["content"] for before, after in pairs)


def check_changes(difference: Mapping[str, Any]) -> None:
    """Refuse changes with items or ids that no list may have. Raises `OperationRefused`."""
    for name in difference.keys() & {"all", "put"}:
        for todo in read_list(difference[name]):
            if "id" not in todo:
                raise OperationRefused(f"todos has an item without an id under {name!r}")
    for name in difference.keys() & {"drop", "order"}:
        keys = difference[name]
        if not (isinstance(keys, list | tuple) and all(map(is_id, keys))):
            raise OperationRefused(f"todos has {name!r} {shorten(repr(keys))}; it must be a list of ids")


def changed_ids(difference: Changes) -> list[int | str]:
    """Return the ids that changed; those that went away come last."""
    return [todo["id"] for todo in difference.get("put", ())] + list(difference.get("drop", ()))


def make_todos_event(
    before: Sequence[Todo], todos: Sequence[Todo], overruled: Sequence[int | str] = ()
) -> dict[str, Any]:
    """Return the event that reports a changed list, and for which items a todo call overruled a tool."""
    event = {"type": "todos", "todos": list(todos), "changed": changed_ids(diff_lists(before, todos))}
    return {**event, "overruled": list(overruled)} if overruled else event
