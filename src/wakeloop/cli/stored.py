"""A thread read from its rows, without a graph."""

import sqlite3
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, PendingWrite

from wakeloop.channels.conversation import merge_messages
from wakeloop.channels.reducers import merge_entries, merge_goal, merge_settings
from wakeloop.channels.todo_list import merge_todos
from wakeloop.cli.failures import CommandError
from wakeloop.thread.held import Held
from wakeloop.thread.standing import session_of

INPUT = "00000000-0000-0000-0000-000000000000"  # whose writes are no task's
QUESTION = "__interrupt__"
OF_A_TASK = frozenset((QUESTION, "__resume__", "__error__", "__error_source_node__"))  # no channels
SENT = "__pregel_tasks"  # tasks that wait
TRIGGERS = ("branch:to:", "__start__")  # a channel that holds something has a task that waits
CHANGES: Mapping[str, Callable[..., Any]] = {"messages": merge_messages, "todos": merge_todos}
FOLDED: Mapping[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "todo_goal": ("", merge_goal),
    "todo_settings": ({}, merge_settings),
    **dict.fromkeys(("todo_handoff", "owed_replies", "waiting_on", "todo_subagents"), ([], merge_entries)),
}


@dataclass(frozen=True)
class Stored(Held):
    """A thread as its newest rows have it; `interrupts` are the questions that wait."""

    interrupts: Sequence[Any] = ()
    created_at: str | None = None


def stored(saver: BaseCheckpointSaver[Any] | None, thread: str) -> Stored:
    """How a thread is stored. Raises `CommandError` where its rows cannot be read.

    It is what the graph's own `get_state` tells, at a third of the time: importing a graph takes longer than
    all else that is done to show a thread.
    """
    try:
        found = saver.get_tuple({"configurable": {"thread_id": thread}}) if saver else None
        view = Stored({}) if found is None or saver is None else _read(saver, found)
        session_of(view)  # it looks at what the channels hold
    except sqlite3.Error:
        raise
    except Exception as error:
        raise CommandError(
            f"The thread {thread!r} cannot be read: what is stored of it is damaged."
        ) from error
    return view


def _read(saver: BaseCheckpointSaver[Any], found: CheckpointTuple) -> Stored:
    kept = found.checkpoint["channel_values"]
    midway = bool(kept.get(SENT)) or any(channel.startswith(TRIGGERS) for channel in kept)
    writes = found.pending_writes if midway and found.pending_writes else []  # else an edit broke off
    done = {task for task, channel, _ in writes if task != INPUT and channel not in OF_A_TASK}
    asked = [
        one
        for task, channel, value in writes
        if channel == QUESTION and task not in done
        for one in (value if isinstance(value, list | tuple) else [value])
    ]
    values = _values(saver, found, [write for write in writes if write[1] not in OF_A_TASK])
    on = getattr(asked[0], "value", None) if asked else None
    approval = isinstance(on, Mapping) and on.get("on") == "approval"
    return Stored(
        values,
        parked=bool(asked),
        midway=midway,
        on="approval" if approval else "human",
        interrupts=tuple(asked),
        created_at=found.checkpoint["ts"],
    )


def _values(
    saver: BaseCheckpointSaver[Any], found: CheckpointTuple, writes: Iterable[PendingWrite]
) -> dict[str, Any]:
    """The channels: as they are stored, rebuilt from changes, and with what a task has written since."""
    kept = found.checkpoint["channel_values"]
    values = {key: value for key, value in kept.items() if not key.startswith((*TRIGGERS, "__"))}
    there = [key for key in CHANGES if key in found.checkpoint["channel_versions"] and key not in kept]
    past = saver.get_delta_channel_history(config=found.config, channels=there)
    for key in CHANGES:
        seed = past[key].get("seed", []) if key in past else kept.get(key, [])
        changes = [value for _, _, value in past[key]["writes"]] if key in past else []
        values[key] = changed(key, getattr(seed, "value", seed) or [], changes)
    for key, (nothing, _) in FOLDED.items():
        values.setdefault(key, nothing)
    fresh: dict[str, list[Any]] = {}
    for _, channel, value in writes:
        if not channel.startswith((*TRIGGERS, "__")):
            fresh.setdefault(channel, []).append(value)
    return values | {key: changed(key, values.get(key), told) for key, told in fresh.items()}


def changed(key: str, value: Any, writes: Sequence[Any]) -> Any:
    """A channel after some writes, as its own reducer has it; what is put in its place takes its place."""
    types = sys.modules.get("langgraph.types")  # which reading such a write has imported
    for place, write in enumerate(writes):
        if types is not None and isinstance(write, types.Overwrite):
            return changed(key, write.value, writes[place + 1 :])
    if key in CHANGES:
        return CHANGES[key](value, writes)
    for write in writes:
        value = FOLDED[key][1](value, write) if key in FOLDED else write
    return value
