"""Events as rows of a database store them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from wakeloop.loop.inbox import WakeEvent, find_event_fault
from wakeloop.text.characters import shorten


@dataclass(frozen=True)
class StoredEvent:
    """An event that waits in a store.

    Attributes:
        event: The event.
        run: The run that has taken it; None if none has.
        number: Its number in the store's order.
        error: Why a run gave it back; None if none has.
    """

    event: WakeEvent
    run: str | None
    number: int
    error: str | None = None

    @property
    def id(self) -> str:
        """The event's id."""
        return self.event["id"]


def dump_event(event: Mapping[str, Any]) -> str:
    """Return an event as JSON for a row."""
    return json.dumps(event, ensure_ascii=False)


def load_event(text: str, key: str) -> WakeEvent | None:
    """Read the event with this id from a row; None if the row is damaged."""
    event = parse_json(text)
    if not isinstance(event, dict) or event.get("id") != key or find_event_fault(event) is not None:
        return None
    return cast("WakeEvent", event)


def parse_json(text: str) -> Any:
    """Parse the JSON of a row; None if it is damaged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_text(value: object) -> str:
    """Return a column of text; a damaged SQLite row may hold anything there."""
    return value if isinstance(value, str) else ascii(value)


def unreadable_event_error(key: str) -> str:
    """Return the sentence for an event whose row is damaged."""
    return (
        f"Event {shorten(repr(key))} cannot be read. It waits until its row is repaired or it is cancelled."
    )
