"""Recognizes events of this package in a stream."""

from functools import cache
from typing import Annotated, Any, TypeGuard

from pydantic import Discriminator, TypeAdapter, ValidationError

from wakeloop.stream import Event


def is_wakeloop_event(data: object) -> TypeGuard[Event]:
    """Tell whether streamed data is an event of this package, and not something that a tool streamed."""
    try:
        _make_reader().validate_python(data, strict=True)
    except ValidationError:
        return False
    return True


@cache
def _make_reader() -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[Event, Discriminator("type")])
