"""The figures of rows: by agent, and paired.

Tasks (a family at a length) are resampled, and then the runs of each: runs of one task are alike, and a claim
is about tasks that were not in the study.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import mul
from random import Random
from typing import Any, NamedTuple

from wakeloop.bench.journal import Row
from wakeloop.bench.study import Cell, Study

Z = 1.959963984540054  # 95 % of a normal distribution, both sides
RESAMPLES = 1_000
MIN_RUNS = 5  # runs; fewer have no interval
TOLERANCE = 1e-9  # the difference of sums of the same numbers in another order
MOST_EXACT_FLIPS = 12  # signs of which every combination is tried: 4,096
MIN_TASKS = 8  # tasks; with fewer of them single runs are flipped, not whole tasks

ByTask = Mapping[Any, Sequence[float]]


class Interval(NamedTuple):
    """A value with its 95 % confidence interval."""

    value: float
    low: float
    high: float


def wilson_interval(successes: int, runs: int) -> Interval:
    """Return a share with Wilson's interval, which is 0 to 1 if there are no runs."""
    if not runs:
        return Interval(math.nan, 0.0, 1.0)
    share, square = successes / runs, Z * Z / runs
    middle = (share + square / 2) / (1 + square)
    half = Z * math.sqrt(share * (1 - share) / runs + square / (4 * runs)) / (1 + square)
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == runs else min(1.0, middle + half)
    return Interval(share, low, high)


def bootstrap_mean(values: ByTask, seed: int = 0, times: int = RESAMPLES) -> Interval:
    """Return the mean of all runs with an interval: tasks are resampled, and runs within each.

    With fewer than five runs the interval is infinite.
    """
    groups = [list(group) for group in values.values() if group]
    if not groups:
        return Interval(math.nan, math.nan, math.nan)
    if sum(map(len, groups)) < MIN_RUNS:
        return Interval(_mean(groups), -math.inf, math.inf)
    dice = Random(seed)  # noqa: S311 - resampling
    means = sorted(_mean_of_draw(groups, dice) for _ in range(times))
    low, high = round(0.025 * (times - 1)), round(0.975 * (times - 1))
    return Interval(_mean(groups), means[low], means[high])


def _mean_of_draw(groups: Sequence[Sequence[float]], dice: Random) -> float:
    drawn = dice.choices(groups, k=len(groups))
    return _mean([dice.choices(group, k=len(group)) for group in drawn])


def _mean(groups: Sequence[Sequence[float]]) -> float:
    return sum(map(sum, groups)) / sum(map(len, groups))


def flip_test(differences: ByTask) -> float:
    """Return the probability of a mean as far from 0 by chance, from flipping the signs of whole tasks.

    With fewer than eight tasks the signs of single runs are flipped; then it holds for these tasks alone. Up
    to twelve signs are flipped in every combination; for more the normal distribution is used.
    """
    groups = [group for group in differences.values() if group]
    drawn: list[float] = []
    for group in groups:
        if len(groups) >= MIN_TASKS:
            drawn.append(sum(group))
        else:
            drawn += group
    sums = [*filter(None, drawn)]
    if not sums:
        return 1.0
    far = abs(math.fsum(sums))
    if len(sums) > MOST_EXACT_FLIPS:
        return math.erfc(far / math.sqrt(2 * math.fsum(one * one for one in sums)))
    hits = 0
    for signs in product((1, -1), repeat=len(sums)):
        hits += abs(sum(map(mul, sums, signs))) >= far - TOLERANCE
    return float(hits / 2 ** len(sums))


def correct_by_holm(chances: Mapping[str, float]) -> dict[str, float]:
    """Return the chances of several comparisons, corrected by Holm's method."""
    corrected: dict[str, float] = {}
    most = 0.0
    for place, name in enumerate(sorted(chances, key=lambda one: chances[one])):
        most = max(most, min(1.0, (len(chances) - place) * chances[name]))
        corrected[name] = most
    return {name: corrected[name] for name in chances}


Figure = Callable[[Row], float]
TaskKey = tuple[str, int, int]


@dataclass(frozen=True)
class Figures:
    """The figures of some rows of one agent: shares from 0 to 1, the requests per run, the cost."""

    runs: int
    completed: Interval
    false_signal: float
    damage: float
    requests: float
    cost_completed: float


def is_early_stop(row: Row) -> bool:
    """Return whether the run ended by itself with work left."""
    return row["end"] in ("done", "open") and not row["completed"]


def is_false_claim(row: Row) -> bool:
    """Return whether the last text wrongly says that everything is done."""
    return bool(row["claims"]) and not row["completed"]


def is_false_signal(row: Row) -> bool:
    """Return whether the result for a program wrongly says that everything is done."""
    return row["end"] == "done" and not row["completed"]


def is_hidden_failure(row: Row) -> bool:
    """Return whether a call failed although the run was reported as a success."""
    return bool(row["failed"]) and (row["end"] == "done" or bool(row["claims"]))


def is_damaged(row: Row) -> bool:
    """Return whether something was damaged after the job was done."""
    return bool(row["damage"])


def average(rows: Sequence[Row], figure: Figure) -> float:
    """Return the mean of a figure over rows."""
    return sum(map(figure, rows)) / len(rows) if rows else math.nan


def compute_figures(rows: Sequence[Row], study: Study) -> Figures:
    """Return the figures of rows."""
    completed = sum(row["completed"] for row in rows)
    cost = sum(map(study.prices.cost, rows))
    return Figures(
        runs=len(rows),
        completed=wilson_interval(completed, len(rows)),
        false_signal=average(rows, is_false_signal),
        damage=average(rows, is_damaged),
        requests=average(rows, lambda row: row["requests"]),
        cost_completed=cost / completed if completed else math.inf,
    )


# -- pairs ------------------------------------------------------------------------------------------------


class Comparison(NamedTuple):
    """Two agents on one model: the difference of a figure, paired by task and seed."""

    model: str
    agent: str
    pairs: int
    difference: Interval
    chance: float


def group_rows(rows: Iterable[Row], *keys: str) -> dict[tuple[object, ...], list[Row]]:
    """Return rows in groups, in the order of their first rows."""
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(map(row.__getitem__, keys))].append(row)
    return dict(groups)


def group_names(rows: Iterable[Row], key: str) -> list[str]:
    """Return the values of a key, in the order of their first rows."""
    return [str(name) for (name,) in group_rows(rows, key)]


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
    """Compare every other agent with this one on each model; Holm's method corrects the chances."""
    groups = group_rows(rows, "model", "agent")
    raw = []
    for (model, other), group in groups.items():
        if other != agent and (model, agent) in groups:
            found = paired_differences(group, groups[model, agent], figure)
            pairs = sum(map(len, found.values()))
            raw.append(Comparison(str(model), str(other), pairs, bootstrap_mean(found), flip_test(found)))
    chances = correct_by_holm({f"{one.model}\n{one.agent}": one.chance for one in raw})
    return [one._replace(chance=chances[f"{one.model}\n{one.agent}"]) for one in raw]


def primary_outcome(study: Study) -> Figure:
    """Return the figure that a study is judged by."""
    return lambda row: float(row[study.primary])


def completion(row: Row) -> float:
    """Return 1.0 if the job was completed, otherwise 0.0."""
    return float(row["completed"])


def smallest_margin(study: Study) -> float:
    """Return the smallest difference in completed work that matters."""
    return 0.0 if study.primary == "requests" else study.smallest


def judge_difference(one: Comparison, study: Study) -> str:
    """Return the verdict of a comparison. A few equal pairs do not show that there is no difference."""
    if one.chance > 0.05:  # noqa: PLR2004 - as everywhere
        far = max(abs(one.difference.low), abs(one.difference.high))
        if not far and study.primary != "requests":
            far = wilson_interval(0, one.pairs).high
        if far < study.smallest:
            return "no difference that matters"
        return "no difference shown"
    if abs(one.difference.value) < study.smallest:
        return "a difference too small to matter"
    return "more" if one.difference.value > 0 else "less"


# -- losses -----------------------------------------------------------------------------------------------


class Loss(NamedTuple):
    """A figure in which other agents beat ours: the best of them, and the number of the others."""

    model: str
    results: int
    figure: str
    agent: str
    others: int
    theirs: float
    ours: float
    difference: Interval


def find_losses(rows: Sequence[Row], study: Study) -> list[Loss]:
    """Return every figure in which others beat the study's subject with an interval that excludes 0.

    Each size of tool results is judged alone: an agent may cost more at one size and less at another. In
    requests and spending only agents count that complete something, and no less than the subject: doing
    nothing is always cheaper.
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
            is_loss = difference.high < 0 if sign > 0 else difference.low > 0
            if is_loss:
                its, own = average(theirs, figure), average(ours, figure)
                results = theirs[0]["results"]
                loss = Loss(str(model), results, name, str(other), 0, its, own, difference)
                found[model, size, name].append(loss)
    best = []
    for losses in found.values():
        worst = max(losses, key=lambda loss: abs(loss.difference.value))
        best.append(worst._replace(others=len(losses) - 1))
    order = [*LOSS_FIGURES, COST_NAME]
    return sorted(best, key=lambda loss: (order.index(loss.figure), -abs(loss.difference.value)))


LOSS_FIGURES: dict[str, tuple[Figure, int]] = {
    "completed": (completion, 1),
    "damage after completion": (is_damaged, -1),
    "requests": (lambda row: float(row["requests"]), -1),
    "tokens in": (lambda row: float(row["input"]), -1),
}
COST_NAME = "spent"
COST_FIGURES = ("requests", "tokens in", COST_NAME)
