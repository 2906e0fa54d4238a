"""A thread's past: its checkpoints, each read once."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph.state import CompiledStateGraph

from wakeloop.errors import ArgumentError, DamagedError

Graph = CompiledStateGraph[Any, Any, Any, Any]
LAST_ID = str(UUID(int=2**128 - 1))
MAX_DAMAGED = 32  # places of a thread with rows that cannot be read: each is looked for
MIN_ID_STEP = 2**64  # what ids of two moments differ by, at least: the low half of one is no time
SNAPSHOT_CHANNELS = frozenset(("messages", "todos"))  # where these are stored, they are not changes


@dataclass(frozen=True)
class Step:
    """One superstep: the values that it found stored, and what was written in it.

    `began` and `ended` are seconds since 1970, those of the checkpoints around it; the newest has not ended.
    `source` is what made the checkpoint that it began with, `into` the one that it led to: `input`, `loop`,
    `update` or `fork`.
    """

    began: float
    ended: float | None
    source: str
    into: str
    stored: Mapping[str, Any]
    writes: Sequence[tuple[str, Any]]
    behind_gap: bool = False


@dataclass(frozen=True)
class NestedGraph:
    """The steps of a graph inside of the thread, such as a subagent: their place, and when they were."""

    name: str
    began: float
    ended: float
    steps: int


@dataclass(frozen=True)
class ThreadHistory:
    """A thread from its first checkpoint to its newest.

    `beside` counts those on other branches; `damaged` says that some could not be read.
    """

    thread: str
    steps: Sequence[Step]
    nested: Sequence[NestedGraph] = ()
    beside: int = 0
    damaged: bool = False


def read_history(graph: Graph, config: RunnableConfig) -> ThreadHistory:
    """Read the checkpoints of a thread with one listing of its saver, through which the past is not replayed.

    A state rebuilt at each checkpoint, as `get_state_history` does it, takes time with the square of the
    conversation. Rows that cannot be read are left out; behind the 32nd place where some are, all the older.

    Raises:
        ArgumentError: The graph keeps no threads, or the config names none that is there.
        DamagedError: None of the rows can be read.
    """
    saver, place = graph.checkpointer, config.get("configurable") or {}
    if not isinstance(saver, BaseCheckpointSaver):
        raise ArgumentError("This graph keeps no threads: pass one that was made with a checkpointer.")
    if "thread_id" not in place:
        raise ArgumentError('The config names no thread: pass {"configurable": {"thread_id": …}}.')
    return read_history_at(saver, place)


def read_history_at(saver: BaseCheckpointSaver[Any], place: Mapping[str, Any]) -> ThreadHistory:
    """Read the checkpoints of the thread at a place; the same, and raises the same."""
    thread, ours = str(place["thread_id"]), str(place.get("checkpoint_ns", ""))
    rows, damaged = _read_rows(saver, thread)
    mine = {_get_id(row): row for row in rows if _get_namespace(row) == ours}
    newest = place.get("checkpoint_id") or max(mine, default="")
    if damaged and not mine:
        raise DamagedError("nothing of its rows can be read")
    if newest not in mine:
        raise ArgumentError(f"There is no thread {thread!r}, or not that checkpoint of it.")
    path = _follow_parents(mine, newest)
    return ThreadHistory(thread, _build_steps(path), _find_nested(rows, ours), len(mine) - len(path), damaged)


def _read_rows(saver: BaseCheckpointSaver[Any], thread: str) -> tuple[list[CheckpointTuple], bool]:
    """Return the rows that can be read, of every namespace, and whether there are others.

    They are read at once; behind one that cannot be read, by one and more, since a saver may raise for all.
    """
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    rows: list[CheckpointTuple] = []
    before, many = LAST_ID, 0  # how many at once; 0 for all
    torn = 0
    fault: Exception | None = None
    while torn < MAX_DAMAGED:
        known = len(rows)
        try:
            for row in saver.list(
                config, before=_checkpoint_config(before) if fault else None, limit=many or None
            ):
                _check_row(row)
                rows.append(row)
                before = min(before, _get_id(row))
            if not many or len(rows) == known:
                break
            many *= 2
        except Exception as error:  # noqa: BLE001 - whatever a damaged row raises, the others are told
            fault, alone, many = error, many == 1, 1
            if alone:
                torn += 1
                if (before := _find_damaged_row(saver, config, before, rows) or "") == "":
                    break
    if fault is not None and not rows:
        raise DamagedError("nothing of its rows can be read") from fault
    return rows, fault is not None


def _check_row(row: CheckpointTuple) -> None:
    """Raise where a row is read, and is none."""
    _get_time(row), _get_source(row), row.checkpoint["channel_values"].keys()


def _find_damaged_row(
    saver: BaseCheckpointSaver[Any], config: RunnableConfig, before: str, rows: Sequence[CheckpointTuple]
) -> str | None:
    """Return an id right before the next row before an id, which cannot be read; None where none is found.

    No saver tells it. Ids are numbers, in the order of their rows: one before which a row can be read, or
    there is none, is looked for further and further back, and then the last one, to the moment. The row that
    was read last names its parent, which most often is the row.
    """

    def is_read(number: int) -> bool:
        try:
            for row in saver.list(config, before=_checkpoint_config(str(UUID(int=number))), limit=1):
                _check_row(row)
        except Exception:  # noqa: BLE001 - as above
            return False
        return True

    parent = rows[-1].parent_config if rows and _get_id(rows[-1]) == before else None
    try:
        above = UUID(before).int
        known = UUID(parent["configurable"]["checkpoint_id"]).int if parent else above
    except ValueError:  # ids of a caller's own
        return None
    below, step = above, max(above - known, MIN_ID_STEP)
    while not is_read(below := max(0, above - step)):
        if below == 0:
            return None
        step *= 2
    while above - below > MIN_ID_STEP:
        middle = (above + below) // 2
        above, below = (above, middle) if is_read(middle) else (middle, below)
    return str(UUID(int=below))


def _checkpoint_config(checkpoint: str) -> RunnableConfig:
    return {"configurable": {"checkpoint_id": checkpoint}}


def _follow_parents(rows: Mapping[str, CheckpointTuple], newest: str) -> list[tuple[CheckpointTuple, bool]]:
    """Follow the parents; a row whose parent is not there stands behind a gap. Oldest first."""
    ordered, path = sorted(rows), []
    here: str | None = newest
    while here is not None:
        row = rows[here]
        found = row.parent_config
        parent: str | None = found["configurable"].get("checkpoint_id") if found else None
        here = parent or None
        gap = here is not None and here not in rows
        path.append((row, gap))
        if here is not None and gap:
            place = bisect_left(ordered, here)
            here = ordered[place - 1] if place else None
    return path[::-1]


def _build_steps(path: Sequence[tuple[CheckpointTuple, bool]]) -> list[Step]:
    behind: list[CheckpointTuple | None] = [*(row for row, _ in path[1:]), None]
    return [
        Step(
            began=_get_time(row),
            ended=_get_time(after) if after else None,
            source=_get_source(row),
            into=_get_source(after) if after else "",
            stored=row.checkpoint["channel_values"],
            writes=_select_writes(row, after),
            behind_gap=gap,
        )
        for (row, gap), after in zip(path, behind, strict=True)
    ]


def _select_writes(row: CheckpointTuple, after: CheckpointTuple | None) -> list[tuple[str, Any]]:
    """What was written at a checkpoint on the way to the one behind it.

    Where a fork goes off, or an input came in the middle of a run, what is written there is of the branch
    that was left; the next row then has the channels whole. An edit may have one of them whole.
    """
    written = [(channel, value) for _, channel, value in row.pending_writes or ()]
    if after is not None:
        source, stored = _get_source(after), after.checkpoint["channel_values"]
        if source in ("input", "fork"):
            return []
        if source == "update" and not SNAPSHOT_CHANNELS.isdisjoint(stored):
            return [
                (channel, value)
                for channel, value in written
                if channel in SNAPSHOT_CHANNELS.difference(stored)
            ]
    return written


def _get_source(row: CheckpointTuple) -> str:
    return str(row.metadata.get("source", ""))


def _find_nested(rows: Sequence[CheckpointTuple], ours: str) -> list[NestedGraph]:
    """Return the graphs within, by their namespaces, in the order in which they began."""
    spans: dict[str, list[float]] = {}
    for row in rows:
        space = _get_namespace(row)
        if space != ours and space.startswith(ours):
            spans.setdefault(space, []).append(_get_time(row))
    found = [
        NestedGraph(space[len(ours) :].strip("|").partition(":")[0], min(times), max(times), len(times))
        for space, times in spans.items()
    ]
    return sorted(found, key=lambda one: one.began)


def _get_id(row: CheckpointTuple) -> str:
    return str(row.config["configurable"]["checkpoint_id"])


def _get_namespace(row: CheckpointTuple) -> str:
    return str(row.config["configurable"].get("checkpoint_ns", ""))


def _get_time(row: CheckpointTuple) -> float:
    return datetime.fromisoformat(row.checkpoint["ts"]).timestamp()
