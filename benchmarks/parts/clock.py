"""Measuring: a cell is an agent with a job of some size, in a place."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from parts.agents import Agent, arun, check, config, run
from parts.job import steps
from parts.places import ASYNC_PLACES, PLACES

WARM = 10  # items of the run that is not counted
READS = 3


@dataclass(frozen=True)
class Setting:
    """What a group of agents has in common: their figures are compared with each other."""

    n: int
    place: str = "none"
    mode: str = "sync"
    durability: str = ""

    @property
    def options(self) -> dict[str, Any]:
        """Return keyword arguments for `invoke`."""
        return {"durability": self.durability} if self.durability else {}


@dataclass
class Figures:
    """The results of one cell's runs: CPU ms per model step, ms of a `get_state`, and storage."""

    agent: str
    setting: Setting
    ms: list[float] = field(default_factory=list)
    resume: list[float] = field(default_factory=list)
    bytes: int | None = None
    checkpoints: int | None = None
    writes: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return them as plain JSON."""
        told = asdict(self)
        return {"agent": told.pop("agent"), **told.pop("setting"), **told}

    def stored(self, kept: Any) -> None:
        """Record the size of a thread, which is the same in every run."""
        if kept.file is not None:
            self.bytes = kept.bytes
            self.checkpoints, self.writes = kept.rows("checkpoints"), kept.rows("writes")


def spent(start: float) -> float:
    """Return the CPU ms of this process since then, in all its threads."""
    return (time.process_time() - start) * 1000


def once(agent: Agent, setting: Setting, figures: Figures, places: dict[str, Any]) -> None:
    """Do the job once, in a new place."""
    with places[setting.place]() as kept:
        graph = agent.graph(setting.n, kept.saver)
        gc.collect()
        start = time.process_time()
        state = run(graph, **setting.options)
        figures.ms.append(spent(start) / steps(setting.n))
        check(agent, setting.n, state)
        if kept.saver is not None:
            fresh, times = agent.graph(setting.n, kept.saver), []
            for _ in range(READS):
                start = time.process_time()
                assert len(fresh.get_state(config("1")).values["messages"]) == len(state["messages"])
                times.append(spent(start))
            figures.resume.append(statistics.median(times))
        figures.stored(kept)


async def aonce(agent: Agent, setting: Setting, figures: Figures) -> None:
    """The same, awaited."""
    async with ASYNC_PLACES[setting.place]() as kept:
        graph = agent.graph(setting.n, kept.saver, awaits=True)
        gc.collect()
        start = time.process_time()
        state = await arun(graph, **setting.options)
        figures.ms.append(spent(start) / steps(setting.n))
        check(agent, setting.n, state)
        figures.stored(kept)


@dataclass(frozen=True)
class Group:
    """Agents in one setting, with the rounds that each of them takes part in."""

    setting: Setting
    rounds: dict[Agent, int]

    def measured(self, more: dict[str, Any]) -> Iterable[Figures]:
        """Let the agents take turns; `more` are places that have to be opened first."""
        rounds = {agent: count for agent, count in self.rounds.items() if agent.installed}
        warm = Setting(min(WARM, self.setting.n), *list(asdict(self.setting).values())[1:])
        for agent in rounds:
            self.turn(agent, warm, Figures(agent.name, warm), more)
        found = {agent: Figures(agent.name, self.setting) for agent in rounds}
        for turn in range(max(rounds.values())):
            for agent, count in rounds.items():
                if turn < count:
                    self.turn(agent, self.setting, found[agent], more)
        return found.values()

    def turn(self, agent: Agent, setting: Setting, figures: Figures, more: dict[str, Any]) -> None:
        """One run, sync or async."""
        if setting.mode == "sync":
            once(agent, setting, figures, PLACES | more)
        else:
            asyncio.run(aonce(agent, setting, figures))


def ratio(ours: list[float], other: list[float]) -> float:
    """Return the median of the ratios of runs next to each other."""
    return statistics.median(a / b for a, b in zip(ours, other, strict=False))
