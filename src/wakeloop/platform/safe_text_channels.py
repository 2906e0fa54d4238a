"""Channels whose strings every saver can store."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from langgraph.channels import BinaryOperatorAggregate, LastValue

from wakeloop.text.characters import storable_text


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
