"""An event that waits, and how a row holds it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from wakeloop.loop.inbox import WakeEvent, find_event_fault
from wakeloop.text.characters import shorten


@dataclass(frozen=True)
class StoredEvent:
    """An event that waits, and its number in the store's order.

    Beside it the run that has taken it, if one has, and why it was given up, if it was.
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
    """Return an event as it is stored."""
    return json.dumps(event, ensure_ascii=False)


def load_event(text: str, key: str) -> WakeEvent | None:
    """Return the event of this id that a row holds; None where it is damaged."""
    event = parse_json(text)
    whole = isinstance(event, dict) and event.get("id") == key and find_event_fault(event) is None
    return cast("WakeEvent", event) if whole else None


def parse_json(text: str) -> Any:
    """Return what a row holds as JSON; None where it is damaged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def unreadable_event_error(key: str) -> str:
    """Say that an event is damaged."""
    return (
        f"The event {shorten(repr(key))} cannot be read: it waits until its row is mended, or is cancelled."
    )
