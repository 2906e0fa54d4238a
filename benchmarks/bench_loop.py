"""The loop compared with a handwritten graph and a plain while loop.

One job for all: plan N items, then for each a tool call and an update of the list, with a model that costs
nothing. Variants take turns inside one run, CPU time is counted, and the results are ratios.
"""

from __future__ import annotations

import argparse
import itertools
import operator
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from parts.agents import HAND, OUR, WHILE, Agent
from parts.hand import Graph
from parts.job import asked, steps
from parts.places import Kept, sqlite

THREADS = itertools.count()


@dataclass(frozen=True)
class Variant:
    """One way to do the job, the one that it is compared with, and where it keeps its threads."""

    name: str
    run: Callable[[], int]
    base: str
    kept: Kept


def variant(name: str, agent: Agent, n: int, base: str, kept: Kept) -> Variant:
    """Return an agent in a place; each run has its own thread."""
    return Variant(name, partial(finish, agent.graph(n, kept.saver)), base, kept)


def finish(graph: Graph, /) -> int:
    """Run a graph to its end and count the closed items."""
    config = {"configurable": {"thread_id": str(next(THREADS))}, "recursion_limit": 100_000}
    result = graph.invoke(asked(), config)
    return sum(todo["status"] == "completed" for todo in result["todos"])


def variants(n: int, stack: ExitStack) -> list[Variant]:
    """Return everything that is compared."""
    hand, our, none = stack.enter_context(sqlite()), stack.enter_context(sqlite()), Kept()
    return [
        variant("while loop", WHILE, n, "two nodes by hand", none),
        variant("two nodes by hand", HAND, n, "two nodes by hand", none),
        variant("wakeloop", OUR, n, "two nodes by hand", none),
        variant("two nodes, SQLite", HAND, n, "two nodes, SQLite", hand),
        variant("wakeloop, SQLite", OUR, n, "two nodes, SQLite", our),
    ]


def measure(n: int, repeat: int) -> None:
    """Print a row for each variant: CPU ms per model step, and the ratio to the hand-written graph."""
    with ExitStack() as stack:
        compared = variants(n, stack)
        for variant in compared:  # a warm-up, which also shows that all do the same work
            assert variant.run() == n
        times: dict[str, list[float]] = {variant.name: [] for variant in compared}
        for _ in range(repeat):
            for variant in compared:
                start = time.process_time()
                variant.run()
                times[variant.name].append((time.process_time() - start) * 1000 / steps(n))
        sizes = {v.name: v.kept.bytes / 1e6 / (repeat + 1) for v in compared if v.kept.bytes}

    print(f"\n{n} items, {steps(n)} model steps, median of {repeat}\n")
    print(f"{'':20}{'ms per step':>10}{'ratio':>8}{'MB a run':>10}")
    for variant in compared:
        taken = times[variant.name]
        ratio = statistics.median(map(operator.truediv, taken, times[variant.base]))
        size = f"{sizes[variant.name]:10.2f}" if variant.name in sizes else ""
        print(f"{variant.name:20}{statistics.median(taken):10.2f}{ratio:8.2f}{size}")


def main() -> None:
    """Read the sizes and measure each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[10, 100], help="numbers of items (10 100)")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each variant (5)")
    options = parser.parse_args()
    for n in options.sizes:
        measure(n, options.repeat)


if __name__ == "__main__":
    main()
