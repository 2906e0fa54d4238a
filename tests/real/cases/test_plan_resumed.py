"""A plan is shown in one process and decided in the next, from SQLite: no call runs twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("plan_process.py")
LISTED = [{"id": 1, "content": "a", "status": "completed"}, {"id": 2, "content": "b", "status": "pending"}]
EDIT = {"name": "approve_plan", "args": {"todos": [{**LISTED[1], "content": "b, rather"}]}}
JUDGE = ["validate_todos"]
TURN = [*JUDGE, "call_model", "finalization_guard"]
HOOK = "WakeLoopMiddleware.after_model"
PUT = {
    "graph": ["activate", "call_model", *JUDGE, *JUDGE],
    "laid": ["WakeLoopMiddleware.before_agent", "model", HOOK, "model", HOOK],
}
LAID = ["model", HOOK, "model", HOOK, "WakeLoopMiddleware.after_agent"]
LOOKED = ["verify 1", "look x", "verify 2", "verify 1"]  # the last is the second look at item 1


def process(folder: Path, *args: str) -> Any:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("door", "decision", "walked", "log"),
    [
        pytest.param(
            "sync",
            {"type": "approve"},
            [*JUDGE, "run_tools", "call_model", *TURN],
            LOOKED,
            marks=pytest.mark.large,
        ),
        (
            "async",
            {"type": "edit", "edited_action": EDIT},
            [*JUDGE, "call_model", *TURN],
            ["verify 1", "verify 2"],
        ),
        pytest.param(
            "laid sync",
            {"type": "edit", "edited_action": EDIT},
            [HOOK, *LAID],
            ["verify 1", "verify 2"],
            marks=pytest.mark.large,
        ),
        (
            "laid async",
            {"type": "approve"},
            [HOOK, "tools", *LAID],
            LOOKED,
        ),
    ],
)
def test_a_plan_is_decided_in_another_process(
    tmp_path: Path, door: str, decision: Any, walked: list[str], log: list[str]
) -> None:
    begun = process(tmp_path, door)
    assert begun["walk"] == PUT["laid" if door.startswith("laid") else "graph"]
    assert (begun["reason"], begun["asked"]) == ("interrupted", [{"todos": LISTED}])
    assert (tmp_path / f"{door}.log").read_text().split("\n") == ["verify 1", ""]
    ended = process(tmp_path, door, json.dumps(decision))
    assert ended["walk"] == walked
    assert (tmp_path / f"{door}.log").read_text().splitlines() == log
    assert (ended["reason"], [t["status"] for t in ended["todos"]]) == (
        "settled",
        ["completed"] * len(ended["todos"]),
    )
