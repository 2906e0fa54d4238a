"""The benchmark of worst inputs covers every pattern, and measures an exponent."""

import ast
from pathlib import Path
from typing import Any

import pytest

import wakeloop
from wakeloop.model.length_refusals import _REFUSALS

ROOT = Path(__file__).parents[3]
HOUSE = Path(wakeloop.__file__).parent
CHOSEN_BY_A_RUN = (  # calls that get no pattern of their own; the tables and forms are checked instead
    "re.compile(opening, ",
    "re.compile(closing, ",
    "re.compile(words, ",
    "re.compile(f\"</{begun['tag']}>\", ",
    "re.fullmatch(self.context.dialect.result_form, ",
    "re.compile(translate(one.strip()))",
    "re.search(f'(?<![\\\\w.,-]){re.escape(answer)}",
)


@pytest.fixture
def worst(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import worst_texts

    return worst_texts


@pytest.mark.large
def test_every_pattern_of_the_package_is_found(worst: Any) -> None:
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in HOUSE.rglob("*.py")]
    calls = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Call)]
    ways = {"compile", *worst.ALL_WAYS}
    of_some = [n for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr in ways]
    told = [n for n in of_some if ast.unparse(n.func.value) == "re"]
    written = [call for call in told if not ast.unparse(call).startswith(CHOSEN_BY_A_RUN)]
    names = worst.patterns()
    tables = [name for name in names if name.endswith("]")]  # each of their patterns separately
    assert len(written) > 20
    assert len(names) - len(tables) == len(written) + 1  # a dialect's form
    refusals = ["model.length_refusals._REFUSALS"] * len(_REFUSALS)
    assert [name.rpartition("[")[0] for name in tables] == [*refusals, *["text.thoughts._THOUGHTS"] * 11]


def test_an_exponent_is_the_slope_between_the_first_and_the_last(worst: Any) -> None:
    assert worst.exponent((1, 10), [0.1, 1.0]) == pytest.approx(1)
    assert worst.exponent((1, 2, 10), [0.1, 0.3, 10.0]) == pytest.approx(2)
    assert worst.exponent((1, 10), [0.0001, 0.001]) == 0


def test_the_worst_text_of_a_square_pattern_is_found(worst: Any) -> None:
    import re

    text, times = worst.worst_text(worst.scan(re.compile("a+@")), (5_000, 10_000))
    assert "'a' …" in text
    assert len(times) == 2


@pytest.mark.parametrize("rule", ["n starts on n items", "n calls that add an item", "a reply of n chunks"])
def test_a_rule_is_run(worst: Any, rule: str) -> None:
    worst.RULES[rule](20)()
