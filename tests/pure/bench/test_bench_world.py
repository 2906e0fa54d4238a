"""The tools of a world: confined, with errors in sentences, with results padded to a size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import ToolException

from wakeloop.bench.meter import ToolCounter
from wakeloop.bench.task import world_tools


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.txt").write_text("one\n")
    (tmp_path / "w" / "big.txt").write_text("." * 5_000_001)
    (tmp_path / "outside.txt").write_text("theirs\n")
    return {tool.name: tool.func for tool in world_tools(tmp_path / "w")}  # type: ignore[attr-defined]


def test_append_move_and_delete(tools: dict[str, Any], tmp_path: Path) -> None:
    said = [
        tools["append_file"](path="a.txt", content="two\n"),
        tools["append_file"](path="new/b.txt", content="b\n"),
        tools["move_file"](source="a.txt", target="deep/er/c.txt"),
        tools["delete_file"](path="new/b.txt"),
    ]
    assert said == [
        "Appended to 'a.txt': 8 bytes now.",
        "Appended to 'new/b.txt': 2 bytes now.",
        "Moved 'a.txt' to 'deep/er/c.txt'.",
        "Deleted 'new/b.txt'.",
    ]
    found = {path.name: path.read_text() for path in (tmp_path / "w").rglob("*") if path.is_file()}
    assert found.pop("big.txt")
    assert found == {"c.txt": "one\ntwo\n"}


@pytest.mark.parametrize(
    ("name", "args", "told"),
    [
        ("move_file", {"source": "none.txt", "target": "b.txt"}, "There is no 'none.txt'"),
        ("move_file", {"source": "a.txt", "target": "a.txt"}, "'a.txt' exists already; it stays as it is."),
        ("move_file", {"source": "a.txt", "target": "../b.txt"}, "'../b.txt' leads outside the folder"),
        ("move_file", {"source": "../outside.txt", "target": "b.txt"}, "leads outside the folder"),
        ("delete_file", {"path": "../outside.txt"}, "leads outside the folder"),
        ("delete_file", {"path": "none.txt"}, "There is no 'none.txt'"),
        ("delete_file", {"path": "."}, "is not a file"),
        ("append_file", {"path": "../outside.txt", "content": "x"}, "leads outside the folder"),
        ("append_file", {"path": "big.txt", "content": "x"}, "more than the 5000000 that can be read"),
    ],
)
def test_refusals_are_one_sentence_and_change_nothing(
    name: str, args: dict[str, str], told: str, tools: dict[str, Any], tmp_path: Path
) -> None:
    before = {path: path.is_file() and path.read_text() for path in tmp_path.rglob("*")}
    with pytest.raises(ToolException) as caught:
        tools[name](**args)
    assert told in str(caught.value)
    assert {path: path.is_file() and path.read_text() for path in tmp_path.rglob("*")} == before


def test_results_are_padded_to_a_size(tmp_path: Path) -> None:
    [listing, *_] = ToolCounter(120).wrap(world_tools(tmp_path))
    assert listing.invoke({}) == "No files in '.' match '*'.".ljust(120, ".")
