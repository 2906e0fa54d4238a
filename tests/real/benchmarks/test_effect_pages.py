"""The pages of the published studies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from rows import STUDY, row

ROOT = Path(__file__).parents[3]


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import effect_pages

    return effect_pages


def test_habits_name_the_agent_that_does_as_much_for_less(pages: Any) -> None:
    """With `weak` a plain loop completes as much for less; with `other` it does not."""
    cheap = [row("plain", seed) for seed in range(1, 6)]
    dear = [row("wakeloop", seed, input=2000) for seed in range(1, 6)]
    fails = [row("plain", seed, model="other", completed=seed == 1) for seed in range(1, 6)]
    more = [row("wakeloop", seed, model="other", input=2000) for seed in range(1, 6)]
    study = STUDY.with_changes(models=("weak", "other"), habits={"weak": "never stops"})
    assert (
        pages.habits_table([*cheap, *dear, *fails, *more], study)
        == """\
| habit | `plain` | `wakeloop` |
|---|--:|--:|
| never stops | **100 · 1.00** | 100 · 1.96 |
| `other` | 20 · 1.00 | 100 · 0.39 |"""
    )


def test_no_multiple_if_the_reference_completes_nothing(pages: Any) -> None:
    rows = [*(row("plain", seed, completed=False) for seed in range(3)), row("wakeloop", 1)]
    assert pages.habits_table(rows, STUDY).splitlines()[-1] == "| `weak` | 0 | 100 |"


def test_at_other_prices(pages: Any) -> None:
    """The more output costs, and the less a cached token costs, the less input matters."""
    rows = [
        *(row("plain", seed) for seed in range(1, 6)),
        *(row("wakeloop", seed, output=100) for seed in range(1, 6)),
    ]
    assert [line.split(" | ")[-1] for line in pages.price_range_table(rows, STUDY).splitlines()[2:]] == [
        "1.07 |", "1.24 |", "1.38 |", "1.05 |", "1.17 |", "1.29 |",
    ]  # fmt: skip


def test_at_equal_spend_expensive_work_counts_for_nothing(pages: Any) -> None:
    plain, dear = [row("plain")], [row("wakeloop", input=5000)]
    budgets = pages.average_budgets(plain, STUDY)
    assert budgets == {("weak", "make-files", 5, 0): 1040}
    assert [pages.completed_within(plain, STUDY, budgets, times) for times in (0.5, 1)] == [0, 1]
    assert [pages.completed_within(dear, STUDY, budgets, times) for times in (1, 10)] == [0, 1]


@pytest.mark.slow
def test_the_pages_follow_from_the_rows(pages: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published, apart = pages.APART, tmp_path / "effect"
    apart.mkdir()
    (apart / "head.txt").write_bytes((published / "head.txt").read_bytes())
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    monkeypatch.setattr(pages, "APART", apart)
    monkeypatch.setattr(sys, "argv", ["", str(published / "kinds.jsonl.gz")])
    pages.main()
    assert "\n| habit | `plain` | `asked 3` |" in (tmp_path / "effect.md").read_text()
    made = [path.relative_to(apart) for path in apart.rglob("*") if path.is_file()]
    assert len(made) == 1 + 4
    for path in made:
        assert (apart / path).read_bytes() == (published / path).read_bytes(), path
