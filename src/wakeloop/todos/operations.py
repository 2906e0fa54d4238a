"""What a dialect makes of calls, and what becomes of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from wakeloop.todos.items import Status, Todo
from wakeloop.todos.rows import Rows


@dataclass(frozen=True, slots=True)
class Add:
    """Append items, all pending."""

    contents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Give one item another status; its id may stand `as_shown` in a list, with a sign around it."""

    id: int | str
    status: Status
    reason: str | None = None
    evidence: str | None = None
    as_shown: bool = False


@dataclass(frozen=True, slots=True)
class ChangeSeveral:
    """Change several items, all of them or none."""

    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """One item of a list that replaces the old one; without an id it is matched by its content."""

    content: str
    status: Status
    id: int | str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Replace:
    """Put a new list in the place of the old one; one that is `refused` already still counts as a write."""

    items: tuple[Draft, ...]
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """Empty the list, set the goal, and start numbering at 1 again."""

    goal: str = ""


@dataclass(frozen=True, slots=True)
class Show:
    """Read the list; writes nothing."""


Operation = Add | Change | ChangeSeveral | Replace | Reset | Show


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits that a list is held to: `max_items` None is no limit.

    With `repeats` an appended item that equals an open one of the list is not stored again (`name`).
    """

    max_items: int | None = None
    in_progress: Literal["any", "at_most_one", "exactly_one"] = "any"
    one_write: bool = False
    repeats: Literal["store", "name"] = "store"


@dataclass(frozen=True, slots=True)
class Board:
    """All that the rules need to know of a thread: the list, its goal, the next number, the refusals."""

    todos: Sequence[Todo] = ()
    goal: str = ""
    next_id: int = 1
    refusals: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.todos, Rows):
            object.__setattr__(self, "todos", Rows(self.todos))

    @property
    def rows(self) -> Rows:
        """The items as they are kept: found by id, counted by status."""
        return cast(Rows, self.todos)

    def find(self, key: int | str) -> Todo | None:
        """Return the item with this id; 1 and "1" are the same."""
        place = self.rows.place_of(key)
        return None if place is None else cast(Todo, self.rows[place])

    def with_item(self, todo: Todo) -> "Board":
        """Return a board on which this item stands in the place of the one with its id."""
        return replace(self, todos=self.rows.with_item(todo))


@dataclass(frozen=True, slots=True)
class Question:
    """The verifier is asked whether this item may become completed."""

    todo: Todo


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one call: an error, or what to say of it; `board` is how it left the list.

    `touched` are the ids that it wrote, `dropped` the open items that a whole-list write left out, `denied`
    the verifier's reasons by id, `named` the open items that an appended one repeats; `begun` tells that the
    reply made other calls too.
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
        """Whether it is a write that was stored, at least in part."""
        if self.error is not None or self.operation is None or isinstance(self.operation, Show):
            return False
        return not self.denied or len(self.touched) > len(self.denied)
