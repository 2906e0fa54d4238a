"""Merging lists that began as one, by item."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

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
