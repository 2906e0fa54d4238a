"""Operations on the list, and their outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from wakeloop.todos.items import Status, Todo
from wakeloop.todos.rows import Rows


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
