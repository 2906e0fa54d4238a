"""Detects a concurrent run on the same thread.

LangGraph's savers are storage, not locks: two runs on one thread at the same time make two branches, and the
one that writes last hides the other. Checkpoint ids are ordered by time and each checkpoint names its parent,
so the newest checkpoints of a thread show whether anything but this run has written since it began.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.runtime import get_runtime

from wakeloop.errors import ConcurrentRunError
from wakeloop.loop.ledger import Ledger
from wakeloop.platform.computed_once import computed_once

WINDOW = 8  # newest checkpoints to check one by one; further back only inputs are searched for
READ_ATTEMPTS = 9  # at listing checkpoints that are being written
NESTED = "|"  # in the checkpoint namespace of a subgraph's tasks
ENTRANCE = 2  # checkpoints before `activate` runs: of the input and of START

Rows = Sequence[CheckpointTuple]
Search = Generator[dict[str, Any], Rows, str | None]


class ActivationStart(NamedTuple):
    """Where an activation began: the checkpoint that `activate` found, and the run's recursion limit."""

    id: str
    step: int
    limit: int


@dataclass(frozen=True)
class RunPosition:
    """How far a run has come.

    `id` and `step` are those of its newest checkpoint. `steps_taken` counts the supersteps of this call of
    the graph; after a resume that is fewer than the activation has taken. `previous_id` is the checkpoint
    before the newest, if `call_model` noted it; `resumed_from` the one that the caller continues from.
    """

    thread_id: str
    id: str
    step: int
    steps_taken: int
    began: ActivationStart | None = None
    previous_id: str = ""
    resumed_from: str = ""

    @computed_once
    def base(self) -> int:
        """The step of the checkpoint that this call of the graph started from."""
        return self.step - self.steps_taken

    @computed_once
    def began_in_this_call(self) -> bool:
        """Whether the activation began in this call of the graph."""
        began = self.began
        return began is not None and began.id != self.resumed_from and began.step == self.base + ENTRANCE


def find_current_checkpoint(config: RunnableConfig) -> tuple[str, int] | None:
    """Return id and step of the checkpoint that a node runs on; None without a thread and in a subgraph."""
    info = get_runtime().execution_info
    if info is None or not info.thread_id or NESTED in info.checkpoint_ns:
        return None
    return info.checkpoint_id, config["metadata"]["langgraph_step"] - 1


def find_activation_start(config: RunnableConfig, remaining: int) -> ActivationStart | None:
    """Return where an activation begins; None without a thread and in a subgraph."""
    here = find_current_checkpoint(config)
    return None if here is None else ActivationStart(*here, remaining + 1)


def find_run_position(config: RunnableConfig, remaining: int, ledger: Ledger) -> RunPosition | None:
    """Return how far the current run has come; None without a thread and in a subgraph."""
    here = find_current_checkpoint(config)
    if here is None:
        return None
    key, step = here
    began = ActivationStart(*ledger["began"]) if ledger.get("began") else None
    # A node's config has the recursion limit only if the caller set one.
    limit = config.get("recursion_limit", began.limit if began else 0)
    taken = max(limit + 1 - remaining, 0)
    resumed_from = str(config["metadata"].get("checkpoint_id") or "")  # a task's `configurable` lacks it
    asked_at, asked_step = ledger.get("asked_at") or ("", step)
    is_previous = asked_step == step - 1 and asked_at != resumed_from
    return RunPosition(
        thread_id=str(config["configurable"]["thread_id"]),
        id=key,
        step=step,
        steps_taken=taken,
        began=began,
        previous_id=asked_at if is_previous else "",
        resumed_from=resumed_from,
    )


def search_other_run(run: RunPosition) -> Search:
    """Look for a checkpoint of another run. Yields what to list, and is sent the rows, newest first."""
    limit = min(run.steps_taken + 1, WINDOW)
    rows = yield {"limit": limit}
    found = find_foreign_checkpoint(run, rows)
    if found is not None:
        return found or None
    if len(rows) == limit and run.began is not None and run.began_in_this_call:
        rows = yield {"filter": {"source": "input"}, "limit": 1}
        inputs = [_get_checkpoint_id(row.config) for row in rows]
        return next((key for key in inputs if key > run.began.id), None)
    return None


def find_foreign_checkpoint(run: RunPosition, rows: Rows) -> str | None:
    """Return the id of the first checkpoint of another run: "" without one, None if the rows end too early.

    This run's checkpoints are a chain from its newest back to the one that it started from. With
    `durability="async"` the newest may not be stored yet, with `"exit"` none is. If the caller named a
    checkpoint to continue from, siblings of the run's first checkpoint may be an old branch, and are ignored.
    """
    newer = parent = None
    for row in rows:
        key = _get_checkpoint_id(row.config)
        if run.resumed_from and not run.began_in_this_call and run.resumed_from in (run.id, parent):
            return ""
        if key > run.id or (newer and key != parent) or (run.previous_id and run.previous_id < key < run.id):
            return key
        loop = row.metadata.get("source") == "loop"
        if run.began is not None and run.began_in_this_call:
            if key <= run.began.id:
                # A chain that passes the beginning without meeting it belongs to another run.
                return "" if key == run.began.id else newer or ""
            if not loop:
                return key
        elif (
            (newer is None and key not in (run.id, run.previous_id))
            or not loop
            or row.metadata.get("step") == run.base
        ):
            return ""  # nothing of this run is stored yet, or this is where it started or was resumed
        newer, parent = key, _get_checkpoint_id(row.parent_config)
    return None


def _get_checkpoint_id(config: Mapping[str, Any] | None) -> str:
    return str(config["configurable"].get("checkpoint_id", "")) if config else ""


def check_concurrent_runs(saver: BaseCheckpointSaver[Any] | None, run: RunPosition | None) -> None:
    """Raise `ConcurrentRunError` if another run, or an edit by hand, has written to the thread meanwhile."""
    if saver is None or run is None:
        return
    query, thread = search_other_run(run), _thread_config(run)
    try:
        wanted = next(query)
        while True:
            wanted = query.send(_list_checkpoints(saver, thread, wanted))
    except StopIteration as done:
        _raise_if_found(run, done.value)


async def acheck_concurrent_runs(saver: BaseCheckpointSaver[Any] | None, run: RunPosition | None) -> None:
    """Raise `ConcurrentRunError`: `check_concurrent_runs` for asynchronous savers."""
    if saver is None or run is None:
        return
    query, thread = search_other_run(run), _thread_config(run)
    try:
        wanted = next(query)
        while True:
            wanted = query.send([row async for row in saver.alist(thread, **wanted)])
    except StopIteration as done:
        _raise_if_found(run, done.value)


def _list_checkpoints(
    saver: BaseCheckpointSaver[Any], thread: RunnableConfig, wanted: dict[str, Any]
) -> Rows:
    """List checkpoints; retry if LangGraph's in-memory saver was written to during the listing."""
    for _ in range(READ_ATTEMPTS):
        try:
            return list(saver.list(thread, **wanted))
        except RuntimeError as error:
            if "changed size during iteration" not in str(error):
                raise
    return list(saver.list(thread, **wanted))


def _thread_config(run: RunPosition) -> RunnableConfig:
    return {"configurable": {"thread_id": run.thread_id, "checkpoint_ns": ""}}


def _raise_if_found(run: RunPosition, other: str | None) -> None:
    if other is not None:
        raise ConcurrentRunError(run.thread_id, run.id, other)
