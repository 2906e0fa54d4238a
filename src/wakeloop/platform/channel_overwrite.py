"""Overwrites a channel's value, past its reducer."""

from typing import Any

from langgraph.channels import BinaryOperatorAggregate, DeltaChannel
from langgraph.types import Overwrite


def overwrite_value(channel: object, value: Any) -> Any:
    """Return what to write to a channel so that it has this value, whatever its reducer does."""
    return Overwrite(value) if isinstance(channel, BinaryOperatorAggregate | DeltaChannel) else value
