"""What a run will take, before it is begun."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from wakeloop.bench.agents import agent_named
from wakeloop.bench.cell import play
from wakeloop.bench.journal import Row
from wakeloop.bench.models import WEAK, is_weak
from wakeloop.bench.plan import Cell
from wakeloop.bench.study import Study

SAMPLE = 3  # cells played for each agent, length and size of results
USUAL = 3.0  # seconds that a request to a real model takes


class Estimate(NamedTuple):
    """What cells will take with a model that stops at nothing and forgets nothing; and at most."""

    cells: int
    requests: float
    input: float
    cached: float
    output: float
    cost: float
    seconds: float
    most_requests: int


def estimate(study: Study, ahead: Sequence[Cell], workers: int, a_request: float = USUAL) -> Estimate:
    """Play some of the cells with the weak model at its best, offline, and multiply.

    An agent whose package is not in this environment counts like the others on the same tasks; where there
    are none, like the plain loop.
    """
    groups: dict[tuple[str, int, int], list[Cell]] = defaultdict(list)
    for cell in ahead:
        groups[cell.agent, cell.parts, cell.results].append(cell)
    played = {key: _played(some, study) for key, some in groups.items()}
    total = dict.fromkeys(("requests", "input", "cached", "output", "cost", "seconds"), 0.0)
    for (agent, parts, results), some in groups.items():
        rows = played[agent, parts, results] or _alike(played, parts, results) or _plain(some, study)
        for name in ("requests", "input", "cached", "output"):
            total[name] += len(some) * _mean(rows, name)
        total["cost"] += len(some) * sum(map(study.prices.cost, rows)) / max(1, len(rows))
        real = sum(not is_weak(cell.model) for cell in some)
        total["seconds"] += len(some) * _mean(rows, "seconds") + real * _mean(rows, "requests") * a_request
    total["seconds"] /= workers
    return Estimate(len(ahead), **total, most_requests=len(ahead) * study.max_requests)


def _played(some: Sequence[Cell], study: Study) -> list[Row]:
    peer = agent_named(some[0].agent).peer
    if peer is not None and not peer.is_here:
        return []
    apart = max(1, len(some) // SAMPLE)
    return [play(cell._replace(model=WEAK), study) for cell in some[::apart][:SAMPLE]]


def _plain(some: Sequence[Cell], study: Study) -> list[Row]:
    return _played([cell._replace(agent="plain") for cell in some], study)


def _alike(played: dict[tuple[str, int, int], list[Row]], parts: int, results: int) -> list[Row]:
    return [row for (_, *size), rows in played.items() if size == [parts, results] for row in rows]


def _mean(rows: Sequence[Row], name: str) -> float:
    return sum(float(row[name]) for row in rows) / max(1, len(rows))
