"""Checkpoint history: a thread's steps, each read once."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol

from wakeloop.checks.argument_values import check_graph
from wakeloop.errors import ArgumentError, DamagedError
from wakeloop.thread.edits import Graph

# Where these are stored, they are whole values and not changes.
SNAPSHOT_CHANNELS = frozenset(("messages", "todos"))


@dataclass(frozen=True)
class Step:
    """One superstep: the values stored at its start, and what was written in it.

    `began` and `ended` are the times of the checkpoints around it, in seconds since 1970; the newest step has
    not ended. `source` is what made its first checkpoint, `into` what made the next one: `input`, `loop`,
    `update` or `fork`. `after_gap` says that steps before it cannot be read.
    """

    began: float
    ended: float | None
    source: str
    into: str
    stored: Mapping[str, Any]
    writes: Sequence[tuple[str, Any]]
    after_gap: bool = False


@dataclass
class SubagentSpan:
    """When a subagent, or another nested graph, was at work."""

    name: str
    start: float
    end: float | None = None


@dataclass(frozen=True)
class ThreadHistory:
    """A thread from its first checkpoint to its newest; `damaged` says that some could not be read."""

    thread: str
    steps: Sequence[Step]
    nested: Sequence[SubagentSpan] = ()
    damaged: bool = False


def read_history(graph: Graph, config: RunnableConfig) -> ThreadHistory:
    """Read the checkpoints of a thread with one listing of its saver.

    `get_state_history` would rebuild the state at each checkpoint, which takes time quadratic in the length
    of the conversation. Rows that cannot be read are left out.

    Raises:
        ArgumentError: The graph keeps no threads, or the config does not name an existing one.
        DamagedError: None of the rows can be read.
    """
    check_graph(graph)
    saver, configurable = graph.checkpointer, config.get("configurable") or {}
    if not isinstance(saver, BaseCheckpointSaver):
        raise ArgumentError("This graph keeps no threads. Pass one that was compiled with a checkpointer.")
    if "thread_id" not in configurable:
        raise ArgumentError('The config names no thread. Pass {"configurable": {"thread_id": …}}.')
    return read_history_at(saver, configurable)


def read_history_at(saver: BaseCheckpointSaver[Any], configurable: Mapping[str, Any]) -> ThreadHistory:
    """Read the checkpoints of the thread that a `configurable` names; like `read_history`."""
    thread, namespace = str(configurable["thread_id"]), str(configurable.get("checkpoint_ns", ""))
    rows, damaged = _read_rows(saver, thread)
    mine = {_get_id(row): row for row in rows if _get_namespace(row) == namespace}
    newest = configurable.get("checkpoint_id") or max(mine, default="")
    if damaged and not mine:
        raise DamagedError("none of its rows can be read")
    if newest not in mine:
        raise ArgumentError(f"Thread {thread!r} does not exist, or it lacks this checkpoint.")
    path = _follow_parents(mine, newest)
    return ThreadHistory(thread, _build_steps(path), _find_nested(rows, namespace), damaged)


class Unreadable(dict[str, Any]):
    """Stands for a value that cannot be decoded. Savers may look for keys in it."""

    def __missing__(self, key: str) -> "Unreadable":
        return Unreadable()


class TolerantSerializer:
    """Reads damaged values as `Unreadable`: savers raise for a whole listing because of one."""

    def __init__(self, serializer: SerializerProtocol) -> None:
        self.serializer = serializer
        self.dumps_typed = serializer.dumps_typed

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return a stored value, or `Unreadable`."""
        try:
            return self.serializer.loads_typed(data)
        except Exception:  # noqa: BLE001 - a damaged value may raise anything
            return Unreadable()


def _read_rows(saver: BaseCheckpointSaver[Any], thread: str) -> tuple[list[CheckpointTuple], bool]:
    """Return the rows that can be read, of every namespace, and whether there are others.

    A row whose own columns are damaged ends the listing: only newer ones are returned then.
    """
    tolerant = copy(saver)
    tolerant.serde = TolerantSerializer(saver.serde)
    rows: list[CheckpointTuple] = []
    damaged = False
    try:
        for row in tolerant.list({"configurable": {"thread_id": thread}}):
            if _is_whole(row):
                rows.append(row)
            else:
                damaged = True
    except Exception:  # noqa: BLE001 - a damaged row may raise anything; the others are shown
        damaged = True
    return rows, damaged


def _is_whole(row: CheckpointTuple) -> bool:
    """Tell whether a row has what every row has, and all of its values can be read."""
    try:
        _get_time(row), _get_source(row), _get_parent(row)
        values = [*row.checkpoint["channel_values"].values()]
    except Exception:  # noqa: BLE001 - a damaged row may raise anything
        return False
    values += [value for *_, value in row.pending_writes or ()]
    return not any(isinstance(value, Unreadable) for value in values)


def _follow_parents(rows: Mapping[str, CheckpointTuple], newest: str) -> list[tuple[CheckpointTuple, bool]]:
    """Follow the parents, oldest row first. A row whose parent is missing is marked as following a gap."""
    ordered, path = sorted(rows), []
    here: str | None = newest
    while here is not None:
        row, parent = rows[here], _get_parent(rows[here])
        # the parent that a damaged row names may be the row itself, or a newer one
        gap = parent is not None and not (parent in rows and parent < here)
        path.append((row, gap))
        if parent is not None and gap:  # continue with the newest row before the missing one
            place = bisect_left(ordered, min(parent, here))
            parent = ordered[place - 1] if place else None
        here = parent
    return path[::-1]


def _build_steps(path: Sequence[tuple[CheckpointTuple, bool]]) -> list[Step]:
    steps: list[Step] = []
    for place, (row, gap) in enumerate(path):
        after, ended, into = None, None, ""
        if place + 1 < len(path):
            after = path[place + 1][0]
            ended, into = _get_time(after), _get_source(after)
        stored, writes = row.checkpoint["channel_values"], _select_writes(row, after)
        steps.append(Step(_get_time(row), ended, _get_source(row), into, stored, writes, after_gap=gap))
    return steps


def _select_writes(row: CheckpointTuple, after: CheckpointTuple | None) -> list[tuple[str, Any]]:
    """Return what was written between a checkpoint and the next.

    At a fork, or an input in mid-run, the writes belong to the branch that was left, and the next row stores
    the channels whole. An edit may store one of them whole.
    """
    wanted = None  # every channel
    if after is not None:
        source, stored = _get_source(after), after.checkpoint["channel_values"]
        if source in ("input", "fork"):
            return []
        if source == "update" and not SNAPSHOT_CHANNELS.isdisjoint(stored):
            wanted = SNAPSHOT_CHANNELS.difference(stored)
    written: list[tuple[str, Any]] = []
    for _, channel, value in row.pending_writes or ():
        if wanted is None or channel in wanted:
            written.append((channel, value))
    return written


def _get_source(row: CheckpointTuple) -> str:
    return str(row.metadata.get("source", ""))


def _get_parent(row: CheckpointTuple) -> str | None:
    """Return the id of a row's parent, or None. Raises `DamagedError` if it is not an id."""
    parent = (row.parent_config or {}).get("configurable", {}).get("checkpoint_id") or None
    if not isinstance(parent, str | None):
        raise DamagedError("its parent is not an id")
    return parent


def _find_nested(rows: Sequence[CheckpointTuple], outer: str) -> list[SubagentSpan]:
    """Return the nested graphs, found by their namespaces, in the order in which they began."""
    spans: dict[str, list[float]] = {}
    for row in rows:
        space = _get_namespace(row)
        if space != outer and space.startswith(outer):
            spans.setdefault(space, []).append(_get_time(row))
    found: list[SubagentSpan] = []
    for space, times in spans.items():
        name = space[len(outer) :].strip("|").partition(":")[0]
        found.append(SubagentSpan(name, min(times), max(times)))
    return sorted(found, key=lambda one: one.start)


def _get_id(row: CheckpointTuple) -> str:
    return str(row.config["configurable"]["checkpoint_id"])


def _get_namespace(row: CheckpointTuple) -> str:
    return str(row.config["configurable"].get("checkpoint_ns", ""))


def _get_time(row: CheckpointTuple) -> float:
    return datetime.fromisoformat(row.checkpoint["ts"]).timestamp()
