"""What holds under this preset in a new process: loki."""

import json
from pathlib import Path
from unittest.mock import ANY

from stage import elsewhere


def test_the_chain_survives_a_crash_and_counts_on_in_a_new_process(tmp_path: Path) -> None:
    db, change = tmp_path / "threads.db", {"auto_continue": True}
    plan = [["todo__init", {"goal": "g"}], ["todo__add", {"task": "a"}], ["todo__add", {"task": "b"}]]
    assert elsewhere(db, "loki", plan, "One.", "Two.", "Three.", None, change=change) is None
    end = [["todo__done", {"id": "1"}], ["todo__done", {"id": 2}], ["todo__list", {}]]
    later = elsewhere(db, "loki", "Four.", end, "Done.", given=None, change=change)
    assert later["found"]["ledger"]["wake_cycles"] == 3
    assert later["notices"] == ["4/10"]
    assert later["wakes"][-1].endswith("\n\nGoal: g\nProgress: 0/2 completed\n  ○ 1. a\n  ○ 2. b")
    assert json.loads(later["results"][-1][1])["progress"] == "2/2"
    assert later["goal"] == "g"
    assert later["session"] == {
        "state": "dormant",
        "reason": "settled",
        "open": 0,
        "wakes": 4,
        "budget": 10,
        "list": ANY,
        "items": 2,
        "spent": ANY,
    }
    assert later["faults"] == []


def test_a_repeat_is_seen_in_a_new_process(tmp_path: Path) -> None:
    db, change = tmp_path / "threads.db", {"auto_continue": True}
    assert elsewhere(db, "loki", [["todo__add", {"task": "a"}]], "Same.", None, change=change) is None
    later = elsewhere(db, "loki", "Same.", given=None, change=change)
    assert (later["session"]["reason"], later["notices"], later["asked"]) == ("repeated_reply", [], 1)
