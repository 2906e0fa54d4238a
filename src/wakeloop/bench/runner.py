"""Runs a study: in parallel, resumable, within a cost."""

import logging
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from wakeloop.bench.agents import agent_named
from wakeloop.bench.cell import play_cell
from wakeloop.bench.journal import Journal, Row
from wakeloop.bench.meter import TIMEOUT
from wakeloop.bench.models import check_model, is_weak
from wakeloop.bench.report import JOURNAL
from wakeloop.bench.study import Cell, Study, check_own_tasks, is_folder, plan_cells
from wakeloop.bench.task_folders import digest_tasks
from wakeloop.errors import BenchError

MOST_OUTAGES = 3  # in a row; then the run ends, because the server is gone
TICK = 1.0  # seconds of a wait; a signal just before an endless wait would not end it
OPENAI_MODULES = ("langchain_openai",)  # takes as long to import as all the rest

CALLBACK_LOGGER = logging.getLogger("langchain_core.callbacks")  # warns of each ceiling that is reached

Notify = Callable[[str], None]


@dataclass
class Progress:
    """The progress of a run."""

    whole: int
    finished: int
    cost: float
    begun: float = field(default_factory=time.monotonic)
    played: int = 0
    outages: int = 0

    def add(self, cost: float) -> None:
        """Count a finished cell."""
        self.finished += 1
        self.played += 1
        self.outages = 0
        self.cost += cost

    def seconds_left(self, ahead: Sequence[Cell]) -> float:
        """Return the expected seconds of the cells ahead, from the pace so far."""
        if not self.played:
            return float("nan")
        return (time.monotonic() - self.begun) / self.played * len(ahead)


@dataclass(frozen=True)
class Outcome:
    """The result of a run: all rows, and why it ended before its last cell, if it did."""

    rows: list[Row]
    whole: int
    why: str = ""


def plan_study(study: Study, *, offline: bool = False) -> list[Cell]:
    """Check every name and the user's own tasks, and return the cells that can be played.

    Raises `BenchError`, and `SettingsError` for an invalid task. `offline`, for an estimate, makes no real
    model, which would need a key, and runs no checks.
    """
    for model in study.models:
        if is_weak(model) or not offline:
            check_model(model)
    for agent in (*study.agents, study.reference):
        agent_named(agent)
    for task in study.tasks:
        if is_folder(task) and not offline:
            check_own_tasks(task)
    cells = [cell for cell in plan_cells(study) if agent_named(cell.agent).exists]
    if not cells:
        packages = sorted({agent_named(name).package for name in study.agents})
        raise BenchError(f"No agent of this study is installed: pip install {' '.join(packages)}.")
    return cells


def play_study(
    study: Study,
    out: Path,
    *,
    workers: int = 2,
    max_cost: float | None = None,
    timeout: float = TIMEOUT,
    told: Notify = lambda _line: None,
    shown: Callable[[Progress, Sequence[Cell]], None] = lambda _progress, _ahead: None,
) -> Outcome:
    """Run the cells of a study that are not finished yet. Raises `BenchError`.

    Args:
        study: The study. A folder with the run of another study is refused.
        out: The folder of `cells.jsonl`: the study with its hash, then a line for each cell.
        workers: How many cells run at once; a single one runs in this process.
        max_cost: The most that all rows may cost, in the unit of the study's prices; cells that are running
            when it is reached are finished.
        timeout: Seconds that a request may take; then its cell is an outage, and is played the next time.
        told: Called with a line for a person.
        shown: Called with the progress and the cells ahead whenever a cell is finished.
    """
    every = plan_study(study)
    for name in study.agents:
        if not (agent := agent_named(name)).exists:
            told(f"{name} is left out: pip install {agent.package}")
    kept = (out / JOURNAL).resolve()
    head = {
        "study": study.model_dump(mode="json"),
        "hash": study.hash,
        "cells": len(every),
        "wakeloop": version("wakeloop"),
        "python": platform.python_version(),
        "tasks": {folder: digest_tasks(folder, kept) for folder in study.tasks if is_folder(folder)},
    }
    with Journal(out / JOURNAL, head) as journal:
        ahead = [cell for cell in every if cell not in journal.done]
        spent = sum(map(study.prices.cost, journal.rows))
        progress = Progress(len(every), len(every) - len(ahead), spent)
        why = ""
        check_journal(journal, every, told)
        with worker_pool(workers, study, timeout) as start:
            at_work: dict[Future[Row], Cell] = {}
            while (ahead and not why) or at_work:
                while ahead and not why and len(at_work) < workers:
                    if max_cost is not None and not progress.cost < max_cost:  # also true for NaN
                        why = f"the cost of {max_cost:g} is reached"
                        break
                    cell = ahead.pop(0)
                    at_work[start(cell)] = cell
                for future in wait(at_work, TICK, FIRST_COMPLETED).done:
                    cell = at_work.pop(future)
                    why = _record_result(future, cell, journal, progress, study, told) or why
                    shown(progress, [*at_work.values(), *ahead])
        return Outcome(journal.rows, len(every), why)


def check_journal(journal: Journal, every: Sequence[Cell], told: Notify) -> None:
    """Raise `BenchError` for rows that the plan does not have, or that were played on other tasks."""
    known = set(every)
    strange = next((cell for cell in journal.done if cell not in known), None)
    if strange is not None:
        raise BenchError(
            f"{journal.path} was begun with another plan, which has {strange.agent} on "
            f"{strange.family}:{strange.parts}. Use another --out."
        )
    begun = journal.begun
    for folder, now in journal.head["tasks"].items():
        if begun.get("tasks", {}).get(folder, now) != now:
            raise BenchError(
                f"The tasks in {folder} have changed since the run in {journal.path} began. "
                "Use another --out."
            )
    if (was := begun.get("wakeloop")) != (now := journal.head["wakeloop"]):
        told(f"{journal.path} was begun with wakeloop {was}, and this is {now}.")


def _record_result(
    future: Future[Row], cell: Cell, journal: Journal, progress: Progress, study: Study, told: Notify
) -> str:
    """Store a row, or report an outage. Return why the run must end, "" if it need not."""
    try:
        row = future.result()
    except BenchError as error:
        progress.outages += 1
        journal.note_outage(cell, str(error))
        told(f"{cell.agent}, {cell.family}:{cell.parts}, seed {cell.seed}: {error}")
        if progress.outages < MOST_OUTAGES:
            return ""
        return f"{MOST_OUTAGES} cells in a row failed"
    except BrokenExecutor:
        return "one of its processes was ended from outside"
    journal.add(row)
    progress.add(study.prices.cost(row))
    return ""


@contextmanager
def worker_pool(
    workers: int, study: Study, timeout: float = TIMEOUT
) -> Iterator[Callable[[Cell], Future[Row]]]:
    """Yield a function that starts a cell: here, or in worker processes that end with this one."""
    if workers == 1:
        level = CALLBACK_LOGGER.level
        CALLBACK_LOGGER.setLevel(logging.ERROR)
        try:
            yield lambda cell: _play_here(cell, study, timeout)
        finally:
            CALLBACK_LOGGER.setLevel(level)
        return
    server = get_context("forkserver")  # imports once for all workers
    modules = ["wakeloop.bench.cell"]
    if not all(map(is_weak, study.models)):
        modules += OPENAI_MODULES
    server.set_forkserver_preload(modules)
    ours, theirs = server.Pipe()
    with ours, theirs, ProcessPoolExecutor(workers, server, start_worker, (theirs,)) as processes:
        try:
            yield lambda cell: processes.submit(play_cell, cell, study, timeout=timeout)
        except BaseException:
            ours.close()  # ends the workers, whatever they are waiting for
            raise


def _play_here(cell: Cell, study: Study, timeout: float) -> Future[Row]:
    future: Future[Row] = Future()
    try:
        future.set_result(play_cell(cell, study, timeout=timeout))
    except BenchError as error:
        future.set_exception(error)
    return future


def start_worker(line: Connection) -> None:
    """Set up a worker. It ends when the main process, at the other end of `line`, is gone.

    Only the main process handles Ctrl-C.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    CALLBACK_LOGGER.setLevel(logging.ERROR)

    def watch() -> None:
        with suppress(EOFError, OSError):
            line.recv()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
