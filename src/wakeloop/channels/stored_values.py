"""Checks of the stored values of channels."""

from collections.abc import Mapping
from typing import Any

from wakeloop.channels.todo_list import check_stored_todos
from wakeloop.errors import DamagedError
from wakeloop.text.characters import shorten


def check_channels(values: Mapping[str, Any]) -> None:
    """Refuse stored values of the wrong type. Raises `DamagedError`."""
    for name, kind in (
        ("todo_session", dict),
        ("todo_settings", dict),
        ("todo_goal", str),
        ("messages", list),
    ):
        value = values.get(name)
        if value is not None and not isinstance(value, kind):
            raise DamagedError(f"{name} must be a {kind.__name__}, got {shorten(repr(value))}")
    check_stored_todos(values.get("todos"))
