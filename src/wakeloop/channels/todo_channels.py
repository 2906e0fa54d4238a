"""The channels of list and session: no write is lost unseen."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from langgraph.types import Overwrite

from wakeloop.channels.todo_list import Todos, load_todos
from wakeloop.errors import DamagedError
from wakeloop.platform.channels import (
    DELTA_IS_KNOWN,
    CheapDeltaChannel,
    CheapReducerChannel,
    NewestChannel,
)
from wakeloop.text.characters import shorten

NEVER = 2**53  # updates


def is_untaken(value: object) -> bool:
    """Return whether somebody wrote the list and no node has taken it over yet."""
    return isinstance(value, Todos) and value.before is not None


def read_overwrites(values: Sequence[Any]) -> list[Any]:
    """Return writes to the list; one that overwrites the channel is a list like any other."""
    return [value.value if isinstance(value, Overwrite) else value for value in values]


def load_value(value: Any) -> Any:
    """Return a stored list; a damaged one is found when a node reads it."""
    if not value:
        return Todos() if isinstance(value, list) else value
    try:
        todos = load_todos(value)
    except DamagedError:
        return value
    todos.loaded = not isinstance(value, dict)
    return todos


class TodosChannel(CheapDeltaChannel):
    """The list as changes. A snapshot would forget who wrote it last, so one waits until a node knows."""

    __slots__ = ("frequency",)
    frequency: int

    @property
    def snapshot_frequency(self) -> int:
        """After how many updates a snapshot is stored."""
        return NEVER if is_untaken(self.value) else self.frequency

    @snapshot_frequency.setter
    def snapshot_frequency(self, frequency: int) -> None:
        self.frequency = frequency

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TodosChannel) and self.frequency == other.frequency

    __hash__ = None  # type: ignore[assignment]

    if DELTA_IS_KNOWN:

        def copy(self) -> Self:
            """Return a channel that shares the value."""
            new = object.__new__(type(self))
            new.key, new.typ, new.value = self.key, self.typ, self.value
            new.reducer, new.frequency = self.reducer, self.frequency
            return new

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return a channel with a stored value."""
        new = super().from_checkpoint(checkpoint)
        new.frequency = self.frequency
        new.value = load_value(new.value)
        return new

    def update(self, values: Sequence[Any]) -> bool:
        """Apply the writes of a superstep."""
        return bool(values) and super().update(read_overwrites(values))


class PlainTodosChannel(CheapReducerChannel):
    """The list as a whole, and until a node has taken it over, also the list before."""

    __slots__ = ()

    def __init__(self, typ: Any, operator: Any) -> None:
        super().__init__(typ, operator)
        self.value = Todos()

    def get(self) -> Any:
        """Return the list, which says that it is stored as a whole."""
        value = super().get()
        if isinstance(value, Todos):
            value.is_plain = True
        return value

    def update(self, values: Sequence[Any]) -> bool:
        """Apply the writes of a superstep."""
        return bool(values) and super().update(read_overwrites(values))

    def checkpoint(self) -> Any:
        """Return the stored value."""
        value: Any = self.value
        if not is_untaken(value):
            return value
        return {"todos": list(value), "before": list(value.before), "by": value.by, "fault": value.fault}

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return a channel with a stored value; a damaged one is found when a node reads it."""
        new = super().from_checkpoint(checkpoint)
        new.value = load_value(new.value)
        return new


class SessionUpdate(dict[str, Any]):
    """A session that was written in this run. `before` is the one before it, `fault` says what is wrong."""

    before: Mapping[str, Any]
    fault: str | None = None


class SessionChannel(NewestChannel):
    """The newest session. Of several in one superstep: the last one, with the newest list number."""

    __slots__ = ()

    def merge_values(self, old: Any, values: Sequence[Any]) -> Any:
        """Return the session to keep of those written in one superstep."""
        sessions = [value for value in values if isinstance(value, Mapping)]
        misfits = [value for value in values if value is not None and not isinstance(value, Mapping)]
        newest = sessions[-1] if sessions else old
        session = SessionUpdate(newest or {})
        session.before = getattr(old, "before", old or {})
        if misfits:
            session.fault = f"todo_session must be a mapping, got {shorten(repr(misfits[0]))}"
        numbers = [one["list"] for one in sessions if is_list_number(one.get("list"))]
        if len(sessions) > 1 and numbers:
            session["list"] = max(numbers)
        return session


def is_list_number(value: object) -> bool:
    """Return whether a value can be the number of a list."""
    return type(value) is int and 0 <= value < 2**53


def read_list_number(session: Any, written: int) -> tuple[int | None, str | None]:
    """Return the number of the list that an input is based on, or None, and what is wrong with it, or None.

    `written` is the thread's own number. A session from the middle of a run has no number. It is older than
    all that the thread has written, so its number is 0.
    """
    if not isinstance(session, SessionUpdate) or session.fault:
        return None, getattr(session, "fault", None)
    number = session.get("list")
    if number is None:
        if session.get("state") == "running" and written:
            return 0, None
        return None, None
    if not is_list_number(number):
        return None, f"the list number of todo_session must be a whole number, got {shorten(repr(number))}"
    return number, None
