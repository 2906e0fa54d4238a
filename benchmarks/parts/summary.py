"""One table for users: this package compared with a handwritten graph and its peers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

from parts.targets import HAND, OUR, PEER, Found, row

COLUMNS = {OUR: "wakeloop", HAND: "two nodes by hand", PEER: PEER, "deepagents + TodoList": "Deep Agents"}


def cell(found: Found, agent: str, figure: Callable[[Any], str], *setting: Any) -> str:
    """Return the figure of an agent in a setting; a dash if it is missing."""
    try:
        return figure(row(found, agent, *setting))
    except (KeyError, StopIteration, TypeError, statistics.StatisticsError):
        return "–"


def lines(middle: int, large: int) -> Iterator[tuple[str, Callable[[Any], str], tuple[Any, ...]]]:
    """Return what each line of the table says, and where its figures are."""

    def step(told: Any) -> str:
        return f"{statistics.median(told['ms']):.2f} ms"

    def size(told: Any) -> str:
        return f"{told['bytes'] / 1e6:,.1f} MB"

    def read(told: Any) -> str:
        return f"{statistics.median(told['resume']):,.0f} ms"

    for n in (middle, large):
        yield f"CPU per model step, no saver, {n} items", step, (n,)
        yield f"CPU per model step, SQLite, {n} items", step, (n, "sqlite")
        yield f"the thread on SQLite, {n} items", size, (n, "sqlite")
        yield f"CPU of a `get_state` of it, {n} items", read, (n, "sqlite")
    yield f"CPU per model step, asynchronous SQLite, {middle} items", step, (middle, "sqlite", "async")


def table(found: Found, middle: int = 100, large: int = 500) -> str:
    """Return the lines by agent."""
    told = [f"| | {' | '.join(COLUMNS.values())} |", f"|---|{'--:|' * len(COLUMNS)}"]
    for what, figure, setting in lines(middle, large):
        cells = (cell(found, agent, figure, *setting) for agent in COLUMNS)
        told.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(told)
