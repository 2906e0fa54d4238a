"""lesson: what holds under this preset in a new process."""

from pathlib import Path
from typing import Any

import pytest
from stage import elsewhere

from wakeloop.testing import calls

pytestmark = pytest.mark.slow

NAME = "lesson"


def item(id: Any, text: str, status: str = "pending") -> dict[str, Any]:  # noqa: A002 - the tool's word
    return {"id": id, "text": text, "status": status}


def todo(*items: Any, **more: Any) -> Any:
    return calls(("todo", {"items": list(items)}), **more)


def test_the_count_is_kept_in_a_new_process(tmp_path: Path) -> None:
    db = tmp_path / "threads.db"
    plan = [["todo", {"items": [item("1", "one"), item("2", "two")]}]]
    first = elsewhere(db, NAME, plan, [["look", {"path": "1"}]], [["look", {"path": "2"}]], "Bye.")
    assert (first["ledger"]["todo_stale_iterations"], first["nags"]) == (2, [])
    rows = [item("1", "one", "completed"), item("2", "two", "in_progress")]
    later = elsewhere(
        db, NAME, [["look", {"path": "3"}]], [["look", {"path": "4"}]], [["todo", {"items": rows}]], "Bye.",
        given="more",
    )  # fmt: skip
    assert later["nags"] == [3, 4]
    assert [i for i, (_, text) in enumerate(later["results"]) if "<reminder>" in text] == [3, 4]
    assert later["results"][-1] == ["success", "[x] #1: one\n[>] #2: two\n\n(1/2 completed)"]
    assert later["ledger"]["todo_stale_iterations"] == 0
    assert later["todos"][1] == {"id": "2", "content": "two", "status": "in_progress"}
    assert later["faults"] == []
