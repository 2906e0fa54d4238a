"""The page of the rules names tests that exist, and every ending."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tables import endings_table, exit_code_table, truth_table

from wakeloop.loop.gates import ENDINGS

TESTS = Path(__file__).parents[2]
PAGE = (TESTS.parent / "docs" / "rules.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (Rule \d+|Gates)[^\n]*\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
NAMED = re.compile(r"`(test_\w+\.py)::(test_\w+)`")


def functions(file: str) -> set[str]:
    """Return the tests of every file with this name, in whatever folder."""
    return {
        node.name
        for path in TESTS.rglob(file)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_the_rules_are_in_the_order_of_their_numbers() -> None:
    *rules, last = SECTIONS
    numbers = [int(rule.removeprefix("Rule ")) for rule in rules]
    assert numbers[:19] == [*range(1, 20)]
    assert (numbers, last) == (sorted(numbers), "Gates")


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
def test_each_rule_names_tests_that_exist(section: str) -> None:
    named = NAMED.findall(SECTIONS[section])
    assert named
    assert [f"{file}::{test}" for file, test in named if test not in functions(file)] == []


def test_the_table_of_endings_is_that_of_the_records() -> None:
    """`make tables` writes it."""
    assert f"\n{endings_table()}\n\n" in SECTIONS["Gates"]


def test_the_truth_table_and_the_exit_codes_are_those_of_the_records() -> None:
    assert f"\n{truth_table()}\n\n" in SECTIONS["Rule 21"]
    assert f"\n{exit_code_table()}\n\n" in SECTIONS["Rule 21"]


def test_the_page_of_concepts_names_only_gates_that_exist() -> None:
    text = (TESTS.parent / "docs" / "concepts.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (?:idle|waiting|dormant) \|", text, re.MULTILINE)
    named += re.findall(r"the first gate that stopped the run: (.*?)\.", text, re.DOTALL)
    assert named
    assert set(re.findall(r"`(\w+)`", " ".join(named))) <= set(ENDINGS)


def test_the_code_of_a_rule_is_where_the_page_says() -> None:
    lines = re.findall(r"^Code: (.*?)Tests:", PAGE, re.MULTILINE | re.DOTALL)
    named = [path for line in lines for path in re.findall(r"`([\w/]+(?:\.py|/))`", line)]
    assert len(lines) == len(SECTIONS)
    assert [path for path in named if not (TESTS.parent / "src" / "wakeloop" / path).exists()] == []
