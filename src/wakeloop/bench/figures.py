"""The figures of rows: by agent, paired, at equal spend."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wakeloop.bench.journal import Row
from wakeloop.bench.plan import Cell
from wakeloop.bench.statistics import Interval, bootstrap_mean, correct_by_holm, flip_test, wilson_interval
from wakeloop.bench.study import Study

Figure = Callable[[Row], float]
TaskKey = tuple[str, int, int]


@dataclass(frozen=True)
class Figures:
    """What some rows of one agent come to; shares are of 1, the rest are means a run."""

    runs: int
    completed: Interval
    share: float
    listed: float
    early: float
    false_text: float
    false_signal: float
    damage: float
    failed: float
    stopped: float
    requests: float
    input: float
    cached: float
    output: float
    seconds: float
    cost: float
    cost_completed: float


def is_early_stop(row: Row) -> bool:
    """It ended by itself with work left."""
    return row["end"] in ("done", "open") and not row["completed"]


def is_false_claim(row: Row) -> bool:
    """Its last text says that all is done, and it is not."""
    return bool(row["claims"]) and not row["completed"]


def is_false_signal(row: Row) -> bool:
    """What a program reads says that all is done, and it is not."""
    return row["end"] == "done" and not row["completed"]


def is_hidden_failure(row: Row) -> bool:
    """A call failed, and the run was reported as a success."""
    return bool(row["failed"]) and (row["end"] == "done" or bool(row["claims"]))


def compute_figures(rows: Sequence[Row], study: Study) -> Figures:
    """Return the figures of rows."""
    completed = sum(row["completed"] for row in rows)
    cost = sum(map(study.prices.cost, rows))

    def mean(figure: Figure) -> float:
        return sum(map(figure, rows)) / len(rows) if rows else math.nan

    return Figures(
        runs=len(rows),
        completed=wilson_interval(completed, len(rows)),
        share=mean(lambda row: row["share"]),
        listed=mean(lambda row: row["listed"] > 0),
        early=mean(is_early_stop),
        false_text=mean(is_false_claim),
        false_signal=mean(is_false_signal),
        damage=mean(lambda row: row["damage"] > 0),
        failed=mean(is_hidden_failure),
        stopped=mean(lambda row: row["end"] in ("ceiling", "error")),
        requests=mean(lambda row: row["requests"]),
        input=mean(lambda row: row["input"]),
        cached=mean(lambda row: row["cached"]),
        output=mean(lambda row: row["output"]),
        seconds=mean(lambda row: row["seconds"]),
        cost=mean(study.prices.cost),
        cost_completed=cost / completed if completed else math.inf,
    )


# -- pairs ------------------------------------------------------------------------------------------------


class Comparison(NamedTuple):
    """An agent beside another on one model: the difference of a figure, paired by task and seed."""

    model: str
    agent: str
    pairs: int
    difference: Interval
    chance: float


def group_rows(rows: Iterable[Row], *keys: str) -> dict[tuple[object, ...], list[Row]]:
    """Return rows in groups, in the order of their first."""
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return dict(groups)


def paired_differences(
    rows: Sequence[Row], others: Sequence[Row], figure: Figure
) -> dict[TaskKey, list[float]]:
    """Return the differences of a figure by task, for every task and seed that both have."""
    known = {(Cell.of(row).task, row["seed"]): figure(row) for row in others}
    found: dict[TaskKey, list[float]] = defaultdict(list)
    for row in rows:
        task = Cell.of(row).task
        if (task, row["seed"]) in known:
            found[task].append(figure(row) - known[task, row["seed"]])
    return dict(found)


def compare_agents(rows: Sequence[Row], agent: str, figure: Figure) -> list[Comparison]:
    """Return every other agent beside this one, on each model; chances are corrected by Holm together."""
    groups = group_rows(rows, "model", "agent")
    raw = []
    for (model, other), group in groups.items():
        if other != agent and (model, agent) in groups:
            found = paired_differences(group, groups[model, agent], figure)
            raw.append(
                Comparison(
                    str(model),
                    str(other),
                    sum(map(len, found.values())),
                    bootstrap_mean(found),
                    flip_test(found),
                )
            )
    chances = correct_by_holm({f"{one.model}\n{one.agent}": one.chance for one in raw})
    return [one._replace(chance=chances[f"{one.model}\n{one.agent}"]) for one in raw]


def primary_outcome(study: Study) -> Figure:
    """Return the outcome that a study is judged by."""
    return lambda row: float(row[study.primary])


def completion(row: Row) -> float:
    """Whether the job was completed."""
    return float(row["completed"])


def smallest_margin(study: Study) -> float:
    """Return the smallest difference in what is completed that matters."""
    return 0.0 if study.primary == "requests" else study.smallest


def judge_difference(one: Comparison, study: Study) -> str:
    """Say what a comparison came to. Of a share that is the same in every pair, a few pairs show little."""
    if one.chance > 0.05:  # noqa: PLR2004 - as everywhere
        far = max(abs(one.difference.low), abs(one.difference.high))
        if not far and study.primary != "requests":
            far = wilson_interval(0, one.pairs).high
        small = far < study.smallest
        return "no difference that matters" if small else "no difference shown"
    if abs(one.difference.value) < study.smallest:
        return "a difference too small to matter"
    return "more" if one.difference.value > 0 else "less"


# -- equal spend ------------------------------------------------------------------------------------------


def completed_within(
    rows: Sequence[Row], study: Study, budgets: Mapping[TaskKey, float], times: float
) -> Interval:
    """Return the share that was completed for no more than so many times the budget of its task."""
    inside = [row for row in rows if Cell.of(row).task in budgets]
    hits = sum(
        row["completed"] and study.prices.cost(row) <= times * budgets[Cell.of(row).task] for row in inside
    )
    return wilson_interval(hits, len(inside))


def average_budgets(rows: Sequence[Row], study: Study) -> dict[TaskKey, float]:
    """Return what an agent spent on each task, on average."""
    by_task: dict[TaskKey, list[float]] = defaultdict(list)
    for row in rows:
        by_task[Cell.of(row).task].append(study.prices.cost(row))
    return {task: sum(costs) / len(costs) for task, costs in by_task.items()}


# -- losses -----------------------------------------------------------------------------------------------


class Loss(NamedTuple):
    """Where another agent does better than ours; of several the best, and how many they are."""

    model: str
    results: int
    figure: str
    agent: str
    others: int
    theirs: float
    ours: float
    difference: Interval


def find_losses(rows: Sequence[Row], study: Study) -> list[Loss]:
    """Return every figure in which others beat the study's subject, the interval beyond 0.

    Sizes of the tools' results are looked at one by one: what is dearer at one may be cheaper at another. In
    requests and spending only such as complete something, and no less: who does nothing is always cheaper.
    """
    groups = group_rows(rows, "model", "results", "agent")
    found: dict[tuple[object, ...], list[Loss]] = defaultdict(list)
    for (model, size, other), theirs in groups.items():
        ours = groups.get((model, size, study.subject), [])
        if other == study.subject or not ours:
            continue
        more = bootstrap_mean(paired_differences(ours, theirs, completion)).value
        does_as_much = more <= smallest_margin(study) and any(row["completed"] for row in theirs)
        for name, (figure, sign) in {**LOSS_FIGURES, COST_NAME: (study.prices.cost, -1)}.items():
            if name in COST_FIGURES and not does_as_much:
                continue
            difference = bootstrap_mean(paired_differences(ours, theirs, figure))
            if difference.high < 0 if sign > 0 else difference.low > 0:
                its, own = (sum(map(figure, some)) / len(some) for some in (theirs, ours))
                results = theirs[0]["results"]
                loss = Loss(str(model), results, name, str(other), 0, its, own, difference)
                found[model, size, name].append(loss)
    best = [
        max(some, key=lambda loss: abs(loss.difference.value))._replace(others=len(some) - 1)
        for some in found.values()
    ]
    order = [*LOSS_FIGURES, COST_NAME]
    return sorted(best, key=lambda loss: (order.index(loss.figure), -abs(loss.difference.value)))


LOSS_FIGURES: dict[str, tuple[Figure, int]] = {
    "completed": (completion, 1),
    "damage after completion": (lambda row: float(row["damage"] > 0), -1),
    "requests": (lambda row: float(row["requests"]), -1),
    "tokens in": (lambda row: float(row["input"]), -1),
}
COST_NAME = "spent"
COST_FIGURES = ("requests", "tokens in", COST_NAME)
