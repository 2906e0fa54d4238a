"""The tables of a page, word for word."""

from __future__ import annotations

from typing import Any

from rows import STUDY, row

from wakeloop.bench import tables

FAILED = {"completed": False, "share": 0.5, "input": 3000, "requests": 8}
ROWS: list[dict[str, Any]] = [
    *(
        row("plain", seed, model=model, **(FAILED if seed > 5 else {}))
        for model in ("weak", "other")
        for seed in range(1, 11)
    ),
    *(row("wakeloop", seed, requests=4, input=1600) for seed in range(1, 11)),
]


def test_cost_of_a_completed_job_first_then_completed_and_requests() -> None:
    """`plain` spends 1,040 when it completes and 3,040 when it does not: 4,080 per completed job."""
    assert (
        tables.overview_table(ROWS, STUDY)
        == """\
| agent | `weak` | `other` |
|---|--:|--:|
| `plain` | 1.00 · 50% (5), 50% falsely done | 1.00 · 50% (5), 50% falsely done |
| `wakeloop` | 0.40 · 100% (4) |  |"""
    )
    assert tables.agents_table(ROWS, STUDY).splitlines()[2].startswith("| agent | cost of a completed job | ")


def test_the_spending_of_a_model_that_costs_nothing() -> None:
    free = STUDY.with_changes(prices={"input": 0, "cached": 0, "output": 0})
    assert tables.overview_table(ROWS[:5], free).splitlines()[2:] == ["| `plain` |  · 100% (2) |"]


def test_by_size_of_results() -> None:
    dear = [one | {"results": 2000, "input": 3000} for one in ROWS if one["agent"] == "wakeloop"]
    cheap = [one | {"results": 2000} for one in ROWS[:5]]
    text = tables.tables_by_size([*ROWS, *dear, *cheap], STUDY, tables.overview_table)
    assert [line for line in text.splitlines() if line.startswith("**")] == [
        "**Results of 0 tokens**",
        "**Results of 2,000 tokens**",
    ]
    assert text.splitlines()[-2:] == ["| `wakeloop` | 2.92 · 100% (4) |", "| `plain` | 1.00 · 100% (2) |"]


def test_damage_is_shown_next_to_completion() -> None:
    harmed = [row("plain", seed, damage=int(seed > 1), completed=seed == 1) for seed in range(1, 5)]
    assert (
        tables.overview_table(harmed, STUDY).splitlines()[-1]
        == "| `plain` | 1.00 · 25% (2), 75% falsely done, 75% damaged |"
    )


def test_comparisons_leave_out_the_reference() -> None:
    text = tables.comparison_table(ROWS, STUDY)
    assert text.startswith("More points than `plain`, with the 95 % interval; ↑ more, ↓ less, ")
    assert text.splitlines()[2:4] == ["| agent | `weak` |", "|---|--:|"]
    assert text.splitlines()[4].startswith("| `wakeloop` | +50.0 [+20.0 to +80.0] ")
    assert tables.comparison_table(ROWS[:10], STUDY) == "There is nothing to compare."


def test_a_study_may_be_about_requests() -> None:
    study = STUDY.with_changes(primary="requests", smallest=0.5)
    text = tables.comparison_table(ROWS, study)
    assert text.startswith("More requests than `plain`, with the 95 % interval")
    assert text.splitlines()[4].startswith("| `wakeloop` | -1 [-2.8 to 0.8] ?")
    assert tables.losses_table(ROWS, study).startswith("No other agent")


def test_losses_in_words() -> None:
    study = STUDY.with_changes(subject="plain")
    assert tables.losses_table(ROWS, STUDY) == (
        "No other agent does better than `wakeloop` in any figure beyond chance."
    )
    assert tables.losses_table(ROWS[:4], STUDY) == "Too few runs to compare."
    assert (
        tables.losses_table(ROWS, study)
        .splitlines()[2]
        .startswith("| `weak` | completed | `wakeloop` | 100% | 50% | -50.0 [-80.0 to -20.0] |")
    )


def test_losses_in_short_are_the_worst_of_each_figure() -> None:
    study = STUDY.with_changes(subject="plain")
    also = [one | {"model": "strong"} for one in ROWS if one["model"] == "weak"]
    lines = tables.losses_table([*ROWS, *also], study, every=False).splitlines()[2:]
    assert [line.split(" | ")[:2] for line in lines] == [["| `weak` and 1 more", "completed"]]


def test_a_loss_at_one_result_size_is_not_offset_by_another() -> None:
    dear = [row("wakeloop", seed, requests=2, input=1200) for seed in range(1, 11)]
    large = [row(agent, seed, results=2000, input=9000) for agent in ("plain",) for seed in range(1, 11)]
    cheap = [row("wakeloop", seed, results=2000, input=5000) for seed in range(1, 11)]
    plain = [row("plain", seed) for seed in range(1, 11)]
    for every in (True, False):
        lines = tables.losses_table([*plain, *dear, *large, *cheap], STUDY, every=every).splitlines()[2:]
        assert [line.split(" | ")[:5] for line in lines] == [
            ["| `weak`, results of 0 tokens", "tokens in", "`plain`", "1,000", "1,200"],
            ["| `weak`, results of 0 tokens", "spent", "`plain`", "1,040", "1,240"],
        ]


def test_numbers_have_as_many_decimals_as_they_need() -> None:
    values = (0.00123, 1.5, 12.6, 1234567, float("inf"), float("nan"))
    assert [tables.format_number(value) for value in values] == [
        "0.00123", "1.5", "12.6", "1,234,567", "never", "",
    ]  # fmt: skip
    assert [tables.format_percent(one) for one in (0, 0.004, 0.5, 0.995, 1)] == [
        "0%",
        "0.4%",
        "50%",
        "99.5%",
        "100%",
    ]
