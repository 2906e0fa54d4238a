"""Recognizes events of this package in a stream."""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeGuard, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from wakeloop.stream import Event

_BY_TYPE: Mapping[str, type] = {get_args(get_type_hints(kind)["type"])[0]: kind for kind in get_args(Event)}


def is_wakeloop_event(data: object) -> TypeGuard[Event]:
    """Tell whether streamed data is an event of this package, and not something that a tool streamed."""
    kind = data.get("type") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in _BY_TYPE:
        return False
    try:
        _adapter(kind).validate_python(data, strict=True)
    except ValidationError:
        return False
    return True


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_BY_TYPE[kind])
