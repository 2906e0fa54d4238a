"""Stamps: a number by which a list is recognized."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from hashlib import blake2b
from operator import xor
from typing import Any


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
    if set(changes) - {"put", "step", "own"} or not hasattr(before, "find"):
        return stamp_items(after)
    stamp = stamp_of(before)
    for todo in changes["put"]:
        place = before.find(todo["id"])
        stamp ^= stamp_item(todo) ^ (0 if place is None else stamp_item(before[place]))
    return stamp
