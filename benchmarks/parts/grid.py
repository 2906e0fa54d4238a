"""The job on every agent, in every place: CPU a step, bytes, rows, resume time."""

from __future__ import annotations

import statistics
import sys
from typing import Any

from parts.agents import CREATE_AGENT, DEEPAGENTS, FLOOR, HAND, OUR, OURS, REACT, WHILE
from parts.clock import Group, Setting, ratio
from parts.places import Postgres, postgres_server

EVERY = (WHILE, FLOOR, HAND, REACT, CREATE_AGENT, DEEPAGENTS, *OURS.values())
GRAPHS = EVERY[2:]
CLOSE = (FLOOR, HAND, OUR)  # whose ratios are near the bounds: more rounds


def group(setting: Setting, agents: tuple[Any, ...], often: int, seldom: int) -> Group:
    """Agents in a setting; those of the closest targets run more often."""
    rounds = {agent: often if agent in CLOSE else seldom for agent in agents}
    return Group(setting, {agent: count for agent, count in rounds.items() if count})


def plan(sizes: tuple[int, int, int], often: int) -> list[Group]:
    """What is measured: a small, a middle and a large job; `often` rounds of the closest."""
    small, middle, large = sizes
    some = max(1, often // 2)
    few = (HAND, CREATE_AGENT, DEEPAGENTS, OUR)
    big = tuple(agent for agent in GRAPHS if agent is not REACT)
    return [
        group(Setting(small), EVERY, often, some),
        group(Setting(middle), EVERY, often, some),
        group(Setting(large), EVERY, some + 1, 1),
        group(Setting(small, "sqlite"), GRAPHS, some, some),
        group(Setting(middle, "sqlite"), GRAPHS, often, 1),
        group(Setting(large, "sqlite"), big, some, 1),
        group(Setting(2 * large, "sqlite"), tuple(OURS.values())[:2], 1, 1),
        *(group(Setting(n, "command"), (OUR,), 1, 1) for n in (small, middle, large, 2 * large)),
        group(Setting(middle, "sqlite", durability="sync"), (HAND, OUR), often, 1),
        group(Setting(small, "memory"), GRAPHS, some, 1),
        group(Setting(middle, "memory"), GRAPHS, some, 1),
        group(Setting(small, "postgres"), GRAPHS, some, 1),
        group(Setting(middle, "postgres"), GRAPHS, some, 1),
        group(Setting(middle, mode="async"), (FLOOR, *few, *list(OURS.values())[1:]), often, 1),
        group(Setting(middle, "sqlite", "async"), few, often, 1),
    ]


SIZES = {"full": (10, 100, 500), "quick": (5, 20, 50), "tiny": (1, 2, 3)}
OFTEN = {"full": 5, "quick": 1, "tiny": 1}


def measure(size: str) -> list[dict[str, Any]]:
    """Measure every group; a line for each goes to stderr as it ends."""
    told: list[dict[str, Any]] = []
    with postgres_server() as server:
        for each in plan(SIZES[size], OFTEN[size]):
            found = [figures.told() for figures in each.measured({"postgres": Postgres(server)})]
            print(f"  {each.setting}", file=sys.stderr, flush=True)
            told += found
    return told


KEYS = ("place", "mode", "durability", "n")
WORDS = {"none": "no saver", "memory": "memory", "sqlite": "SQLite", "postgres": "Postgres"}


def title(row: dict[str, Any]) -> str:
    """A setting in words."""
    words = {**WORDS, "command": "SQLite of the command"}[row["place"]]
    more = [row["mode"]] * (row["mode"] == "async") + [f"durability {row['durability']}"] * bool(
        row["durability"]
    )
    return ", ".join([words, *more, f"N = {row['n']}"])


def tables(rows: list[dict[str, Any]]) -> str:
    """A table for each setting."""
    settings = list(dict.fromkeys(tuple(row[key] for key in KEYS) for row in rows))
    return "\n\n".join(table([row for row in rows if tuple(row[key] for key in KEYS) == s]) for s in settings)


def table(rows: list[dict[str, Any]]) -> str:
    """The agents of one setting, in Markdown."""
    hand = next((row for row in rows if row["agent"] == "hand"), None)
    lines = [
        f"**{title(rows[0])}**",
        "",
        "| | CPU ms a step | of hand | MB | rows a step | `get_state` ms |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        steps = 2 * row["n"] + 2
        cells = [
            row["agent"],
            f"{statistics.median(row['ms']):.2f}",
            f"{ratio(row['ms'], hand['ms']):.2f}" if hand else "",
            f"{row['bytes'] / 1e6:.2f}" if row["bytes"] else "",
            f"{row['checkpoints'] / steps:.2f} + {row['writes'] / steps:.2f}" if row["bytes"] else "",
            f"{statistics.median(row['resume']):.1f}" if row["resume"] else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
