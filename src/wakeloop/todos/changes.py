"""Changes between lists: by id, merged, and as a stamp."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from hashlib import blake2b
from operator import xor
from typing import Any, NotRequired

from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.text.characters import shorten
from wakeloop.todos.items import OperationRefused, Todo, is_id, read_list


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
    order = [todo["id"] for todo in new]
    now = set(order)
    put = [todo for todo in new if was.get(todo["id"]) != todo]
    drop = [key for key in was if key not in now]
    expected = [key for key in was if key in now] + [key for key in order if key not in was]
    result: Changes = {}
    if put:
        result["put"] = put
    if drop:
        result["drop"] = drop
    if expected != order:
        result["order"] = order
    return result


def _find_updates(old: Sequence[Todo], new: Sequence[Todo]) -> list[Todo] | None:
    """Return the changed items if both lists have the same ids in the same order, else None."""
    # Most rounds only update items. Comparing in pairs takes a tenth of the time of a search by id.
    if len(old) != len(new):
        return None
    updated: list[Todo] = []
    for before, after in zip(old, new, strict=True):
        if before is after:
            continue
        if before["id"] != after["id"]:
            return None
        if before != after:
            updated.append(after)
    return updated


def keeps_contents(old: Sequence[Todo], new: Sequence[Todo]) -> bool:
    """Tell whether two lists have the same texts at the same places."""
    return [todo["content"] for todo in old] == [todo["content"] for todo in new]


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


def stamp_item(todo: Any) -> int:
    """Return a number for an item as it is."""
    # CRC-32 is linear: the stamps of the items 2, 3, 4 and 5, alike but for the number, would cancel out.
    written = json.dumps(todo, sort_keys=True).encode()
    return int.from_bytes(blake2b(written, digest_size=4).digest(), "big")


def stamp_items(todos: Iterable[Any]) -> int:
    """Return a number for these items in any order; a change needs only those items that changed."""
    return reduce(xor, map(stamp_item, todos), 0)


def stamp_of(todos: Sequence[Any]) -> int:
    """Return a list's stamp, which a list that a reducer made already has."""
    known: int | None = getattr(todos, "stamp", None)
    if known is None:
        known = stamp_items(todos)
        if hasattr(todos, "stamp"):
            todos.stamp = known
    return known


def stamp_after(before: Any, changes: Mapping[str, Any], after: Iterable[Any]) -> int:
    """Return the stamp of a list after changes: of the changed items alone, where no other has gone."""
    if set(changes) - {"put", "step", "own"} or not hasattr(before, "stamp"):
        return stamp_items(after)
    new = {todo["id"]: todo for todo in changes["put"]}
    return stamp_of(before) ^ stamp_items([*new.values(), *[todo for todo in before if todo["id"] in new]])


Item = Any  # a `Todo` that may still lack an id
Choose = Callable[[Item, Item], Item]


def merge_over(
    base: Sequence[Item], current: Sequence[Item], other: Sequence[Item], choose: Choose
) -> tuple[list[Item], list[int | str]]:
    """Return `current` with everything that `other` changed since both were `base`, and where they met.

    An item that only one of them changed, removed or reopened stays as that one left it. If both changed it,
    `choose(current's, other's)` decides, and its id is among those returned; a changed item stays although
    the other removed it. Items that `base` lacks are kept from `current`; those of `other` are not looked at.
    """
    was = {todo["id"]: todo for todo in base if "id" in todo}
    theirs = {todo["id"]: todo for todo in other if "id" in todo}
    merged: list[Item] = []
    both: list[int | str] = []
    for todo in current:
        key = todo.get("id")
        if key not in was:
            merged.append(todo)
            continue
        chosen = todo
        if theirs.get(key) != was[key]:
            chosen = theirs.get(key)
            if todo != was[key] and todo != chosen:
                both.append(key)
                chosen = choose(todo, chosen)
        if chosen is not None:
            merged.append(chosen)
    present = {todo.get("id") for todo in current}
    for key, todo in theirs.items():
        if key in was and key not in present and todo != was[key]:  # removed here, changed there
            both.append(key)
            chosen = choose(None, todo)
            if chosen is not None:
                merged.append(chosen)
    return order_like(base, merged, other), both


def find_added(base: Sequence[Item], other: Sequence[Item]) -> list[Item]:
    """Return the items of `other` that `base` lacks."""
    known = {todo.get("id") for todo in base}
    return [todo for todo in other if "id" not in todo or todo["id"] not in known]


def find_changed_ids(before: Sequence[Item], after: Sequence[Item]) -> set[int | str]:
    """Return the ids of items that were added, changed or removed."""
    was = {todo["id"]: todo for todo in before if "id" in todo}
    now = {todo["id"]: todo for todo in after if "id" in todo}
    return {key for key in was.keys() | now.keys() if was.get(key) != now.get(key)}


def order_like(base: Sequence[Item], merged: list[Item], other: Sequence[Item]) -> list[Item]:
    """Put items in the order of `other`, if only `other` has moved any since `base`."""
    if not is_moved(base, other) or is_moved(base, merged):
        return merged
    ranks = {todo.get("id"): place for place, todo in enumerate(other)}
    return sorted(merged, key=lambda todo: ranks.get(todo.get("id"), len(ranks)))


def is_moved(before: Sequence[Item], after: Sequence[Item]) -> bool:
    """Return whether items of both lists are in another order."""
    places = {todo["id"]: place for place, todo in enumerate(after) if "id" in todo}
    kept = [places[todo["id"]] for todo in before if todo.get("id") in places]
    return kept != sorted(kept)


def keep_ours(wins: Collection[int | str]) -> Choose:
    """Return a choice by which an item of the ids in `wins` stays as it is here, changed or removed."""

    def choose(ours: Item, theirs: Item) -> Item:
        key = (ours or theirs).get("id")
        return ours if key in wins else theirs

    return choose
