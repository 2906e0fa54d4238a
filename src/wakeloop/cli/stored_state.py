"""A thread read from its rows, without a graph."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, PendingWrite

from wakeloop.channels.apply_writes import BATCH_REDUCERS, SINGLE_REDUCERS, apply_writes
from wakeloop.cli.failures import CommandError
from wakeloop.errors import DamagedError
from wakeloop.thread.thread_status import session_of
from wakeloop.thread.thread_views import INTERRUPT_KEY, ThreadView, find_interrupt_kind

INPUT_TASK = "00000000-0000-0000-0000-000000000000"  # whose writes are no task's
TASK_WRITES = frozenset((INTERRUPT_KEY, "__resume__", "__error__", "__error_source_node__"))  # no channels
PENDING_SENDS = "__pregel_tasks"  # tasks that wait
DAMAGED = {"state": "damaged", "reason": "damaged"}
TRIGGERS = ("branch:to:", "__start__")  # a channel that holds something has a task that waits


@dataclass(frozen=True)
class StoredState(ThreadView):
    """A thread as its newest rows have it; `interrupts` are the questions that wait."""

    interrupts: Sequence[Any] = ()
    created_at: str | None = None


def read_state(saver: BaseCheckpointSaver[Any] | None, thread: str, *, rest: bool = False) -> StoredState:
    """How a thread is stored. Raises `CommandError` where its rows cannot be read.

    For the `rest` that takes that none can be: its list and conversation are told as far as they are read.

    It is what the graph's own `get_state` tells, at a third of the time: importing a graph takes longer than
    all else that is done to show a thread.
    """
    try:
        found = saver.get_tuple({"configurable": {"thread_id": thread}}) if saver else None
        view = StoredState({}) if found is None or saver is None else _read_rows(saver, found)
        session_of(view)  # it looks at what the channels hold
    except sqlite3.Error:
        raise
    except Exception as error:
        if rest and saver is not None and (left := _read_remains(saver, thread)):
            return left
        raise CommandError(
            f"The thread {thread!r} cannot be read: what is stored of it is damaged."
        ) from error
    return view


def _read_remains(saver: BaseCheckpointSaver[Any], thread: str) -> StoredState | None:
    """Return what can be read of a damaged thread, if anything can."""
    from wakeloop.display.checkpoint_history import read_history_at
    from wakeloop.display.timeline_builder import recover_state

    try:
        past = read_history_at(saver, {"thread_id": thread})
    except DamagedError:
        return None
    changed = datetime.fromtimestamp(past.steps[-1].began, UTC).isoformat()
    return StoredState(recover_state(past) | {"todo_session": {**DAMAGED}}, created_at=changed)


def _read_rows(saver: BaseCheckpointSaver[Any], found: CheckpointTuple) -> StoredState:
    kept = found.checkpoint["channel_values"]
    midway = bool(kept.get(PENDING_SENDS)) or any(channel.startswith(TRIGGERS) for channel in kept)
    writes = found.pending_writes if midway and found.pending_writes else []  # else an edit broke off
    done = {task for task, channel, _ in writes if task != INPUT_TASK and channel not in TASK_WRITES}
    asked = [
        one
        for task, channel, value in writes
        if channel == INTERRUPT_KEY and task not in done
        for one in (value if isinstance(value, list | tuple) else [value])
    ]
    values = _channel_values(saver, found, [write for write in writes if write[1] not in TASK_WRITES])
    return StoredState(
        values,
        parked=bool(asked),
        mid_run=midway,
        waiting_on=find_interrupt_kind(asked),
        interrupts=tuple(asked),
        created_at=found.checkpoint["ts"],
    )


def _channel_values(
    saver: BaseCheckpointSaver[Any], found: CheckpointTuple, writes: Iterable[PendingWrite]
) -> dict[str, Any]:
    """The channels: as they are stored, rebuilt from changes, and with what a task has written since."""
    kept = found.checkpoint["channel_values"]
    values = {key: value for key, value in kept.items() if not key.startswith((*TRIGGERS, "__"))}
    there = [key for key in BATCH_REDUCERS if key in found.checkpoint["channel_versions"] and key not in kept]
    past = saver.get_delta_channel_history(config=found.config, channels=there)
    for key in BATCH_REDUCERS:
        seed = past[key].get("seed", []) if key in past else kept.get(key, [])
        changes = [value for _, _, value in past[key]["writes"]] if key in past else []
        values[key] = apply_writes(key, getattr(seed, "value", seed) or [], changes)
    for key, (first, _) in SINGLE_REDUCERS.items():
        values.setdefault(key, first())
    fresh: dict[str, list[Any]] = {}
    for _, channel, value in writes:
        if not channel.startswith((*TRIGGERS, "__")):
            fresh.setdefault(channel, []).append(value)
    return values | {key: apply_writes(key, values.get(key), told) for key, told in fresh.items()}
