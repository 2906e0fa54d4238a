"""agentparley: what holds under this preset in a new process."""

from pathlib import Path
from unittest.mock import ANY

import pytest
from stage import elsewhere

pytestmark = pytest.mark.slow

NAME = "agentparley"


def test_a_restart_does_not_resume_an_idle_session_by_itself(tmp_path: Path) -> None:
    db, change = tmp_path / "threads.db", {"max_wake_cycles": 2}
    plan = [["todo_write", {"items": ["a", "b"]}]]
    first = elsewhere(db, NAME, plan, "Later.", "Later.", "Later.", change=change)
    assert first["notices"] == ["1/2", "2/2"]
    still = elsewhere(db, NAME, given=None, change=change)
    assert (still["asked"], still["ledger"]["wake_cycles"]) == (0, 2)
    assert still["session"] == {
        "state": "idle",
        "reason": "wake_budget",
        "open": 2,
        "completed": 0,
        "cancelled": 0,
        "blocked": 0,
        "wakes": 2,
        "budget": 2,
        "list": ANY,
        "items": 2,
        "spent": ANY,
    }
    both = [["todo_update", {"id": i, "status": "done"}] for i in (1, 2)]
    later = elsewhere(db, NAME, "Later.", both, "Done.", given="keep going", change=change)
    assert later["notices"] == ["1/2"]
    assert (later["session"]["state"], later["session"]["wakes"]) == ("dormant", 1)
    assert later["faults"] == []
