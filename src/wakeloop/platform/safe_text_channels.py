"""Channels whose strings every saver can store."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from langgraph.channels import BinaryOperatorAggregate, LastValue

from wakeloop.text.characters import storable_text


class SafeTextChannel(LastValue[Any]):
    """A plain channel. Postgres stores a string value in a text column, which refuses NUL."""

    __slots__ = ()

    def update(self, values: Sequence[Any]) -> bool:
        """Take the value, without what savers cannot store."""
        changed = super().update(values)
        if changed and isinstance(self.value, str):
            self.value = storable_text(self.value)
        return changed


class SafeTextReducerChannel(BinaryOperatorAggregate[Any]):
    """A channel with the caller's reducer, whose result is made safe in the same way."""

    __slots__ = ()

    def update(self, values: Sequence[Any]) -> bool:
        """Apply the reducer."""
        changed = super().update(values)
        if changed and isinstance(self.value, str):
            self.value = storable_text(self.value)
        return changed


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
