"""Operations on a list, and the rows that they make."""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, Literal, TypeVar

from wakeloop.todos.items import Status, Todo, change_tally, is_open

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


@dataclass(frozen=True, slots=True)
class Add:
    """Append items, all pending."""

    contents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Change the status of one item. With `as_shown`, the id may have the marks of a list, as in `[1]`."""

    id: int | str
    status: Status
    reason: str | None = None
    evidence: str | None = None
    as_shown: bool = False


@dataclass(frozen=True, slots=True)
class ChangeSeveral:
    """Change several items, either all or none."""

    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Complete:
    """Complete the items with these contents, either all or none."""

    contents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """An item of a list that replaces the old one. Without an id, it is matched by its content."""

    content: str
    status: Status
    id: int | str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace the list. With the reason `refused` it changes nothing, but counts as a write of this round."""

    items: tuple[Draft, ...]
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """Empty the list, set the goal, and start numbering at 1 again."""

    goal: str = ""


@dataclass(frozen=True, slots=True)
class Show:
    """Show the list without changing it."""


Operation = Add | Change | ChangeSeveral | Complete | Replace | Reset | Show


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for a list. `max_items` None means no limit.

    With `repeats="name"`, an added item that equals an open one is not stored; the result names the open one.
    """

    max_items: int | None = None
    in_progress: Literal["any", "at_most_one", "exactly_one"] = "any"
    one_write: bool = False
    repeats: Literal["store", "name"] = "store"


@dataclass(frozen=True, slots=True)
class Board:
    """The state of a list: items, goal, next number, and how often the verifier refused which item.

    `rows` are the items with their index by id and their counts by status.
    """

    todos: Sequence[Todo] = ()
    goal: str = ""
    next_id: int = 1
    refusals: Mapping[str, int] = field(default_factory=dict)
    rows: Rows = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows = self.todos if isinstance(self.todos, Rows) else Rows(self.todos)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "todos", rows)

    def find(self, key: int | str) -> Todo | None:
        """Return the item with this id; 1 and "1" are the same."""
        return self.rows.find(key)

    def with_item(self, todo: Todo) -> "Board":
        """Return a board in which this item replaces the one with its id."""
        return replace(self, todos=self.rows.with_item(todo))


@dataclass(frozen=True, slots=True)
class Question:
    """A question for the verifier: whether this item may be completed."""

    todo: Todo


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one call: an error, or the stored items. `board` is the list after it.

    `touched` are the ids it wrote, `dropped` the open items that a new list left out, `denied` the verifier's
    reasons by id, `repeated` the ids of open items that it tried to add again; `has_other_calls` says that
    the reply made calls to other tools, too.
    """

    operation: Operation | None
    board: Board
    error: str | None = None
    touched: tuple[int | str, ...] = ()
    dropped: tuple[Todo, ...] = ()
    denied: Mapping[int | str, str] = field(default_factory=dict)
    repeated: tuple[int | str, ...] = ()
    has_other_calls: bool = False

    @property
    def wrote(self) -> bool:
        """Whether the call wrote anything."""
        if self.error is not None or self.operation is None or isinstance(self.operation, Show):
            return False
        return not self.denied or len(self.touched) > len(self.denied)


# Refused items may leave the list and come back under the same id. So the counts of some that left are kept.
KEPT_REFUSALS = 64
MAX_REFUSALS = 3

Verdicts = dict[tuple[int, str], str | None]
"""The answers by place of the call and id of the item, so that a replayed round asks nothing twice."""


class _RefusalLog(dict[str, list[tuple[int, int]]]):
    """The history of each count: pairs of age and count, by id. Only the newest owner may add to it."""

    newest = 0


class Refusals(Mapping[str, int]):
    """Immutable counts by id. Those of one round share a log, and each reads it up to its own age.

    A copy for each refusal would make the cost of a round grow with its square.
    """

    def __init__(self, log: _RefusalLog, size: int, age: int = 0) -> None:
        self.log, self.size, self.age = log, size, age

    @classmethod
    def from_counts(cls, counts: Mapping[str, int]) -> "Refusals":
        """Return counts as `Refusals`."""
        if isinstance(counts, Refusals):
            return counts
        return cls(_RefusalLog({key: [(0, count)] for key, count in counts.items()}), len(counts))

    def with_one(self, key: str, count: int) -> "Refusals":
        """Return counts with this one set; a new id comes last."""
        if self.age != self.log.newest:  # another owner of the log has added to it
            return Refusals.from_counts(dict(self)).with_one(key, count)
        more = key not in self
        age = self.log.newest = self.age + 1
        self.log.setdefault(key, []).append((age, count))
        return Refusals(self.log, self.size + more, age)

    def __getitem__(self, key: str) -> int:
        if key in self:
            for age, count in reversed(self.log[key]):
                if age <= self.age:
                    return count
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return key in self.log and self.log[key][0][0] <= self.age  # type: ignore[index]

    def __iter__(self) -> Iterator[str]:
        return filter(self.__contains__, self.log)

    def __len__(self) -> int:
        return self.size


def with_status(todo: Todo, status: Status, reason: str = "", evidence: str | None = None) -> Todo:
    """Return an item with another status. Evidence stays; a reason goes, since it explains the old status."""
    new: Todo = {"id": todo["id"], "content": todo["content"], "status": status}
    if reason:
        new["reason"] = reason
    evidence = evidence or todo.get("evidence")
    if evidence:
        new["evidence"] = evidence
    return new


def is_exhausted(board: Board, todo: Todo) -> bool:
    """Return whether the verifier has refused an item for good."""
    return todo["status"] == "blocked" and board.refusals.get(str(todo["id"]), 0) >= MAX_REFUSALS


def ask_verifier(
    board: Board, todo: Todo, call: int, verdicts: Verdicts, *, fallback: Todo
) -> Generator[Question, str | None, tuple[Todo, Board, str | None]]:
    """Ask once whether an item may be completed.

    Returns the item to store, the board with its refusals, and the reason if the verifier refused. A refused
    item is stored as `fallback`, and at its third refusal in a thread as blocked.
    """
    key = str(todo["id"])
    if (call, key) not in verdicts:
        verdicts[call, key] = yield Question(todo)
    why = verdicts[call, key]
    if why is None:
        return todo, board, None
    count = board.refusals.get(key, 0) + 1
    board = replace(board, refusals=Refusals.from_counts(board.refusals).with_one(key, count))
    if count >= MAX_REFUSALS:
        return with_status(todo, "blocked", why), board, why
    return fallback, board, why


def prune_refusals(board: Board) -> dict[str, int]:
    """Return the counts of the items in the list, and of the last ones that left it."""
    listed = {str(todo["id"]) for todo in board.todos}
    gone = [key for key in board.refusals if key not in listed]
    counts = dict(board.refusals)
    for key in gone[:-KEPT_REFUSALS]:
        del counts[key]
    return counts
