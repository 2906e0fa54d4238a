"""Plots of the grid, as SVG: bytes, CPU per step, and resume time, each against N."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
COLOURS = {
    "while loop": "#999999",
    "floor": "#cccccc",
    "hand": "#444444",
    "create_react_agent": "#b07aa1",
    "create_agent + TodoList": "#e15759",
    "deepagents + TodoList": "#f28e2b",
    "wakeloop parley": "#00796b",
    "wakeloop loki": "#4db6ac",
    "wakeloop checklist": "#4e79a7",
    "wakeloop write_todos": "#a0cbe8",
}


def median(key: str) -> Callable[[Row], float | None]:
    """Return the median of a row's figures, if it has any."""
    return lambda row: statistics.median(row[key]) if row[key] else None


def megabytes(row: Row) -> float | None:
    """Return the size of a thread."""
    return row["bytes"] / 1e6 if row["bytes"] else None


PLOTS: dict[str, tuple[str, str, str, Callable[[Row], float | None]]] = {
    "bytes": ("A thread on SQLite", "MB", "sqlite", megabytes),
    "cpu": ("CPU per model step, no saver", "ms", "none", median("ms")),
    "cpu-sqlite": ("CPU per model step, SQLite", "ms", "sqlite", median("ms")),
    "resume": ("get_state at the end of the job, SQLite", "CPU ms", "sqlite", median("resume")),
}


def draw(rows: list[Row], folder: Path) -> list[Path]:
    """Write a file for each plot; the same figures give the same bytes."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "wakeloop", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, (title, unit, place, figure) in PLOTS.items():
        sizes = sorted({row["n"] for row in rows if row["place"] == place})
        if not sizes:
            continue
        picture, axes = plt.subplots(figsize=(6.4, 3.6))
        for agent, colour in COLOURS.items():
            points = [
                (row["n"], figure(row))
                for row in rows
                if (row["agent"], row["place"], row["mode"], row["durability"]) == (agent, place, "sync", "")
            ]
            points = sorted((n, value) for n, value in points if value is not None)
            if points:
                wide = 2.2 if agent == "wakeloop parley" else 1.1
                axes.plot(
                    *zip(*points, strict=True), "o-", label=agent, color=colour, linewidth=wide, markersize=3
                )
        axes.set(xscale="log", yscale="log", xlabel="todos (N)", ylabel=unit, title=title)
        axes.set_xticks(sizes, labels=map(str, sizes), minor=False)
        axes.minorticks_off()
        axes.grid(visible=True, linewidth=0.3)
        axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=8)
        files.append(folder / f"{name}.svg")
        picture.savefig(files[-1], bbox_inches="tight", metadata={"Date": None, "Creator": None})
        plt.close(picture)
    return files
