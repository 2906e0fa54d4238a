"""64 runs of one agent in one process: one after another, in a pool of threads, as tasks of one loop.

If the pool waited for locks, it would take more CPU than one run after another.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from parts.agents import HAND, OUR, Agent, arun, check, run
from parts.clock import spent
from parts.job import steps

ITEMS = 10
RUNS = {"full": 64, "quick": 16, "tiny": 2}
OFTEN = {"full": 4, "quick": 2, "tiny": 1}
SAVERS: dict[str, Callable[[], Any]] = {"none": lambda: None, "memory": InMemorySaver}


@contextmanager
def counted_starts() -> Iterator[list[threading.Thread]]:
    """Record every thread that is started."""
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        started.append(thread)
        start(thread)

    threading.Thread.start = noted  # type: ignore[method-assign]
    try:
        yield started
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]


def in_turn(graph: Any, runs: int) -> list[dict[str, Any]]:
    """Run them one after another."""
    return [run(graph, str(i)) for i in range(runs)]


def in_pool(graph: Any, runs: int) -> list[dict[str, Any]]:
    """Run them all at once, each in a thread of a pool."""
    with ThreadPoolExecutor(runs, thread_name_prefix="pool") as pool:
        return list(pool.map(lambda i: run(graph, str(i)), range(runs)))


def as_tasks(graph: Any, runs: int) -> list[dict[str, Any]]:
    """Run them all at once, each as a task of one loop."""

    async def gathered() -> list[dict[str, Any]]:
        return await asyncio.gather(*(arun(graph, str(i)) for i in range(runs)))

    return asyncio.run(gathered())


AGENTS = (HAND, OUR)
WAYS = {"in turn": in_turn, "in a pool": in_pool, "as tasks": as_tasks}


def once(agent: Agent, saver: str, way: str, runs: int) -> tuple[float, float]:
    """Return CPU ms per model step, and the threads that a run starts beyond those of the pool."""
    graph = agent.graph(ITEMS, SAVERS[saver](), awaits=way == "as tasks")
    gc.collect()
    with counted_starts() as started:
        start = time.process_time()
        states = WAYS[way](graph, runs)
        taken = spent(start) / (runs * steps(ITEMS))
    for state in states:
        check(agent, ITEMS, state)
    own = [thread for thread in started if not thread.name.startswith("pool")]
    return taken, len(own) / runs


def measure(size: str) -> list[dict[str, Any]]:
    """Let the ways and the agents take turns in each place."""
    told: list[dict[str, Any]] = []
    for saver in SAVERS:
        rows: list[dict[str, Any]] = [
            {"agent": agent.name, "saver": saver, "way": way, "ms": [], "started": []}
            for way in WAYS
            for agent in AGENTS
        ]
        for turn in range(OFTEN[size] + 1):
            for (way, agent), row in zip(itertools.product(WAYS, AGENTS), rows, strict=True):
                taken, started = once(agent, saver, way, RUNS[size])
                if turn:  # the first is a warm-up
                    row["ms"].append(taken)
                    row["started"].append(started)
        told += rows
    return told


def tables(rows: list[dict[str, Any]]) -> str:
    """Return a row for each place and way, with the least of all turns."""
    lines = [
        "| saver | runs | hand, CPU ms per step | ours | of hand | threads started a run, hand | ours |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for hand, ours in zip(rows[::2], rows[1::2], strict=True):
        theirs, own = min(hand["ms"]), min(ours["ms"])
        started = " | ".join(f"{min(row['started']):.1f}" for row in (hand, ours))
        lines.append(
            f"| {hand['saver']} | {hand['way']} | {theirs:.2f} | {own:.2f} | {own / theirs:.2f} | {started} |"
        )
    return "\n".join(lines)
