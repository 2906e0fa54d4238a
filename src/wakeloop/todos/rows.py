"""Immutable rows of items, found by id.

A round of n calls makes n boards, and all of them are kept. So rows share what did not change: an update
copies one block of 32 items, its group of 32 blocks, and the row of groups. That way the cost of a round does
not grow with the square of its calls or items.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

from wakeloop.todos.items import Todo, change_tally, is_open

T = TypeVar("T")
RowGroups = tuple[tuple[tuple[Todo, ...], ...], ...]
BLOCK_SIZE = 32  # items of a block, blocks of a group
SCANS_BEFORE_INDEX = 4  # lookups that scan the list; an index pays off only after these


class _Index:
    """Places by id and by content, shared by boards of one round and filled on demand.

    Each of these boards extends the one before. `end` is the size of the longest, `lookups` counts how often
    an id was looked up, `indexed` how many items are in `by_content`. `hints` are places by id that the list
    knew before; they may be those of another list, so each is verified.
    """

    __slots__ = ("by_content", "by_id", "end", "hints", "indexed", "lookups")

    def __init__(self, end: int, hints: Mapping[Any, int]) -> None:
        self.end, self.hints = end, hints
        self.lookups = 0
        self.by_id: dict[str, int] = {}
        self.indexed = 0
        self.by_content: dict[str, list[int]] = {}


class Rows(Sequence[Todo]):
    """Immutable items; every change returns new rows. `tally` has the number of items with each status."""

    __slots__ = ("groups", "lookup", "size", "tally")

    groups: RowGroups
    lookup: _Index
    size: int
    tally: Mapping[str, int]

    def __init__(self, items: Iterable[Todo] = ()) -> None:
        whole = tuple(items)
        self.groups = _split_blocks(_split_blocks(whole))
        self.size = len(whole)
        self.lookup = _Index(self.size, getattr(items, "places", {}))
        self.tally = getattr(items, "tally", None) or _count_statuses(whole)

    def _make_next(self, groups: RowGroups, size: int, tally: Mapping[str, int], index: _Index) -> "Rows":
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

    def find(self, key: int | str) -> Todo | None:
        """Return the item with this id, or None; 1 and "1" are the same."""
        found = self.locate(key)
        return None if found is None else found[1]

    def locate(self, key: int | str) -> tuple[int, Todo] | None:
        """Return the place of the item with this id, and the item; 1 and "1" are the same."""
        name, index = str(key), self.lookup
        hint = index.hints.get(key, self.size)
        if hint < self.size:
            hinted: Todo = self[hint]
            if hinted["id"] == key:
                return hint, hinted
        index.lookups += 1
        if index.lookups <= SCANS_BEFORE_INDEX:
            for place, todo in enumerate(self):
                if str(todo["id"]) == name:
                    return place, todo
            return None
        indexed = len(index.by_id)
        for new, todo in enumerate(islice(self, indexed, None), indexed):
            index.by_id.setdefault(str(todo["id"]), new)
        place = index.by_id.get(name, self.size)
        # a longer board may have indexed items beyond these
        return (place, self[place]) if place < self.size else None

    def get(self, key: int | str) -> Todo | None:
        """Return the item with exactly this id: 1 and "1" differ."""
        found = self.find(key)
        return found if found is not None and found["id"] == key else None

    def pair_changed(self, old: "Rows") -> list[tuple[Todo, Todo]] | None:
        """Return each changed item after its predecessor; None if the sizes differ."""
        if self.size != old.size:
            return None
        pairs: list[tuple[Todo, Todo]] = []
        for was, now in zip(chain(*old.groups), chain(*self.groups), strict=True):
            if was is not now:
                pairs += [pair for pair in zip(was, now, strict=True) if pair[0] is not pair[1]]
        return pairs

    def find_open_duplicate(self, content: str) -> Todo | None:
        """Return an open item with this trimmed content, if one of the last 32 with that content is open."""
        index = self.lookup
        for place in range(index.indexed, self.size):
            index.by_content.setdefault(self[place]["content"].strip(), []).append(place)
        index.indexed = max(index.indexed, self.size)
        for place in index.by_content.get(content, ())[-BLOCK_SIZE:]:
            if place < self.size and is_open(self[place]):
                found: Todo = self[place]
                return found
        return None

    def with_item(self, todo: Todo) -> "Rows":
        """Return rows in which this item replaces the one with its id."""
        found = self.locate(todo["id"])
        if found is None:
            return self
        place, old = found
        in_groups, in_group, in_block = (
            place // BLOCK_SIZE**2,
            place // BLOCK_SIZE % BLOCK_SIZE,
            place % BLOCK_SIZE,
        )
        group = self.groups[in_groups]
        block = group[in_group]
        tally = change_tally(self.tally, old, todo)
        group = _replace_part(group, in_group, _replace_part(block, in_block, todo))
        groups = _replace_part(self.groups, in_groups, group)
        return self._make_next(groups, self.size, tally, self.lookup)

    def with_appended(self, items: Sequence[Todo]) -> "Rows":
        """Return rows with these items added at the end."""
        *groups, group = self.groups or ((),)
        *full, last = group or ((),)
        size = self.size + len(items)
        index = self.lookup
        if index.end != self.size:  # another board was extended from here, so the index has its items
            index = _Index(size, {})
        index.end = size
        tally = {**self.tally, **(Counter(self.tally) + _count_statuses(items))}
        blocks = (*full, *_split_blocks((*last, *items)))
        return self._make_next((*groups, *_split_blocks(blocks)), size, tally, index)


def _count_statuses(items: Sequence[Todo]) -> Counter[str]:
    return Counter([todo["status"] for todo in items])


def _split_blocks(parts: tuple[T, ...]) -> tuple[tuple[T, ...], ...]:
    return tuple([parts[at : at + BLOCK_SIZE] for at in range(0, len(parts), BLOCK_SIZE)])


def _replace_part(parts: tuple[T, ...], place: int, part: T) -> tuple[T, ...]:
    return (*parts[:place], part, *parts[place + 1 :])
