"""A list that finds its items by id without a scan."""

from collections.abc import Iterable
from typing import Any, Self, TypeVar

T = TypeVar("T")
FORKED = object()  # a key in the index: copies have put one id at two places


class IndexedList(list[T]):
    """A list with an index from id to place, shared by its copies and verified on every lookup.

    Copies grow apart (each task of a superstep writes on its own, each fork reads a copy with its writes).
    A place where this copy has nothing, or another id, was taken by another copy; the id is then nowhere
    here, unless copies have ever put one id at two places: only then is the list scanned. So appending
    neither rebuilds the index nor scans (0.92 of a step without a saver at 100 items when it did).
    """

    __slots__ = ("places",)
    places: dict[Any, int]

    def __init__(self, items: Iterable[T] = (), where: dict[Any, int] | None = None) -> None:
        super().__init__(items)
        self.places = {self.key(item): i for i, item in enumerate(self)} if where is None else where

    @staticmethod
    def key(item: Any) -> Any:
        """Return the id of one item."""
        raise NotImplementedError

    def __copy__(self) -> Self:
        return type(self)(self, self.places)

    def find(self, key: Any) -> int | None:
        """Return the place of the item with this id, or None."""
        place = self.places.get(key)
        if place is None or (place < len(self) and self.key(self[place]) == key):
            return place
        if FORKED not in self.places:
            return None
        return next((i for i, item in enumerate(self) if self.key(item) == key), None)

    def upsert(self, item: T) -> int:
        """Replace the item of the same id in its place, or append it; return the place."""
        key, end = self.key(item), len(self)
        place = self.find(key)
        if place is not None:
            self[place] = item
            return place
        if self.places.setdefault(key, end) != end:
            self.places[FORKED] = self.places[key] = end
        self.append(item)
        return end
