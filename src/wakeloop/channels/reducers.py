"""The reducers of goal, settings and entries."""

from collections.abc import Mapping
from typing import Any

from wakeloop.text.characters import shorten, storable_text


class Goal(str):
    """What the list is for, and what it was before this input."""

    __slots__ = ("before",)
    before: str


def merge_goal(old: str, new: str | None) -> str:
    """Keep the newest goal, and beside it the one that this run found."""
    if new is None:
        return old
    goal = Goal(storable_text(new))
    goal.before = getattr(old, "before", str(old))
    return goal


class Overrides(dict[str, Any]):
    """A thread's settings, what they were before this input, and what is wrong with it."""

    before: Mapping[str, Any] | None = None
    fault: str | None = None


def merge_settings(old: dict[str, Any], new: Any) -> dict[str, Any]:
    """Replace a thread's settings; whether they are right is for `activate` to say."""
    if new is None:
        return old
    settings = Overrides(new) if isinstance(new, Mapping) else Overrides()
    if not isinstance(new, Mapping):
        settings.fault = f"todo_settings must be a mapping of settings to values, got {shorten(repr(new))}"
    settings.before = getattr(old, "before", None) or dict(old)
    return settings


def merge_entries(old: list[Any], new: Any) -> list[Any]:
    """Add entries, or take them away by id: the reducer of `owed_replies` and `waiting_on`.

    A list adds what is not there yet; `{"drop": […]}` removes entries, or by an id alone all that have it;
    `{"clear": True}` empties. An entry is a dict with an `id`, or plain text that is its own id; those of two
    senders may have one id.
    """
    if isinstance(new, dict):
        if new.get("clear"):
            return []
        gone = {_entry_key(entry) for entry in new.get("drop", ())}
        return [entry for entry in old if not gone & {_entry_key(entry), (_entry_key(entry)[0], None)}]
    entries: dict[Any, Any] = {}
    for entry in (*old, *(new or ())):
        entries.setdefault(_entry_key(entry), entry)
    return list(entries.values())


def _entry_key(entry: Any) -> tuple[Any, Any]:
    return (entry.get("id"), entry.get("sender")) if isinstance(entry, dict) else (entry, None)
