"""Intervals and corrections, checked against published values."""

from __future__ import annotations

import math

import pytest

from wakeloop.bench.figures import bootstrap_mean, correct_by_holm, flip_test, wilson_interval


@pytest.mark.parametrize(
    ("successes", "runs", "low", "high"),
    [
        # Newcombe, Statistics in Medicine 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ],
)
def test_wilson(successes: int, runs: int, low: float, high: float) -> None:
    found = wilson_interval(successes, runs)
    assert found.value == successes / runs
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_of_no_runs_nothing_is_known() -> None:
    found = wilson_interval(0, 0)
    assert math.isnan(found.value)
    assert (found.low, found.high) == (0, 1)


def test_holm() -> None:
    # Holm's example from R's documentation of p.adjust
    assert correct_by_holm({"a": 0.01, "b": 0.02, "c": 0.03, "d": 0.04}) == pytest.approx(
        {"a": 0.04, "b": 0.06, "c": 0.06, "d": 0.06}
    )
    assert correct_by_holm({"b": 0.5, "a": 0.001, "c": 0.9}) == pytest.approx(
        {"b": 1.0, "a": 0.003, "c": 1.0}
    )
    assert correct_by_holm({}) == {}


def test_the_bootstrap_is_seeded_and_resamples_whole_tasks() -> None:
    alike = {"a": [1.0] * 50, "b": [0.0] * 50}  # a hundred runs, but only two different ones
    found = bootstrap_mean(alike)
    assert found == bootstrap_mean(alike)
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)
    apart = bootstrap_mean({str(n): [float(n % 2)] for n in range(100)})
    assert apart.value == 0.5
    assert (round(apart.low, 1), round(apart.high, 1)) == (0.4, 0.6)


def test_the_bootstrap_of_one_task_resamples_its_runs() -> None:
    found = bootstrap_mean({"a": [0.0, 1.0] * 50})
    assert found.value == 0.5
    assert (round(found.low, 1), round(found.high, 1)) == (0.4, 0.6)


def test_fewer_than_five_runs_have_no_interval() -> None:
    assert bootstrap_mean({"a": [1.0] * 2, "b": [0.0] * 2}) == (0.5, -math.inf, math.inf)
    assert bootstrap_mean({"a": [1.0] * 5}) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("values", [{}, {"a": []}])
def test_the_bootstrap_of_nothing_is_not_a_number(values: dict[str, list[float]]) -> None:
    assert all(map(math.isnan, bootstrap_mean(values)))


@pytest.mark.parametrize(
    ("differences", "chance"),
    [
        ({str(task): [1.0, 1.0] for task in range(8)}, 2 / 2**8),  # counts tasks, though there are 16 runs
        ({"a": [1.0, 1.0], "b": [1.0, 1.0]}, 2 / 2**4),  # few tasks, so it counts runs
        ({"a": [1.0, -1.0]}, 1.0),
        ({"a": [0.0, 0.0]}, 1.0),
        ({}, 1.0),
        ({str(task): [1.0 if task else -1.0] for task in range(8)}, 18 / 2**8),  # one task disagrees
    ],
)
def test_flips(differences: dict[str, list[float]], chance: float) -> None:
    assert flip_test(differences) == pytest.approx(chance)


def test_many_tasks_use_the_normal_distribution() -> None:
    found = flip_test({str(task): [1.0 if task < 60 else -1.0] for task in range(100)})
    assert found == pytest.approx(0.0455, abs=1e-4)  # two standard deviations
