"""The weak model's habit of stopping, written a second time, without graph, list or messages.

There are 20 items, each with its own call and close; a reply stops with some probability, which rises after
a stop. The rules are those of a list with 25 wakes, 3 idle ones, one correction that re-arms nothing, and no
forced calls. It prints the completed jobs, next to those of the weak model in the graph: the table of
docs/bench-tasks.md.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from wakeloop import create_todo_agent, preset
from wakeloop.bench.families import FAMILIES
from wakeloop.bench.figures import wilson_interval
from wakeloop.bench.task import is_complete
from wakeloop.testing.knobs import Knobs
from wakeloop.testing.weak_model import WeakModel

ITEMS, WAKES, IDLE, MOST = 20, 25, 3, 0.9
CELLS = ((0.1, 0.0), (0.2, 0.0), (0.3, 0.0), (0.5, 0.0), (0.1, 0.3), (0.3, 0.3))
SETTINGS = {
    "max_idle_wakes": IDLE,
    "max_wake_cycles": WAKES,
    "earn_wakes": 0,
    "guard_rearms": False,
    "force_call": "never",
}


@dataclass
class Run:
    """A job of two replies per item, between the plan and the last word."""

    dice: Random
    stop: float
    stick: float
    left: int = 2 * ITEMS
    requests: int = 1  # the plan
    stopped: bool = False

    def turn(self) -> int:
        """Reply until a reply stops, and return the number of steps."""
        before = self.left
        while True:
            self.requests += 1
            chance = min(MOST, self.stop + self.stick * self.stopped)
            self.stopped = self.left > 0 and self.dice.random() < chance
            if self.stopped or not self.left:
                return before - self.left
            self.left -= 1

    def played(self) -> bool:
        """Return whether the job is done in the end."""
        self.turn()
        wakes = idle = 0
        while self.left and wakes < WAKES and idle < IDLE:
            wakes += 1
            idle = 0 if self.turn() else idle + 1
        if self.left:
            self.turn()  # the correction's turn
        return not self.left


def simulated(stop: float, stick: float, runs: int) -> tuple[float, float]:
    """Return the share of completed jobs, and requests per run."""
    every = [Run(Random(seed), stop, stick) for seed in range(runs)]
    done = sum(run.played() for run in every)
    return done / runs, sum(run.requests for run in every) / runs


def in_the_graph(stop: float, stick: float, runs: int) -> tuple[int, float]:
    """Return the jobs that the weak model completes in the graph, and requests per run."""
    settings = preset("wakeloop").model_copy(update=SETTINGS)
    knobs = Knobs(stop=stop, stick=stick, replies=2, plan_beside=False)
    done = requests = 0
    for seed in range(runs):
        task = FAMILIES["make-files"].make(seed, ITEMS)
        with TemporaryDirectory() as name:
            world = Path(name)
            task.lay_out(world)
            model = WeakModel(task, seed, knobs)
            agent = create_todo_agent(model, task.tools(world), settings=settings)
            agent.invoke({"messages": [("user", task.prompt)]}, {"recursion_limit": 2_000})
            done += is_complete(task.checks(world, task.final))
            requests += len(model.requests)
    return done, requests / runs


def table(runs: int, simulations: int) -> str:
    """Return the table as the documentation shows it."""
    rows = []
    for stop, stick in CELLS:
        done, requests = in_the_graph(stop, stick, runs)
        share, low, high = wilson_interval(done, runs)
        other, theirs = simulated(stop, stick, simulations)
        graph = f"{100 * share:.1f} | {100 * low:.0f} to {100 * high:.0f} | {requests:.1f}"
        rows.append(f"| {stop:g}, {stick:g} | {graph} | {100 * other:.1f} | {theirs:.1f} |")
    head = "| `stop`, `stick` | completed | interval | requests | written again: completed | requests |"
    return "\n".join([head, "|---|--:|--:|--:|--:|--:|", *rows])


def main() -> None:
    """Play both and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="?", type=int, default=100, help="runs of a cell in the graph (100)")
    print(table(parser.parse_args().runs, 4_000))


if __name__ == "__main__":
    main()
