"""Channels whose value, where it is a text, any saver holds."""

from collections.abc import Iterable, Sequence
from typing import Any

from langgraph.channels import BinaryOperatorAggregate, LastValue

from wakeloop.text.characters import storable_text


class SafeTextChannel(LastValue[Any]):
    """A plain channel; Postgres keeps a text that is its value as a text, and refuses a NUL in one."""

    __slots__ = ()

    def update(self, values: Sequence[Any]) -> bool:
        """Take the value; a text without what no saver holds."""
        return super().update([storable_text(value) if isinstance(value, str) else value for value in values])


class SafeTextReducerChannel(BinaryOperatorAggregate[Any]):
    """A channel with a reducer of the caller's; the same of what it makes."""

    __slots__ = ()

    def update(self, values: Sequence[Any]) -> bool:
        """Fold the values in."""
        changed = super().update(values)
        if isinstance(self.value, str):
            self.value = storable_text(self.value)
        return changed


def use_safe_text_channels(channels: Iterable[object]) -> None:
    """Let the plain channels of a graph, a caller's own among them, keep texts that any saver holds.

    A write is stored before the value that it makes. Were the value refused then, the thread would raise on
    every later attempt.
    """
    for channel in channels:
        if type(channel) is LastValue:
            channel.__class__ = SafeTextChannel
        elif type(channel) is BinaryOperatorAggregate:
            channel.__class__ = SafeTextReducerChannel
