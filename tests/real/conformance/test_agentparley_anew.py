"""What holds under this preset in a new process: agentparley."""

from pathlib import Path
from unittest.mock import ANY

from stage import elsewhere

NAME = "agentparley"


def items_of(nudge: str) -> list[str]:
    """The list inside a nudge: its lines that begin with two spaces."""
    return [line for line in nudge.split("\n") if line.startswith("  ")]


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
        "wakes": 2,
        "budget": 2,
        "list": ANY,
        "items": 2,
        "spent": ANY,
    }
    both = [["todo_update", {"id": i, "status": "done"}] for i in (1, 2)]
    later = elsewhere(db, NAME, "Later.", both, "Done.", given="go on", change=change)
    assert later["notices"] == ["1/2"]
    assert (later["session"]["state"], later["session"]["wakes"]) == ("dormant", 1)
    assert later["faults"] == []


def test_a_crash_in_the_chain_goes_on_with_the_same_count_in_a_new_process(tmp_path: Path) -> None:
    db = tmp_path / "threads.db"
    plan = [["todo_write", {"items": ["a", "b"]}]]
    stop = [["todo_update", {"id": 1, "status": "blocked", "reason": "no key"}]]
    assert elsewhere(db, NAME, plan, stop, "Later.", "Later.", None) is None
    resumed = elsewhere(
        db, NAME, "Later.", [["todo_update", {"id": 2, "status": "done"}]], "Done.", given=None
    )
    assert resumed["found"]["ledger"]["wake_cycles"] == 2
    assert resumed["notices"] == ["3/25"]
    assert len(resumed["wakes"]) == 3
    assert {tuple(items_of(nudge)) for nudge in resumed["wakes"]} == {
        ("  [1] a (blocked: no key)", "  [2] b")
    }
    assert resumed["session"] == {
        "state": "dormant",
        "reason": "settled",
        "open": 0,
        "wakes": 3,
        "budget": 25,
        "list": ANY,
        "items": 2,
        "spent": ANY,
    }
    assert resumed["faults"] == []
