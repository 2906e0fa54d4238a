"""Operations on a list, and the rows that they make."""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, Literal

from wakeloop.todos.items import Status, Todo, is_open, tally_statuses

BLOCK_SIZE = 32  # items


class _Index:
    """Places by id and by content, shared by boards of one round, each of which extends the one before.

    `by_content` is filled on demand; `indexed` counts the items in it.
    """

    __slots__ = ("by_content", "by_id", "indexed")

    def __init__(self, items: Iterable[Todo]) -> None:
        self.by_id = {str(todo["id"]): place for place, todo in enumerate(items)}
        self.by_content: dict[str, list[int]] = {}
        self.indexed = 0


class Rows(Sequence[Todo]):
    """Immutable items, found by id. `tally` has the number of items with each status.

    A round of n calls makes n boards, and all of them are kept. So rows share what did not change: an update
    copies one block of items and the row of blocks, and the cost of a round does not grow with the square of
    its calls or items.
    """

    __slots__ = ("blocks", "lookup", "size", "tally")

    def __init__(self, items: Iterable[Todo] = ()) -> None:
        whole = tuple(items)
        self.blocks = _split_blocks(whole)
        self.size = len(whole)
        self.lookup = _Index(whole)
        self.tally: Mapping[str, int] = getattr(items, "tally", None) or tally_statuses(whole)

    def _make_next(
        self, blocks: tuple[tuple[Todo, ...], ...], size: int, tally: Mapping[str, int], index: _Index
    ) -> "Rows":
        new = object.__new__(Rows)
        new.blocks, new.size, new.tally, new.lookup = blocks, size, tally, index
        return new

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Todo]:
        return chain.from_iterable(self.blocks)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, int) and 0 <= place < self.size:
            return self.blocks[place // BLOCK_SIZE][place % BLOCK_SIZE]
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))

    def find(self, key: int | str) -> Todo | None:
        """Return the item with this id, or None; 1 and "1" are the same."""
        place = self.lookup.by_id.get(str(key), self.size)
        # a longer board may have indexed items beyond these
        return self.blocks[place // BLOCK_SIZE][place % BLOCK_SIZE] if place < self.size else None

    def locate(self, key: int | str) -> int | None:
        """Return the place of the item with this id, or None; 1 and "1" are the same."""
        place = self.lookup.by_id.get(str(key), self.size)
        return place if place < self.size else None

    def find_open_duplicate(self, content: str) -> Todo | None:
        """Return an open item with this trimmed content, if one of the last 32 with that content is open."""
        index = self.lookup
        for new, todo in enumerate(islice(self, index.indexed, None), index.indexed):
            index.by_content.setdefault(todo["content"].strip(), []).append(new)
        index.indexed = max(index.indexed, self.size)
        for place in index.by_content.get(content, ())[-BLOCK_SIZE:]:
            if place < self.size and is_open(self[place]):
                found: Todo = self[place]
                return found
        return None

    def with_item(self, todo: Todo) -> "Rows":
        """Return rows in which this item replaces the one with its id."""
        place = self.locate(todo["id"])
        if place is None:
            return self
        at, within = place // BLOCK_SIZE, place % BLOCK_SIZE
        block, tally, status = self.blocks[at], self.tally, todo["status"]
        before = block[within]["status"]
        if status != before:
            tally = {**tally, before: tally[before] - 1, status: tally.get(status, 0) + 1}
        blocks = (*self.blocks[:at], (*block[:within], todo, *block[within + 1 :]), *self.blocks[at + 1 :])
        return self._make_next(blocks, self.size, tally, self.lookup)

    def with_appended(self, items: Sequence[Todo]) -> "Rows":
        """Return rows with these items added at the end."""
        *full, last = self.blocks or ((),)
        index = self.lookup
        if len(index.by_id) != self.size:  # another board was extended from here, so the index has its items
            index = _Index(self)
        for place, todo in enumerate(items, self.size):
            index.by_id[str(todo["id"])] = place
        tally = Counter(self.tally) + Counter(tally_statuses(items))
        blocks = (*full, *_split_blocks((*last, *items)))
        return self._make_next(blocks, self.size + len(items), {**self.tally, **tally}, index)


def _split_blocks(items: tuple[Todo, ...]) -> tuple[tuple[Todo, ...], ...]:
    return tuple([items[at : at + BLOCK_SIZE] for at in range(0, len(items), BLOCK_SIZE)])


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

    The boards of a call share the counts of `refusals`, which grow as the verifier refuses.
    """

    todos: Sequence[Todo] = ()
    goal: str = ""
    next_id: int = 1
    refusals: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.todos, Rows):
            object.__setattr__(self, "todos", Rows(self.todos))

    @property
    def rows(self) -> Rows:
        """The items with their index."""
        return self.todos  # type: ignore[return-value]  # made so above

    def find(self, key: int | str) -> Todo | None:
        """Return the item with this id; 1 and "1" are the same."""
        return self.todos.find(key)  # type: ignore[attr-defined,no-any-return]

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
) -> Generator[Question, str | None, tuple[Todo, str | None]]:
    """Ask once whether an item may be completed.

    Returns the item to store, and the reason if the verifier refused, which the board counts. A refused item
    is stored as `fallback`, and at its third refusal in a thread as blocked.
    """
    key = str(todo["id"])
    if (call, key) not in verdicts:
        verdicts[call, key] = yield Question(todo)
    why = verdicts[call, key]
    if why is None:
        return todo, None
    count = board.refusals[key] = board.refusals.get(key, 0) + 1
    return (with_status(todo, "blocked", why) if count >= MAX_REFUSALS else fallback), why


def prune_refusals(board: Board) -> dict[str, int]:
    """Return the counts of the items in the list, and of the last ones that left it."""
    listed = {str(todo["id"]) for todo in board.todos}
    gone = [key for key in board.refusals if key not in listed]
    counts = dict(board.refusals)
    for key in gone[:-KEPT_REFUSALS]:
        del counts[key]
    return counts
