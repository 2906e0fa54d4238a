"""Many tool calls in one round, on SQLite."""

from __future__ import annotations

import gc
import statistics
import time
from functools import partial
from typing import Any

from parts.agents import CREATE_AGENT, HAND, OUR, REACT, run
from parts.clock import ratio, spent
from parts.job import Costless, in_rounds
from parts.places import sqlite

WIDTHS = {"full": (1, 8, 32), "quick": (1, 32), "tiny": (2,)}
ROUNDS = {"full": 20, "quick": 5, "tiny": 1}
FEW = 2  # rounds of the peers, which are slow here and near no limit
OFTEN = {"full": 7, "quick": 3, "tiny": 1}


def once(agent: Any, width: int, rounds: int) -> float:
    """Return CPU ms per model step of a run that makes this many calls in each of its rounds."""
    with sqlite() as kept:
        graph = agent.build(Costless(script=partial(in_rounds, width, rounds)), kept.saver)
        gc.collect()
        start = time.process_time()
        state = run(graph)
        taken = spent(start) / (rounds + 1)
    assert len(state["messages"]) == 2 + rounds * (width + 1), agent.name
    return taken


def measure(size: str) -> list[dict[str, Any]]:
    """Let the agents take turns at each width."""
    agents = [agent for agent in (HAND, REACT, CREATE_AGENT, OUR) if agent.installed]
    told = []
    for width in WIDTHS[size]:
        times: dict[str, list[float]] = {agent.name: [] for agent in agents}
        for turn in range(OFTEN[size] + 1):
            for agent in agents if turn <= FEW else (HAND, OUR):
                taken = once(agent, width, ROUNDS[size])
                if turn:  # the first is a warm-up
                    times[agent.name].append(taken)
        told += [{"agent": name, "width": width, "ms": ms} for name, ms in times.items()]
    return told


def tables(rows: list[dict[str, Any]]) -> str:
    """Return a row for each width and agent."""
    hand = {row["width"]: row["ms"] for row in rows if row["agent"] == "hand"}
    lines = ["| calls in a round | | CPU ms per step | of hand |", "|--:|---|--:|--:|"]
    lines += [
        f"| {row['width']} | {row['agent']} | {statistics.median(row['ms']):.2f} "
        f"| {ratio(row['ms'], hand[row['width']]):.2f} |"
        for row in rows
    ]
    return "\n".join(lines)
