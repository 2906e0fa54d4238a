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


def test_completed_and_requests() -> None:
    assert (
        tables.overview(ROWS, STUDY)
        == """\
| agent | `weak` | `other` |
|---|--:|--:|
| `plain` | 50% (5) | 50% (5) |
| `wakeloop` | 100% (4) |  |"""
    )


def test_at_equal_spend() -> None:
    """What `plain` spends on average: 1,690, its dear runs 2,690; `wakeloop` spends 1,290."""
    assert (
        tables.at_equal_spend(ROWS, STUDY)
        == """\
| agent | `weak` | `other` |
|---|--:|--:|
| `plain` | 50% · 50% | 50% · 50% |
| `wakeloop` | 100% · 100% |  |"""
    )


def test_comparisons_leave_out_the_reference() -> None:
    text = tables.comparisons(ROWS, STUDY)
    assert text.startswith("Points more than `plain`, with 95 %; ↑ more, ↓ less, ")
    assert text.splitlines()[2:4] == ["| agent | `weak` |", "|---|--:|"]
    assert text.splitlines()[4].startswith("| `wakeloop` | +50.0 [+20.0 to +80.0] ")
    assert tables.comparisons(ROWS[:10], STUDY) == "There is nothing to compare with."


def test_a_study_may_be_about_requests() -> None:
    study = STUDY.varied(primary="requests", smallest=0.5)
    text = tables.comparisons(ROWS, study)
    assert text.startswith("Requests more than `plain`, with 95 %")
    assert text.splitlines()[4].startswith("| `wakeloop` | -1 [-2.8 to 0.8] ?")
    assert tables.losses(ROWS, study).startswith("In nothing")


def test_losses_in_words() -> None:
    study = STUDY.varied(subject="plain")
    assert tables.losses(ROWS, STUDY) == (
        "In nothing that was measured does another agent do better than `wakeloop` beyond chance."
    )
    assert tables.losses(ROWS[:4], STUDY) == "There are too few runs to say."
    assert (
        tables.losses(ROWS, study)
        .splitlines()[2]
        .startswith("| `weak` | completed | `wakeloop` | 100% | 50% | -50.0 [-80.0 to -20.0] |")
    )


def test_numbers_have_the_decimals_that_they_need() -> None:
    assert [tables.number(one) for one in (0.00123, 1.5, 12.6, 1234567, float("inf"), float("nan"))] == [
        "0.00123", "1.5", "12.6", "1,234,567", "never", "",
    ]  # fmt: skip
    assert [tables.percent(one) for one in (0, 0.004, 0.5, 0.995, 1)] == [
        "0%",
        "0.4%",
        "50%",
        "99.5%",
        "100%",
    ]
