"""The items of a board, found by id; boards share them.

A round of n calls makes n boards, which are all kept. One that changes an item copies a block of 32, the
group of 32 blocks that it is in, and the row of groups, so that neither the calls nor the items of a round
count with their square.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

from wakeloop.todos.items import Todo, is_open

T = TypeVar("T")
RowGroups = tuple[tuple[tuple[Todo, ...], ...], ...]
BLOCK_SIZE = 32  # items of a block, blocks of a group
SCANS_BEFORE_INDEX = 4  # lookups that scan: an index pays from the next one on


class _Index:
    """Places by id, shared by boards of which each has what the one before has; made when asked for."""

    __slots__ = ("alike", "asked", "end", "read", "where")

    def __init__(self, end: int) -> None:
        self.asked, self.end = 0, end  # the items of the board that has most
        self.where: dict[str, int] = {}
        self.read, self.alike = 0, dict[str, list[int]]()  # places by content, of so many items


class Rows(Sequence[Todo]):
    """Items that never change: what changes one, or adds some, is another `Rows`. `tally` counts statuses."""

    __slots__ = ("groups", "lookup", "size", "tally")

    groups: RowGroups
    lookup: _Index
    size: int
    tally: Mapping[str, int]

    def __init__(self, items: Iterable[Todo] = ()) -> None:
        whole = tuple(items)
        self.groups, self.size, self.lookup = (
            _split_blocks(_split_blocks(whole)),
            len(whole),
            _Index(len(whole)),
        )
        self.tally = Counter([todo["status"] for todo in whole])

    def _next(self, groups: RowGroups, size: int, tally: Mapping[str, int], index: _Index) -> "Rows":
        new = object.__new__(Rows)
        new.groups, new.size, new.tally, new.lookup = groups, size, tally, index
        return new

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Todo]:
        return chain.from_iterable(chain.from_iterable(self.groups))

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, int) and 0 <= place < self.size:
            return self.groups[place // BLOCK_SIZE**2][place // BLOCK_SIZE % BLOCK_SIZE][place % BLOCK_SIZE]
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))

    def place_of(self, key: int | str) -> int | None:
        """Return the place of the item with this id, or None; 1 and "1" are the same."""
        name, index = str(key), self.lookup
        index.asked += 1
        if index.asked <= SCANS_BEFORE_INDEX:
            return next((place for place, todo in enumerate(self) if str(todo["id"]) == name), None)
        for new in range(len(index.where), self.size):
            index.where.setdefault(str(self[new]["id"]), new)
        place = index.where.get(name, self.size)
        return place if place < self.size else None

    def get(self, key: int | str) -> Todo | None:
        """Return the item with exactly this id."""
        place = self.place_of(key)
        found: Todo | None = None if place is None else self[place]
        return found if found is not None and found["id"] == key else None

    def find_open_duplicate(self, content: str) -> Todo | None:
        """Return an open item with this trimmed content, among the newest of them."""
        index = self.lookup
        for place in range(index.read, self.size):
            index.alike.setdefault(self[place]["content"].strip(), []).append(place)
        index.read = max(index.read, self.size)
        places = [place for place in index.alike.get(content, ())[-BLOCK_SIZE:] if place < self.size]
        return next((self[place] for place in places if is_open(self[place])), None)

    def with_item(self, todo: Todo) -> "Rows":
        """Return rows on which this item stands in the place of the one with its id."""
        place = self.place_of(todo["id"])
        if place is None:
            return self
        group = self.groups[place // BLOCK_SIZE**2]
        block = group[place // BLOCK_SIZE % BLOCK_SIZE]
        before, after = block[place % BLOCK_SIZE]["status"], todo["status"]
        block = _replace_part(block, place % BLOCK_SIZE, todo)
        groups = _replace_part(
            self.groups, place // BLOCK_SIZE**2, _replace_part(group, place // BLOCK_SIZE % BLOCK_SIZE, block)
        )
        tally = self.tally
        if before != after:
            tally = {**tally, before: tally[before] - 1, after: tally.get(after, 0) + 1}
        return self._next(groups, self.size, tally, self.lookup)

    def with_appended(self, items: Sequence[Todo]) -> "Rows":
        """Return rows with these items behind the others."""
        *groups, group = self.groups or ((),)
        *full, last = group or ((),)
        size = self.size + len(items)
        index = self.lookup if self.lookup.end == self.size else _Index(size)  # another has more already
        index.end = size
        tally = {**self.tally, **(Counter(self.tally) + Counter([todo["status"] for todo in items]))}
        blocks = (*full, *_split_blocks((*last, *items)))
        return self._next((*groups, *_split_blocks(blocks)), size, tally, index)


def _split_blocks(parts: tuple[T, ...]) -> tuple[tuple[T, ...], ...]:
    return tuple(parts[at : at + BLOCK_SIZE] for at in range(0, len(parts), BLOCK_SIZE))


def _replace_part(parts: tuple[T, ...], place: int, part: T) -> tuple[T, ...]:
    return (*parts[:place], part, *parts[place + 1 :])
