"""The reducers of goal, settings, entries; and all writes."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any

from wakeloop.channels.conversation import merge_messages
from wakeloop.channels.todo_list import merge_todos
from wakeloop.text.characters import shorten, storable_text


class Goal(str):
    """The goal of the list. `before` is the goal before this input."""

    __slots__ = ("before",)
    before: str


def merge_goal(old: str, new: str | None) -> str:
    """Keep the newest goal, and remember the one before this input."""
    if new is None:
        return old
    goal = Goal(storable_text(new))
    goal.before = getattr(old, "before", str(old))
    return goal


class Overrides(dict[str, Any]):
    """A thread's settings. `before` has those before this input, `fault` says why the input is wrong."""

    before: Mapping[str, Any] | None = None
    fault: str | None = None


def merge_settings(old: dict[str, Any], new: Any) -> dict[str, Any]:
    """Replace a thread's settings."""
    # They are checked by `activate`: a reducer that raises would make the thread unreadable.
    if new is None:
        return old
    if isinstance(new, Mapping):
        settings = Overrides(new)
    else:
        settings = Overrides()
        settings.fault = f"todo_settings must be a mapping of settings to values, got {shorten(repr(new))}"
    settings.before = getattr(old, "before", None) or dict(old)
    return settings


def merge_entries(old: list[Any], new: Any) -> list[Any]:
    """Add entries, or remove them by id: the reducer of `owed_replies` and `waiting_on`.

    A list adds entries that are new. `{"drop": […]}` removes entries; an id in it removes all entries with
    that id; `{"drop": […], "add": […]}` then adds others. `{"clear": True}` removes all. An entry is a dict
    with an `id`, or a string that is its own id.
    Two senders may use the same id.
    """
    if isinstance(new, dict):
        if new.get("clear"):
            return []
        dropped = set(map(_entry_key, new.get("drop", ())))
        kept = []
        for entry in old:
            entry_id, sender = _entry_key(entry)
            if dropped.isdisjoint(((entry_id, sender), (entry_id, None))):
                kept.append(entry)
        return merge_entries(kept, new["add"]) if "add" in new else kept
    entries: dict[Any, Any] = {}
    for entry in (*old, *(new or ())):
        entries.setdefault(_entry_key(entry), entry)
    return list(entries.values())


def _entry_key(entry: Any) -> tuple[Any, Any]:
    if isinstance(entry, dict):
        return entry.get("id"), entry.get("sender")
    return entry, None


BATCH_REDUCERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"messages": merge_messages, "todos": merge_todos}
)
"""Reducers by channel that take all writes of a superstep."""
SINGLE_REDUCERS: Mapping[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = MappingProxyType(
    {
        "todo_goal": (str, merge_goal),
        "todo_settings": (dict, merge_settings),
        **dict.fromkeys(
            ("todo_handoff", "owed_replies", "waiting_on", "todo_subagents"), (list, merge_entries)
        ),
    }
)
"""By channel: a factory of its first value, and the reducer that takes one write at a time."""


def apply_writes(channel: str, value: Any, writes: Sequence[Any]) -> Any:
    """Return the value of a channel after some writes. None means that it has no value yet.

    An `Overwrite` replaces the value. A channel without a reducer keeps the last write.
    """
    # Reading a thread shall not import LangGraph. Until its types are imported, no write is an `Overwrite`.
    types = sys.modules.get("langgraph.types")
    for place, write in enumerate(writes):
        if types is not None and isinstance(write, types.Overwrite):
            return apply_writes(channel, write.value, writes[place + 1 :])
    if channel in BATCH_REDUCERS:
        return BATCH_REDUCERS[channel]([] if value is None else value, writes)
    if channel in SINGLE_REDUCERS:
        make_first, merge = SINGLE_REDUCERS[channel]
        return reduce(merge, writes, make_first() if value is None else value)
    return writes[-1] if writes else value
