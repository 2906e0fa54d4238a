"""Channels that are cheap to copy, or safe to store.

LangGraph copies every declared channel at each conditional edge, twice a round. Its own channels run their
constructor for that (2.1 and 0.9 µs), and `DeltaChannel` copies the value, which our reducers never change in
place. These channels copy their slots instead (0.2 µs). If a release of LangGraph has other slots, its own
`copy` is used.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

from langgraph.channels import BinaryOperatorAggregate, DeltaChannel, LastValue
from langgraph.types import Overwrite

from wakeloop.text.characters import storable_text


def has_slots(kind: type, *known: str) -> bool:
    """Tell whether a class has exactly these slots."""
    return {name for base in kind.__mro__ for name in getattr(base, "__slots__", ())} == set(known)


DELTA_IS_KNOWN = has_slots(DeltaChannel, "key", "typ", "value", "reducer", "snapshot_frequency")


class CheapDeltaChannel(DeltaChannel[Any]):
    """A `DeltaChannel` whose reducer returns a new value, so that copies may share the old one."""

    __slots__ = ()

    if DELTA_IS_KNOWN:

        def copy(self) -> Self:
            """Return a channel that shares the value."""
            new = object.__new__(type(self))
            new.key, new.typ, new.value = self.key, self.typ, self.value
            new.reducer, new.snapshot_frequency = self.reducer, self.snapshot_frequency
            return new


class CheapReducerChannel(BinaryOperatorAggregate[Any]):
    """A value with a reducer of two arguments that returns a new value."""

    __slots__ = ()

    if has_slots(BinaryOperatorAggregate, "key", "typ", "value", "operator"):

        def copy(self) -> Self:
            """Return a channel that shares the value."""
            new = object.__new__(type(self))
            new.key, new.typ, new.value, new.operator = self.key, self.typ, self.value, self.operator
            return new


class NewestChannel(LastValue[Any]):
    """The value that was written last, also if two agents write in one superstep."""

    __slots__ = ()

    def merge_values(self, old: Any, values: Sequence[Any]) -> Any:  # noqa: ARG002 - for a subclass
        """Return the value to keep of those written in one superstep; `old` is None before the first."""
        return values[-1]

    def update(self, values: Sequence[Any]) -> bool:
        """Apply the values in the order of their tasks."""
        if not values:
            return False
        old = self.value if self.is_available() else None
        return super().update([self.merge_values(old, values)])


def overwrite_value(channel: object, value: Any) -> Any:
    """Return what to write to a channel so that it has this value, whatever its reducer does."""
    return Overwrite(value) if isinstance(channel, BinaryOperatorAggregate | DeltaChannel) else value


class _SafeText:
    """Postgres stores a string value of a channel in a text column, which refuses NUL."""

    __slots__ = ()

    def update(self: Any, values: Sequence[Any]) -> bool:
        """Take the values, and what savers cannot store out of a string."""
        changed: bool = super().update(values)  # type: ignore[misc]
        if changed and isinstance(self.value, str):
            self.value = storable_text(self.value)
        return changed


class SafeTextChannel(_SafeText, LastValue[Any]):  # noqa: D101
    __slots__ = ()


class SafeTextReducerChannel(_SafeText, BinaryOperatorAggregate[Any]):  # noqa: D101
    __slots__ = ()


def use_safe_text_channels(channels: Mapping[str, object], textless: Collection[str]) -> None:
    """Make the plain channels of a graph, including a caller's own, store strings that every saver accepts.

    A write is stored before its value. If the value were refused then, every later attempt would raise.
    Channels that are `textless` never hold a string. They stay as they are: each of them is updated four
    times a round.
    """
    for name, channel in channels.items():
        if name in textless:
            continue
        if type(channel) is LastValue:
            channel.__class__ = SafeTextChannel
        elif type(channel) is BinaryOperatorAggregate:
            channel.__class__ = SafeTextReducerChannel
