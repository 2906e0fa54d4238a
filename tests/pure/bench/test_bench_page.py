"""The page of tasks and knobs matches the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wakeloop.bench.families import FAMILIES
from wakeloop.testing.knobs import Knobs

PAGE = (Path(__file__).parents[3] / "docs" / "bench-tasks.md").read_text(encoding="utf-8")


def families_table() -> str:
    rows = ["| family | kind | what is to be done | parts |", "| --- | --- | --- | --- |"]
    for name, family in FAMILIES.items():
        lengths = ", ".join(map(str, family.lengths))
        rows.append(f"| `{name}` | {family.kind} | {family.about} | {lengths} |")
    return "\n".join(rows)


def knobs_table() -> str:
    rows = ["| knob | default | habit |", "| --- | --- | --- |"]
    for name, field in Knobs.model_fields.items():
        rows.append(f"| `{name}` | `{field.default!r}` | {' '.join((field.description or '').split())} |")
    return "\n".join(rows)


TABLES = {"families": families_table, "knobs": knobs_table}


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_on_the_page_match_the_code(name: str) -> None:
    found = re.search(rf"<!-- {name} -->\n(.*)\n<!-- end of {name} -->", PAGE, re.DOTALL)
    assert found is not None
    assert found[1] == TABLES[name]()


def test_every_knob_has_a_line_and_a_test() -> None:
    assert [name for name, field in Knobs.model_fields.items() if not field.description] == []
    tests = (Path(__file__).parents[2] / "graph/bench/test_weak_model.py").read_text(encoding="utf-8")
    assert [name for name in Knobs.model_fields if not re.search(rf"\b{name}\b", tests)] == []
