"""A thousand threads at once in one process, on asynchronous SQLite.

`python crowd.py AGENT THREADS` is such a process: it prints its figures as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from parts.agents import CREATE_AGENT, HAND, OUR, arun, check
from parts.clock import ratio, spent
from parts.job import steps
from parts.places import AsyncSqlite

ITEMS = 4  # ten model steps
THREADS = {"full": 1000, "quick": 100, "tiny": 5}
OFTEN = {"full": 1, "quick": 1, "tiny": 1}
AGENTS = {agent.name: agent for agent in (HAND, CREATE_AGENT, OUR)}


def peak() -> float:
    """Return the most memory that this process held, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux's ru_maxrss counts the parent, too
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # bytes on macOS


async def crowd(name: str, threads: int) -> dict[str, float]:
    """Run all threads at once."""
    agent = AGENTS[name]
    async with AsyncSqlite() as kept:
        graph = agent.graph(ITEMS, kept.saver, awaits=True)
        check(agent, ITEMS, await arun(graph, "warm"))
        gc.collect()
        before, start, wall = peak(), time.process_time(), time.monotonic()
        states = await asyncio.gather(*(arun(graph, str(i)) for i in range(threads)))
        taken, waited = spent(start), time.monotonic() - wall
        for state in states:
            check(agent, ITEMS, state)
        return {
            "complete": len(states),
            "ms": taken / (threads * steps(ITEMS)),
            "seconds": waited,
            "peak": peak(),
            "grown": peak() - before,
        }


def measure(size: str) -> list[dict[str, Any]]:
    """Start a process for each agent, in turns."""
    told: dict[str, dict[str, Any]] = {}
    for _ in range(OFTEN[size]):
        for name in (name for name, agent in AGENTS.items() if agent.installed):
            command = [sys.executable, __file__, name, str(THREADS[size])]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found = json.loads(done.stdout)
            row = told.setdefault(
                name, {"agent": name, "threads": THREADS[size], **{key: [] for key in found}}
            )
            for key, value in found.items():
                row[key].append(value)
    return list(told.values())


def tables(rows: list[dict[str, Any]]) -> str:
    """Return a row for each agent."""
    hand = next((row for row in rows if row["agent"] == "hand"), {})
    lines = [
        "| | threads | complete | CPU ms per step | of hand | memory, MB | of hand | grown, MB | of hand |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        cells = [
            row["agent"],
            str(row["threads"]),
            str(min(row["complete"])),
            f"{statistics.median(row['ms']):.2f}",
        ]
        cells.append(f"{ratio(row['ms'], hand['ms']):.2f}")
        for key in ("peak", "grown"):
            cells += [
                f"{statistics.median(row[key]):.0f}",
                f"{ratio(row[key], hand[key]):.2f}" if min(hand[key]) else "",
            ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(crowd(sys.argv[1], int(sys.argv[2])))))
