"""The targets, compared with the measurements."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from parts.clock import ratio

Found = dict[str, Any]  # the parts of build/bench.json
OUR, HAND, PEER, FLOOR = "wakeloop parley", "hand", "create_agent + TodoList", "floor"


@dataclass(frozen=True)
class Target:
    """A figure that must not be above its limit."""

    what: str
    bound: float
    measured: Callable[[Found], float]
    unit: str = ""


def row(
    found: Found, agent: str, n: int, place: str = "none", mode: str = "sync", durability: str = ""
) -> Any:
    """Return the row of an agent in a setting."""
    wanted = {"agent": agent, "n": n, "place": place, "mode": mode, "durability": durability}
    return next(r for r in found["grid"] if all(r[key] == value for key, value in wanted.items()))


def step(base: str, n: int, *setting: str) -> Callable[[Found], float]:
    """Return CPU per model step relative to another agent in the same setting."""
    return lambda found: ratio(row(found, OUR, n, *setting)["ms"], row(found, base, n, *setting)["ms"])


def megabytes(n: int, place: str = "sqlite") -> Callable[[Found], float]:
    """Return the size of a thread."""
    return lambda found: float(row(found, OUR, n, place)["bytes"] / 1e6)


def exponent(small: int, large: int, place: str = "sqlite") -> Callable[[Found], float]:
    """Return how a thread grows between two sizes of the job: 1 is proportional, 2 is quadratic."""
    grown = lambda found: megabytes(large, place)(found) / megabytes(small, place)(found)  # noqa: E731
    return lambda found: math.log(grown(found)) / math.log(large / small)


def rows(table: str, n: int) -> Callable[[Found], float]:
    """Return the rows of a table relative to hand's."""
    return lambda found: float(row(found, OUR, n, "sqlite")[table] / row(found, HAND, n, "sqlite")[table])


def reading(pick: Callable[[list[float]], float]) -> Callable[[Found], float]:
    """Return `get_state` relative to hand's, over the points of a run."""
    return lambda found: pick([point["ratio"] for point in found["reading"]])


def width(found: Found) -> float:
    """Return the widest round relative to hand's."""
    most = max(r["width"] for r in found["rounds"])
    times = {r["agent"]: r["ms"] for r in found["rounds"] if r["width"] == most}
    return ratio(times[OUR], times[HAND])


def started(name: str) -> Callable[[Found], list[float]]:
    """Return CPU ms of an import or a start."""
    return lambda found: next(r["ms"] for r in found["starting"] if r["start"] == name)


def imported(name: str) -> Callable[[Found], float]:
    """Return an import relative to LangGraph's."""
    return lambda found: ratio(started(name)(found), started("import langgraph.graph")(found))


def crowd(base: str, figure: str) -> Callable[[Found], float]:
    """Return a figure of many threads at once, relative to another agent's."""

    def measured(found: Found) -> float:
        told = {r["agent"]: r[figure] for r in found["crowd"]}
        return ratio(told[OUR], told[base])

    return measured


def left(found: Found) -> float:
    """Return the threads that were not completed."""
    return float(max(r["threads"] - min(r["complete"]) for r in found["crowd"] if r["agent"] == OUR))


def targets(middle: int = 100, large: int = 500) -> Iterator[Target]:
    """Return all targets for the measured sizes; the limits are those of N = 100, 500 and 1000."""
    for base, bound in ((HAND, 0.95), (PEER, 0.35), (FLOOR, 1.3)):
        yield Target(f"CPU per step, no saver, N = {middle}, of {base}", bound, step(base, middle))
    for base, bound in ((HAND, 0.55), (FLOOR, 1.35)):
        yield Target(f"CPU per step, no saver, N = {large}, of {base}", bound, step(base, large))
    for n, bound in ((middle, 0.45), (large, 0.18)):
        yield Target(f"CPU per step, SQLite, N = {n}, of hand", bound, step(HAND, n, "sqlite"))
    sync = step(HAND, middle, "sqlite", "sync", "sync")
    yield Target(f"CPU per step, SQLite, durability sync, N = {middle}, of hand", 0.45, sync)
    yield Target(
        f"CPU per step, async, no saver, N = {middle}, of hand", 1.2, step(HAND, middle, "none", "async")
    )
    asynchronous = step(HAND, middle, "sqlite", "async")
    yield Target(f"CPU per step, AsyncSqlite, N = {middle}, of hand", 0.65, asynchronous)
    for n, bound in ((middle, 1.4), (large, 8.5)):
        yield Target(f"a thread on SQLite, N = {n}", bound, megabytes(n), " MB")
    grown = exponent(middle, 2 * large)
    yield Target(f"its growth exponent, N = {middle} to {2 * large}", 1.2, grown)
    grown = exponent(middle, 2 * large, "command")
    yield Target(f"the command's database, growth exponent, N = {middle} to {2 * large}", 1.2, grown)
    for n, bound in ((middle, 0.85), (large, 6.0)):
        yield Target(f"a thread in the command's database, N = {n}", bound, megabytes(n, "command"), " MB")
    yield Target(
        "`get_state` with 2,000 messages and more, median of the points, of hand",
        1.3,
        reading(statistics.median),
    )
    yield Target("the same at the worst point between snapshots", 2.0, reading(max))
    for table, bound in (("checkpoints", 1.1), ("writes", 1.3)):
        yield Target(f"rows of `{table}`, SQLite, N = {middle}, of hand", bound, rows(table, middle))
    yield Target("32 calls in one round, SQLite, of hand", 1.5, width)
    yield Target("`import wakeloop`, of `import langgraph.graph`", 1.05, imported("import wakeloop"))
    yield Target(
        "`wakeloop --help`", 300, lambda found: statistics.median(started("wakeloop --help")(found)), " ms"
    )
    yield Target("`wakeloop threads`, of `import langgraph.graph`", 1.0, imported("wakeloop threads"))
    first = "wakeloop run, its first line"
    yield Target(f"`{first}`", 300, lambda found: statistics.median(started(first)(found)), " ms")
    yield Target("1,000 threads at once, AsyncSqlite: not complete", 0, left)
    yield Target(f"the same, CPU per step, of {PEER}", 0.6, crowd(PEER, "ms"))
    yield Target("the same, memory of the process, of hand", 1.3, crowd(HAND, "peak"))


def table(found: Found, middle: int = 100, large: int = 500) -> str:
    """Return every target with its limit, figure and verdict; jobs of other sizes are not judged."""
    judged = (middle, large) == (100, 500)
    lines = ["| | target | measured | |", "|---|--:|--:|---|"]
    for target in targets(middle, large):
        try:
            value = target.measured(found)
        except (KeyError, StopIteration, ValueError):  # the part was not run, or a peer is not installed
            lines.append(f"| {target.what} | ≤ {target.bound:g}{target.unit} | | not measured |")
            continue
        met = ("met" if round(value, 2) <= target.bound else "**missed**") if judged else "another size"
        lines.append(
            f"| {target.what} | ≤ {target.bound:g}{target.unit} | {value:.2f}{target.unit} | {met} |"
        )
    return "\n".join(lines)
