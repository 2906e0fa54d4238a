"""Puts a value in a channel's place, past its reducer."""

from typing import Any

from langgraph.channels import BinaryOperatorAggregate, DeltaChannel
from langgraph.types import Overwrite


def overwrite_value(channel: object, value: Any) -> Any:
    """Return what is written to a channel so that it holds this value, whatever its reducer would make."""
    return Overwrite(value) if isinstance(channel, BinaryOperatorAggregate | DeltaChannel) else value
