"""Intervals, paired differences, corrected comparisons.

What is resampled is the task (a family at a length) and, within it, its runs: runs of one task are alike, and
what is claimed is meant for tasks that were not in the study.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from operator import mul
from random import Random
from typing import Any, NamedTuple

Z = 1.959963984540054  # 95 % of a normal distribution, both sides
RESAMPLES = 1_000  # resamples
MIN_RUNS = 5  # runs of which an interval is told
TOLERANCE = 1e-9  # what sums of the same numbers may differ by
MOST_EXACT_FLIPS = 12  # groups of which every flip is tried: 4,096
MIN_TASKS = 8  # tasks from which on whole tasks are flipped, below it single runs

ByTask = Mapping[Any, Sequence[float]]


class Interval(NamedTuple):
    """A value and where it lies with 95 % confidence."""

    value: float
    low: float
    high: float


def wilson_interval(successes: int, runs: int) -> Interval:
    """Return a share with Wilson's interval; of no runs it is anything from 0 to 1."""
    if not runs:
        return Interval(math.nan, 0.0, 1.0)
    share, square = successes / runs, Z * Z / runs
    middle = (share + square / 2) / (1 + square)
    half = Z * math.sqrt(share * (1 - share) / runs + square / (4 * runs)) / (1 + square)
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == runs else min(1.0, middle + half)
    return Interval(share, low, high)


def bootstrap_mean(values: ByTask, seed: int = 0, times: int = RESAMPLES) -> Interval:
    """Return the mean of all runs with an interval: tasks are drawn again, and runs within each.

    Of fewer than five runs it may lie anywhere.
    """
    groups = [list(group) for group in values.values() if group]
    if not groups:
        return Interval(math.nan, math.nan, math.nan)
    if sum(map(len, groups)) < MIN_RUNS:
        return Interval(_mean(groups), -math.inf, math.inf)
    dice = Random(seed)  # noqa: S311 - resampling
    means = sorted(_mean_of_draw(groups, dice) for _ in range(times))
    low, high = (means[round(share * (times - 1))] for share in (0.025, 0.975))
    return Interval(_mean(groups), low, high)


def _mean_of_draw(groups: Sequence[Sequence[float]], dice: Random) -> float:
    drawn = dice.choices(groups, k=len(groups))
    return _mean([dice.choices(group, k=len(group)) for group in drawn])


def _mean(groups: Sequence[Sequence[float]]) -> float:
    return sum(map(sum, groups)) / sum(map(len, groups))


def flip_test(differences: ByTask) -> float:
    """Return how often a mean as far from 0 comes by chance: the signs of whole tasks are flipped.

    With fewer than eight tasks those of single runs: then it holds for these tasks alone. Up to twelve signs
    are flipped in every way, more as the normal distribution has it.
    """
    groups = [group for group in differences.values() if group]
    whole = len(groups) >= MIN_TASKS
    drawn = [sum(group) for group in groups] if whole else [d for group in groups for d in group]
    sums = [float(one) for one in drawn if one]
    if not sums:
        return 1.0
    far = abs(math.fsum(sums))
    if len(sums) > MOST_EXACT_FLIPS:
        return math.erfc(far / math.sqrt(2 * math.fsum(one * one for one in sums)))
    every: list[float] = [abs(sum(map(mul, sums, signs))) for signs in product((1, -1), repeat=len(sums))]
    return len([one for one in every if one >= far - TOLERANCE]) / len(every)


def correct_by_holm(chances: Mapping[str, float]) -> dict[str, float]:
    """Return the chances of several comparisons, corrected by Holm's method."""
    corrected: dict[str, float] = {}
    most = 0.0
    for place, name in enumerate(sorted(chances, key=lambda one: chances[one])):
        most = max(most, min(1.0, (len(chances) - place) * chances[name]))
        corrected[name] = most
    return {name: corrected[name] for name in chances}
