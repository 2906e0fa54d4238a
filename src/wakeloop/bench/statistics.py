"""Intervals, paired differences, corrected comparisons.

Tasks (a family at a length) are resampled, and then the runs of each: runs of one task are alike, and a claim
is about tasks that were not in the study.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from operator import mul
from random import Random
from typing import Any, NamedTuple

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
