"""The table of what an update costs is the one that the benchmark measures."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_documented_costs_are_the_measured_ones() -> None:
    measured = runpy.run_path(str(ROOT / "benchmarks" / "token_cost.py"))["table"](100)
    assert f"\n\n{measured}\n\n" in (ROOT / "docs" / "dialects.md").read_text(encoding="utf-8")
