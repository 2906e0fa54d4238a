"""Runs a study: bounded parallel, resumable, within a cost."""

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

from wakeloop.bench import peers
from wakeloop.bench.agents import agent_named
from wakeloop.bench.cell import play
from wakeloop.bench.folders import digest
from wakeloop.bench.journal import Journal, Row
from wakeloop.bench.models import check_model, is_weak
from wakeloop.bench.patience import TIMEOUT
from wakeloop.bench.plan import Cell, cells, is_folder, proven
from wakeloop.bench.report import JOURNAL
from wakeloop.bench.study import Study
from wakeloop.errors import BenchError

OUTAGES = 3  # in a row, after which the run ends: the server is gone
TICK = 1.0  # seconds: a signal that comes just before a wait does not wake it
OPENAI = ("langchain_openai",)  # takes as long to import as all the rest

Told = Callable[[str], None]


@dataclass
class Progress:
    """How far a run is."""

    whole: int
    finished: int
    workers: int
    cost: float
    begun: float = field(default_factory=time.monotonic)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    outages: int = 0

    def add(self, row: Row, cost: float) -> None:
        """One cell more is finished."""
        self.finished += 1
        self.outages = 0
        self.cost += cost
        self.seconds.setdefault(row["agent"], []).append(row["seconds"])

    def left(self, ahead: Sequence[Cell]) -> float:
        """Return the seconds that the cells ahead will take, by what cells of the same agents took."""
        every = [one for taken in self.seconds.values() for one in taken]
        if not every:
            return float("nan")
        usual = sum(every) / len(every)
        by_agent = {agent: sum(taken) / len(taken) for agent, taken in self.seconds.items()}
        return sum(by_agent.get(cell.agent, usual) for cell in ahead) / self.workers


@dataclass(frozen=True)
class Done:
    """What a run came to: all rows, and why it ended before its last cell, if it did."""

    rows: list[Row]
    whole: int
    why: str = ""


def plan(study: Study, *, offline: bool = False) -> list[Cell]:
    """Return the cells that can be played: checks every name first, and tasks of one's own.

    Raises `BenchError`, and `SettingsError` for a task that is none.

    For what is only estimated, `offline`, no real model is made, which needs a key, and no check is run.
    """
    for model in study.models:
        if is_weak(model) or not offline:
            check_model(model)
    for agent in (*study.agents, study.reference):
        agent_named(agent)
    for folder in () if offline else filter(is_folder, study.tasks):
        proven(folder)
    return [cell for cell in cells(study) if agent_named(cell.agent).exists]


def run(
    study: Study,
    out: Path,
    *,
    workers: int = 2,
    max_cost: float | None = None,
    timeout: float = TIMEOUT,
    told: Told = lambda _line: None,
    shown: Callable[[Progress, Sequence[Cell]], None] = lambda _progress, _ahead: None,
) -> Done:
    """Run the cells of a study that are not finished yet. Raises `BenchError`.

    Args:
        study: What is asked. A folder that holds the run of another is refused.
        out: The folder of `cells.jsonl`: the study with its hash, then a line a cell.
        workers: Cells at once; one runs in this process.
        max_cost: What all rows together may cost, in the unit of the study's prices; the cells that are at
            work when it is reached are finished.
        timeout: Seconds that a request may take; then its cell is an outage, and played the next time.
        told: Takes a line for a person.
        shown: Takes the progress whenever a cell is finished, and the cells ahead.
    """
    every = plan(study)
    where = peer_folder()
    for peer in {agent.peer for name in study.agents if (agent := agent_named(name)).exists}:
        if peer is not None:
            peer.prepare(where, told)
    kept = (out / JOURNAL).resolve()
    head = {
        "study": study.model_dump(mode="json"),
        "hash": study.hash,
        "cells": len(every),
        "wakeloop": version("wakeloop"),
        "python": platform.python_version(),
        "tasks": {folder: digest(folder, kept) for folder in study.tasks if is_folder(folder)},
    }
    with Journal(out / JOURNAL, head) as journal:
        ahead = [cell for cell in every if cell not in journal.done]
        spent = sum(map(study.prices.cost, journal.rows))
        progress = Progress(len(every), len(every) - len(ahead), workers, spent)
        why = ""
        must_fit(journal, every, told)
        with pool(workers, study, where, timeout) as start:
            at_work: dict[Future[Row], Cell] = {}
            while (ahead and not why) or at_work:
                while ahead and not why and len(at_work) < workers:
                    if max_cost is not None and not progress.cost < max_cost:  # nor where it is no number
                        why = f"the cost of {max_cost:g} is reached"
                        break
                    cell = ahead.pop(0)
                    at_work[start(cell)] = cell
                for future in wait(at_work, TICK, FIRST_COMPLETED).done:
                    cell = at_work.pop(future)
                    why = _finish(future, cell, journal, progress, study, told) or why
                    shown(progress, [*at_work.values(), *ahead])
        return Done(journal.rows, len(every), why)


def must_fit(journal: Journal, every: Sequence[Cell], told: Told) -> None:
    """Refuse rows that this plan does not have, or that were played on other tasks. Raises `BenchError`."""
    known = set(every)
    strange = next((cell for cell in journal.done if cell not in known), None)
    if strange is not None:
        raise BenchError(
            f"{journal.path} was begun with another plan, which had {strange.agent} on "
            f"{strange.family}:{strange.parts}: give another --out."
        )
    begun = journal.begun
    for folder, now in journal.head["tasks"].items():
        if begun.get("tasks", {}).get(folder, now) != now:
            raise BenchError(
                f"The tasks in {folder} have changed since the run in {journal.path} began: "
                "give another --out."
            )
    if (was := begun.get("wakeloop")) != (now := journal.head["wakeloop"]):
        told(f"{journal.path} was begun with wakeloop {was}, and this is {now}.")


def _finish(
    future: Future[Row], cell: Cell, journal: Journal, progress: Progress, study: Study, told: Told
) -> str:
    """Keep a row; of an outage say so, and at the third in a row why the run ends."""
    try:
        row = future.result()
    except BenchError as error:
        progress.outages += 1
        journal.outage(cell, str(error))
        told(f"{cell.agent}, {cell.family}:{cell.parts}, seed {cell.seed}: {error}")
        return f"{OUTAGES} cells in a row failed" if progress.outages >= OUTAGES else ""
    except BrokenExecutor:
        return "one of its processes was ended from outside"
    journal.add(row)
    progress.add(row, study.prices.cost(row))
    return ""


@contextmanager
def pool(
    workers: int, study: Study, where: Path, timeout: float = TIMEOUT
) -> Iterator[Callable[[Cell], Future[Row]]]:
    """Give what starts a cell: here, or in one of some processes that end with this one."""
    if workers == 1:
        places, level = settle(where)
        try:
            yield lambda cell: _here(cell, study, timeout)
        finally:
            peers.end_all()
            settle(*places, level=level)
        return
    server = get_context("forkserver")  # imports once, whatever the number of workers
    server.set_forkserver_preload(
        ["wakeloop.bench.cell", *(() if all(map(is_weak, study.models)) else OPENAI)]
    )
    ours, theirs = server.Pipe()
    with ours, theirs, ProcessPoolExecutor(workers, server, begin_worker, (theirs, where)) as processes:
        try:
            yield lambda cell: processes.submit(play, cell, study, timeout=timeout)
        except BaseException:
            ours.close()  # ends the workers, whatever they wait for
            raise


def _here(cell: Cell, study: Study, timeout: float) -> Future[Row]:
    future: Future[Row] = Future()
    try:
        future.set_result(play(cell, study, timeout=timeout))
    except BenchError as error:
        future.set_exception(error)
    return future


def settle(*places: Path, level: int = logging.ERROR) -> tuple[list[Path], int]:
    """Tell this process where peers are; a ceiling that is reached is nothing to warn of.

    Returns what held before.
    """
    logger = logging.getLogger("langchain_core.callbacks")
    before = [*peers.PLACES], logger.level
    peers.PLACES[:] = places
    logger.setLevel(level)
    return before


def begin_worker(line: Connection, where: Path) -> None:
    """Begin a worker: it ends when the process that has the line's other end is gone, however it ended.

    Ctrl-C is for that process alone.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settle(where)

    def watch() -> None:
        with suppress(EOFError, OSError):
            line.recv()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def peer_folder() -> Path:
    """Return where environments of peers are kept."""
    from platformdirs import user_cache_path  # noqa: PLC0415 - of the extra

    return user_cache_path("wakeloop", appauthor=False) / "peers"
