"""The table of cases in tests/RESULTS.md, checked against the tests."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"\| (c\d+) [^|]*\| [^|]+ \| ([^|]+) \| ([^|]+) \|")
ROWS = {
    name: (paths, shown) for name, paths, shown in ROW.findall((ROOT / "tests" / "RESULTS.md").read_text())
}
PATHS = {"rig": 12, "kept": 8, "bare": 4}


@cache
def collect_fixtures() -> dict[str, set[str]]:
    """Collect every test by name, with the fixtures that it takes."""
    found: dict[str, set[str]] = {}
    for file in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found.setdefault(node.name, set()).update(argument.arg for argument in node.args.args)
    return found


def test_every_case_has_a_row() -> None:
    cases = {found[1] for name in collect_fixtures() if (found := re.match(r"test_(c\d+)_", name))}
    assert list(ROWS) == sorted(cases, key=lambda case: int(case[1:]))
    assert list(ROWS)[:32] == [f"c{number:02}" for number in range(1, 33)]


@pytest.mark.parametrize(("case", "row"), ROWS.items(), ids=ROWS)
def test_its_tests_exist_and_run_through_the_paths_it_names(case: str, row: tuple[str, str]) -> None:
    paths, shown = row
    named = re.findall(r"`(test_\w+)`", shown)
    assert set(named) <= set(collect_fixtures())
    assert [name for name in named if name.startswith(f"test_{case}_")]
    if re.fullmatch(r"\d+(, \d+)?", paths):
        by = {PATHS[fixture] for name in named for fixture in collect_fixtures()[name] if fixture in PATHS}
        said = {int(number) for number in paths.split(", ")}
        assert said <= by
        assert max(by) == max(said)
