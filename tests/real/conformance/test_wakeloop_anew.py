"""What holds under this preset in a new process: wakeloop."""

from pathlib import Path
from typing import Any
from unittest.mock import ANY

from stage import elsewhere

NAME = "wakeloop"


def change(i: Any, status: str, reason: str | None = None) -> tuple[str, dict[str, Any]]:
    return "todo_update", {"id": i, "status": status, **({"reason": reason} if reason else {})}


def test_all_of_it_goes_on_in_a_new_process(tmp_path: Path) -> None:
    db = tmp_path / "threads.db"
    plan = [["todo_write", {"items": ["a", "b"]}]]
    far = [[["look", {"path": str(n)}]] for n in range(3)]
    assert elsewhere(db, NAME, plan, "Soon.", *far, "Soon.", None) is None
    more = [[["look", {"path": str(n)}]] for n in (3, 4)]
    both = [list(change(1, "done")), list(change(2, "cancelled"))]
    resumed = elsewhere(db, NAME, *more, both, "Done.", given=None)
    assert resumed["found"]["ledger"]["wake_cycles"] == 2
    assert resumed["found"]["ledger"]["todo_stale_iterations"] == 3
    assert resumed["nags"] == [5]
    assert [t["status"] for t in resumed["todos"]] == ["completed", "cancelled"]
    assert resumed["ledger"]["todo_stale_iterations"] == 0
    assert resumed["session"] == {
        "state": "dormant",
        "reason": "settled",
        "open": 0,
        "wakes": 2,
        "budget": 27,
        "list": ANY,
        "items": 2,
        "spent": ANY,
    }
    assert resumed["faults"] == []
