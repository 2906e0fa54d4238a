"""The table of an update's costs matches the benchmark's measurements."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_documented_costs_are_the_measured_ones() -> None:
    measured, page = runpy.run_path(str(ROOT / "benchmarks" / "token_cost.py")), ROOT / "docs" / "dialects.md"
    text = page.read_text(encoding="utf-8")
    for table in (measured["table"](100), measured["parts"]()):
        assert f"\n\n{table}\n\n" in text
