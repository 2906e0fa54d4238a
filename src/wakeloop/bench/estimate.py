"""Estimates the time and cost of a run before it starts."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from langchain_core.tools import BaseTool

from wakeloop.bench.cell import play_cell
from wakeloop.bench.journal import Row
from wakeloop.bench.models import WEAK, is_weak
from wakeloop.bench.plan import Cell, is_own_task, make_task
from wakeloop.bench.study import Study
from wakeloop.bench.task import Task

SAMPLE = 3  # cells played for each agent, length and size of results
SECONDS_PER_REQUEST = 3.0  # of a real model
PROGRAM_TOOL = "run_python"


class Estimate(NamedTuple):
    """The expected totals of some cells with a reliable model, and the most requests they can make."""

    cells: int
    requests: float
    input: float
    cached: float
    output: float
    cost: float
    seconds: float
    most_requests: int


def estimate_run(
    study: Study, ahead: Sequence[Cell], workers: int, a_request: float = SECONDS_PER_REQUEST
) -> Estimate:
    """Play a sample of the cells offline, with a reliable weak model, and multiply.

    Nothing of a user's own task is run: its checks count as passed, its programs as silent.
    """
    groups: dict[tuple[str, int, int], list[Cell]] = defaultdict(list)
    for cell in ahead:
        groups[cell.agent, cell.parts, cell.results].append(cell)
    total = dict.fromkeys(("requests", "input", "cached", "output", "cost", "seconds"), 0.0)
    for some in groups.values():
        rows = _play_sample(some, study)
        for name in ("requests", "input", "cached", "output"):
            total[name] += len(some) * _mean(rows, name)
        total["cost"] += len(some) * sum(map(study.prices.cost, rows)) / max(1, len(rows))
        real = sum(not is_weak(cell.model) for cell in some)
        total["seconds"] += len(some) * _mean(rows, "seconds") + real * _mean(rows, "requests") * a_request
    total["seconds"] /= workers
    return Estimate(len(ahead), **total, most_requests=len(ahead) * study.max_requests)


def _play_sample(some: Sequence[Cell], study: Study) -> list[Row]:
    apart = max(1, len(some) // SAMPLE)
    return [play_cell(cell._replace(model=WEAK), study, find=_inert_task) for cell in some[::apart][:SAMPLE]]


def _inert_task(cell: Cell) -> Task:
    """Return a cell's task; of a user's own task nothing is run."""
    task = make_task(cell)
    if not is_own_task(cell.family):
        return task
    return replace(
        task, check=lambda _world: [], tools=lambda folder: [*map(_inert_tool, task.tools(folder))]
    )


def _inert_tool(tool: BaseTool) -> BaseTool:
    """Return the same tool; the one for programs runs nothing and reports success."""
    if tool.name != PROGRAM_TOOL:
        return tool
    return tool.model_copy(update={"func": lambda **_: "Exit code 0.\n"})


def _mean(rows: Sequence[Row], name: str) -> float:
    return sum(float(row[name]) for row in rows) / max(1, len(rows))
