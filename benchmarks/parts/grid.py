"""The job with every agent, in every place: CPU per step, bytes, rows, resume time."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from typing import Any

from parts.agents import CREATE_AGENT, DEEPAGENTS, FLOOR, HAND, OUR, OURS, REACT, WHILE
from parts.clock import Group, Setting, ratio
from parts.places import Postgres, postgres_server

EVERY = (WHILE, FLOOR, HAND, REACT, CREATE_AGENT, DEEPAGENTS, *OURS.values())
GRAPHS = EVERY[2:]
CLOSE = (FLOOR, HAND, OUR)  # those with ratios near their limits run more rounds


def group(setting: Setting, agents: tuple[Any, ...], often: int, seldom: int) -> Group:
    """Return agents in a setting; those of the closest targets run more often."""
    rounds = {agent: often if agent in CLOSE else seldom for agent in agents}
    return Group(setting, {agent: count for agent, count in rounds.items() if count})


def plan(sizes: tuple[int, int, int], often: int) -> list[Group]:
    """Return all measurements: of a small, a middle and a large job; `often` rounds of the closest."""
    small, middle, large = sizes
    some = max(1, often // 2)
    few = (HAND, CREATE_AGENT, DEEPAGENTS, OUR)
    # each of their messages has the whole list, and each checkpoint all messages: some 35 GB at N = 500
    big = tuple(agent for agent in GRAPHS if agent not in (REACT, CREATE_AGENT))
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


SIZES = {"full": (10, 100, 500), "targets": (10, 100, 500), "quick": (5, 20, 50), "tiny": (1, 2, 3)}
OFTEN = {"full": 5, "targets": 3, "quick": 1, "tiny": 1}


def needed(groups: list[Group]) -> list[Group]:
    """Return what the targets need, and nothing else."""
    left = []
    for each in groups:
        setting = each.setting
        plain = setting in (Setting(setting.n), Setting(100, "sqlite"))
        agents = {*CLOSE, CREATE_AGENT} if plain and setting.n == 100 else {*CLOSE}  # noqa: PLR2004 - a target's N
        rounds = {agent: count for agent, count in each.rounds.items() if agent in agents}
        if rounds and setting.place not in ("memory", "postgres") and setting.n != 10:  # noqa: PLR2004
            left.append(Group(setting, rounds))
    return left


def measure(size: str) -> list[dict[str, Any]]:
    """Measure every group; a line for each goes to stderr as it ends."""
    told: list[dict[str, Any]] = []
    groups = plan(SIZES[size], OFTEN[size])
    if size == "targets":
        groups = needed(groups)
    with postgres_server() as server:
        for each in groups:
            found = [figures.as_json() for figures in each.measured({"postgres": Postgres(server)})]
            print(f"  {each.setting}", file=sys.stderr, flush=True)
            told += found
    return told


KEYS = ("place", "mode", "durability")
WORDS = {
    "none": "No saver",
    "memory": "In memory",
    "sqlite": "SQLite",
    "command": "SQLite as the command line keeps it",
    "postgres": "Postgres",
}
Row = dict[str, Any]


def tables(rows: list[Row]) -> str:
    """Return for each place: CPU per step, storage and reading."""
    places = list(dict.fromkeys(tuple(row[key] for key in KEYS) for row in rows))
    groups = [[row for row in rows if tuple(row[key] for key in KEYS) == place] for place in places]
    return "\n\n".join(part for group in groups for part in (cpu(group), stored(group)) if part)


def title(row: Row) -> str:
    """Return a place in words."""
    durability = [f"durability `{row['durability']}`"] if row["durability"] else []
    return ", ".join([WORDS[row["place"]], *(["async"] if row["mode"] == "async" else []), *durability])


def by_agent(rows: list[Row], figure: Callable[[Row], str]) -> list[str]:
    """Return a table with a row for each agent and a column for each N."""
    sizes = sorted({row["n"] for row in rows})
    lines = [f"| | {' | '.join(f'N = {n}' for n in sizes)} |", f"|---|{'--:|' * len(sizes)}"]
    for agent in dict.fromkeys(row["agent"] for row in rows):
        cells = {row["n"]: figure(row) for row in rows if row["agent"] == agent}
        lines.append(f"| {agent} | {' | '.join(cells.get(n, '') for n in sizes)} |")
    return lines


def cpu(rows: list[Row]) -> str:
    """Return CPU ms per step, and the ratio to the handwritten graph."""
    hand = {row["n"]: row["ms"] for row in rows if row["agent"] == "hand"}

    def figure(row: Row) -> str:
        against = f" · {ratio(row['ms'], hand[row['n']]):.2f}" if row["n"] in hand else ""
        return f"{statistics.median(row['ms']):.2f}{against}"

    says = "CPU ms per model step · of hand" if hand else "CPU ms per model step"
    return "\n".join([f"**{title(rows[0])}**: {says}", "", *by_agent(rows, figure)])


def stored(rows: list[Row]) -> str:
    """Return megabytes, rows per step, and a `get_state`, if there are any."""
    if not any(row["resume"] or row["bytes"] for row in rows):
        return ""

    def figure(row: Row) -> str:
        steps = 2 * row["n"] + 2
        told = []
        if row["bytes"]:
            told += [f"{row['bytes'] / 1e6:.2f} MB"]
            told += [f"{row['checkpoints'] / steps:.2f} + {row['writes'] / steps:.2f}"]
        if row["resume"]:
            told += [f"{statistics.median(row['resume']):.1f} ms"]
        return " · ".join(told)

    parts = ["a thread · rows of `checkpoints` + `writes` a step"] if rows[0]["bytes"] else []
    parts += ["CPU of a `get_state`"] if rows[0]["resume"] else []
    return "\n".join([f"**{title(rows[0])}**: {' · '.join(parts)}", "", *by_agent(rows, figure)])
