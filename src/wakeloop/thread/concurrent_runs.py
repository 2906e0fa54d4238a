"""Tells whether another run wrote to the thread meanwhile.

LangGraph's savers are storage, not locks: two runs on one thread at the same time make two branches, and the
one that writes last hides the other. Ids of checkpoints are ordered by time and each names its parent, so
the newest checkpoints of a thread show whether this run alone has written since it began.
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

WINDOW = 8  # newest checkpoints that are looked at one by one; further back a run looks for inputs only
READ_ATTEMPTS = 9  # tries to read what is being written to
NESTED = "|"  # in the namespace of a task of a subgraph
ENTRANCE = 2  # the checkpoints of an input and of START, before `activate` runs

Rows = Sequence[CheckpointTuple]
Search = Generator[dict[str, Any], Rows, str | None]


class ActivationStart(NamedTuple):
    """Where an activation began: the checkpoint that `activate` found, and the call's limit of supersteps."""

    id: str
    step: int
    limit: int


@dataclass(frozen=True)
class RunPosition:
    """Where a run stands.

    `id` and `step` are those of its newest checkpoint; `taken` counts the supersteps of this call of the
    graph, which are fewer than the activation's where it was resumed. `before` is the checkpoint before the
    newest, where `call_model` has noted it; `addressed` the one that the caller named to go on from.
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
        """The step of the checkpoint that this call of the graph found."""
        return self.step - self.steps_taken

    @computed_once
    def began_in_this_call(self) -> bool:
        """Whether the activation began in this call of the graph."""
        began = self.began
        return began is not None and began.id != self.resumed_from and began.step == self.base + ENTRANCE


def find_current_checkpoint(config: RunnableConfig) -> tuple[str, int] | None:
    """Return id and step of the checkpoint that a node works on; None without a thread, and in a subgraph."""
    info = get_runtime().execution_info
    if info is None or not info.thread_id or NESTED in info.checkpoint_ns:
        return None
    return info.checkpoint_id, config["metadata"]["langgraph_step"] - 1


def find_activation_start(config: RunnableConfig, remaining: int) -> ActivationStart | None:
    """Return where an activation begins; None where no thread is kept, and in a subgraph."""
    here = find_current_checkpoint(config)
    return None if here is None else ActivationStart(*here, remaining + 1)


def find_run_position(config: RunnableConfig, remaining: int, ledger: Ledger) -> RunPosition | None:
    """Return where the run of the asking node stands; None where no thread is kept, and in a subgraph.

    A node's config names the limit of supersteps only where the caller gave one.
    """
    here = find_current_checkpoint(config)
    if here is None:
        return None
    key, step = here
    began = ActivationStart(*ledger["began"]) if ledger.get("began") else None
    limit = config.get("recursion_limit", began.limit if began else 0)
    taken = max(limit + 1 - remaining, 0)
    asked_at, asked_step = ledger.get("asked_at") or ("", step)
    before = asked_at if asked_step == step - 1 else ""  # not where it is gone on with from here
    addressed = str(config["metadata"].get("checkpoint_id") or "")  # a task's own config is without it
    before = "" if before == addressed else before
    return RunPosition(str(config["configurable"]["thread_id"]), key, step, taken, began, before, addressed)


def search_other_run(run: RunPosition) -> Search:
    """Look for a checkpoint that is not the run's own; yields what to list, is sent rows, newest first."""
    limit = min(run.steps_taken + 1, WINDOW)
    rows = yield {"limit": limit}
    found = find_foreign_checkpoint(run, rows)
    if found is not None:
        return found or None
    if len(rows) == limit and run.began is not None and run.began_in_this_call:
        rows = yield {"filter": {"source": "input"}, "limit": 1}
        return next((key for row in rows if (key := _get_checkpoint_id(row.config)) > run.began.id), None)
    return None


def find_foreign_checkpoint(run: RunPosition, rows: Rows) -> str | None:
    """Return the first checkpoint that is not the run's own: its id, "" for none, None if the rows end first.

    The run's own are a chain from its newest down to the one that it found. With `durability="async"` the
    newest may not be stored yet, with `"exit"` none is. Where a run goes on from a checkpoint that its caller
    named, what stands beside its first may be a branch of long ago, and is let alone.
    """
    newer = due = None
    for row in rows:
        key = _get_checkpoint_id(row.config)
        if run.resumed_from and not run.began_in_this_call and run.resumed_from in (run.id, due):
            return ""
        if key > run.id or (newer and key != due) or (run.previous_id and run.previous_id < key < run.id):
            return key
        loop = row.metadata.get("source") == "loop"
        if run.began is not None and run.began_in_this_call:
            if key <= run.began.id:
                return (newer or "") if key != run.began.id else ""  # the run's own lead to its beginning
            if not loop:
                return key
        elif (
            (newer is None and key not in (run.id, run.previous_id)) or not loop or _get_step(row) == run.base
        ):
            return ""  # nothing of the run is stored, or this is where it began or was gone on with
        newer, due = key, _get_checkpoint_id(row.parent_config)
    return None


def _get_step(row: CheckpointTuple) -> int | None:
    return row.metadata.get("step")


def _get_checkpoint_id(config: Mapping[str, Any] | None) -> str:
    return str(config["configurable"].get("checkpoint_id", "")) if config else ""


def check_concurrent_runs(saver: BaseCheckpointSaver[Any] | None, run: RunPosition | None) -> None:
    """Raise `ConcurrentRunError` where another run, or an edit by hand, wrote to the thread meanwhile."""
    if saver is None or run is None:
        return
    asking, thread = search_other_run(run), _thread_config(run)
    try:
        wanted = next(asking)
        while True:
            wanted = asking.send(_list_checkpoints(saver, thread, wanted))
    except StopIteration as told:
        _raise_if_found(run, told.value)


async def acheck_concurrent_runs(saver: BaseCheckpointSaver[Any] | None, run: RunPosition | None) -> None:
    """Raise the same; the saver is awaited."""
    if saver is None or run is None:
        return
    asking, thread = search_other_run(run), _thread_config(run)
    try:
        wanted = next(asking)
        while True:
            wanted = asking.send([row async for row in saver.alist(thread, **wanted)])
    except StopIteration as told:
        _raise_if_found(run, told.value)


def _list_checkpoints(
    saver: BaseCheckpointSaver[Any], thread: RunnableConfig, wanted: dict[str, Any]
) -> Rows:
    """List checkpoints, again where LangGraph's saver in memory was written to while it was read."""
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
