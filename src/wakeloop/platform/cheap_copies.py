"""Channels that a fork copies at the cost of a pointer.

LangGraph copies every declared channel at each conditional edge, two a round. Its own run their constructor
for that (2.1 and 0.9 µs), and `DeltaChannel` copies the value, which our reducers never change in place.
A copy here takes over each slot that the class is known to have (0.2 µs); where a release of LangGraph has
others, its own `copy` stays.
"""

from collections.abc import Sequence
from typing import Any, Self

from langgraph.channels import BinaryOperatorAggregate, DeltaChannel, LastValue


def has_slots(kind: type, *known: str) -> bool:
    """Tell whether the slots of a class are these."""
    return {name for base in kind.__mro__ for name in getattr(base, "__slots__", ())} == set(known)


class CheapDeltaChannel(DeltaChannel[Any]):
    """A `DeltaChannel` whose reducer returns a new value: a copy of the channel may share the old one."""

    __slots__ = ()

    if has_slots(DeltaChannel, "key", "typ", "value", "reducer", "snapshot_frequency"):

        def copy(self) -> Self:
            """Return a channel with the same value."""
            new = object.__new__(type(self))
            new.key, new.typ, new.value = self.key, self.typ, self.value
            new.reducer, new.snapshot_frequency = self.reducer, self.snapshot_frequency
            return new


class CheapReducerChannel(BinaryOperatorAggregate[Any]):
    """A value with a reducer of two arguments, which returns a new one."""

    __slots__ = ()

    if has_slots(BinaryOperatorAggregate, "key", "typ", "value", "operator"):

        def copy(self) -> Self:
            """Return a channel with the same value."""
            new = object.__new__(type(self))
            new.key, new.typ, new.value, new.operator = self.key, self.typ, self.value, self.operator
            return new


class NewestChannel(LastValue[Any]):
    """The value that was written last, also where two agents of one superstep write."""

    __slots__ = ()

    def merge_values(self, old: Any, values: Sequence[Any]) -> Any:  # noqa: ARG002 - for a subclass
        """Return what is kept of the values of one superstep; `old` is None before the first."""
        return values[-1]

    def update(self, values: Sequence[Any]) -> bool:
        """Take the values in the order of the tasks."""
        old = self.value if self.is_available() else None
        return super().update([self.merge_values(old, values)] if values else [])
