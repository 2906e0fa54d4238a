"""The audit: which files it takes, what it finds in them, what it reports."""

import json
from pathlib import Path

import pytest
from langchain_core.tools import ToolException

from wakeloop.demo.audit import Measures, audit_files, audit_tools, measure_file, render_report
from wakeloop.tools.folder import ConfinedFolder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "a.py").write_text("def f():\n    # TODO: x | y\n    return 1\n")
    (tmp_path / "b.txt").write_text("TODO\n")
    (tmp_path / "docs" / "c.md").write_text(
        "# C\n\n[gone](gone.md) [here](../a.py) [there](https://example.org) ![none](no.png)\n\n"
        "[self](#c) [out](../../x.md) `[code](code.md)`\n\n```\n[fenced](fenced.md)\n```\n"
    )
    cells = [{"cell_type": "code", "source": ["x = 1\n", "# FIXME"]}, {"cell_type": "raw", "source": "y"}]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
    return tmp_path


def test_files_are_those_of_three_kinds_without_the_report(root: Path) -> None:
    (root / "wakeloop-report.md").write_text("old")
    names = [file.relative_to(root).as_posix() for file in audit_files(root)]
    assert sorted(names) == ["a.py", "docs/c.md", "n.ipynb"]
    assert len(audit_files(root, limit=2)) == 2


def test_lines_markers_and_dead_links_are_found(root: Path) -> None:
    folder = ConfinedFolder(root)
    assert measure_file(folder, "a.py") == Measures(3, ("2: TODO: x | y",))
    assert measure_file(folder, "n.ipynb") == Measures(3, ("2: FIXME",))
    assert measure_file(folder, "docs/c.md") == Measures(9, (), ("3: gone.md", "3: no.png"))


@pytest.mark.parametrize(
    ("name", "data", "note"),
    [
        ("x.py", b"\0", "it is binary, not text"),
        ("x.ipynb", b"{", "it is not a notebook"),
        ("x.ipynb", b"[]", "it is not a notebook"),
        ("x.md", b"\xff\n", ""),
    ],
)
def test_odd_things_about_a_file_become_a_note(root: Path, name: str, data: bytes, note: str) -> None:
    (root / name).write_bytes(data)
    assert measure_file(ConfinedFolder(root), name).note == note


def test_the_tool_answers_in_json_and_refuses_other_files(root: Path) -> None:
    [tool] = audit_tools(root)
    assert json.loads(tool.invoke({"path": "a.py"}))["lines"] == 3
    for path in ("b.txt", "../a.py", "missing.py"):
        with pytest.raises(ToolException):
            tool.invoke({"path": path})


def test_the_report_has_a_row_for_each_file_and_names_the_findings() -> None:
    measured = {
        "a|b.py": Measures(3, ("2: TODO: x",)),
        "c.md": Measures(1, (), ("1: gone.md",)),
        "d.py": "no",
    }
    assert render_report(measured) == (
        "# Audit of this folder\n\n"
        "| file | lines | open markers | dead links |\n|---|--:|--:|--:|\n"
        "| `a/b.py` | 3 | 1 | 0 |\n| `c.md` | 1 | 0 | 1 |\n\n"
        "## Findings\n\n"
        "- `a/b.py`, line `2: TODO: x`\n- `c.md`, dead link in line `1: gone.md`\n- `d.py`: no\n\n"
        "3 files, 4 lines.\n"
    )
    assert "None." in render_report({})
