"""A list that finds its items by id without a scan."""

from collections.abc import Iterable
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Keyed(list[T]):
    """A list with an index from id to place, shared by its copies and verified on every lookup.

    Copies grow apart (each task of a superstep writes on its own): a place that holds another id belongs
    to another copy, and then this one looks for itself. So appending never rebuilds the index.
    """

    __slots__ = ("where",)
    where: dict[Any, int]

    def __init__(self, items: Iterable[T] = (), where: dict[Any, int] | None = None) -> None:
        super().__init__(items)
        self.where = {self.key(item): i for i, item in enumerate(self)} if where is None else where

    @staticmethod
    def key(item: Any) -> Any:
        """Return the id of one item."""
        raise NotImplementedError

    def __copy__(self) -> Self:
        return type(self)(self, self.where)

    def find(self, key: Any) -> int | None:
        """Return the place of the item with this id, or None."""
        place = self.where.get(key)
        if place is None or (place < len(self) and self.key(self[place]) == key):
            return place
        return next((i for i, item in enumerate(self) if self.key(item) == key), None)

    def put(self, item: T) -> int:
        """Replace the item of the same id in its place, or append it; return the place."""
        place = self.find(self.key(item))
        if place is not None:
            self[place] = item
            return place
        self.where[self.key(item)] = len(self)
        self.append(item)
        return len(self) - 1
