"""cubepi: what holds under this preset in a new process."""

from pathlib import Path
from unittest.mock import ANY

import pytest
from cubepi_rows import GUARD, NAME, STRICT, rows
from stage import elsewhere

pytestmark = pytest.mark.slow


def test_a_resumed_session_starts_with_the_existing_list(tmp_path: Path) -> None:
    db = tmp_path / "threads.db"
    first = elsewhere(db, NAME, [["write_todos", {"todos": rows("a:c b:i")}]], "Done!", None)
    assert first is None
    resumed = elsewhere(db, NAME, [["look", {"path": "x"}]], "Sorry.", given=None)
    assert resumed["found"]["ledger"]["todo_guard_retries"] == {GUARD: 1}
    assert resumed["found"]["ledger"]["todo_finalization_correction"] is True
    assert resumed["ledger"]["todo_guard_retries"] == {GUARD: 1}
    assert len(resumed["corrections"]) == 1
    assert resumed["session"] == {
        "state": "idle",
        "reason": "disabled",
        "open": 1,
        "completed": 1,
        "cancelled": 0,
        "blocked": 0,
        "wakes": 0,
        "budget": 0,
        "list": ANY,
        "items": 2,
        "spent": ANY,
    }
    later = elsewhere(db, NAME, [["write_todos", {"todos": rows("b:c")}]], "Done.", given="keep going")
    assert [(t["content"], t["status"]) for t in later["found"]["todos"]] == [
        ("a", "completed"),
        ("b", "in_progress"),
    ]
    assert later["todos"] == [{"id": 2, "content": "b", "status": "completed"}]
    assert later["faults"] == []


def test_strict_suppression_survives_a_restart(tmp_path: Path) -> None:
    db = tmp_path / "threads.db"
    plan = [["write_todos", {"todos": rows("a:i")}]]
    first = elsewhere(db, STRICT, plan, "1", "2", "3", None)
    assert first is None
    told = elsewhere(db, STRICT, "I could not.", given=None)
    assert told["found"]["ledger"]["todo_guard_blocked"]["guard"] == GUARD
    assert (told["session"]["reason"], told["tools"]) == ("guard_blocked", ["look", "write_todos"])
    later = elsewhere(db, STRICT, "Still not.", given="and now?")
    assert later["found"]["ledger"]["todo_guard_suppressed"] is True
    assert (later["asked"], later["corrections"]) == (1, told["corrections"])
