"""A `create_agent` run is killed with `kill -9`, and another process resumes it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("laid_process.py")
UNKNOWN = "Error: the run broke off before this call returned; it may or may not have run."


def process(*args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(SCRIPT), *args], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(
    ("how", "part", "left", "looks", "results", "requests"),
    [
        ("async", "on", ["tools"], 2, ["seen"], 5),
        ("sync", "anew", ["tools"], 1, [UNKNOWN], 2),
        ("exit", "on", [], 2, ["seen"], 5),  # nothing was stored: it begins again
    ],
)
def test_a_killed_run_is_gone_on_with(
    tmp_path: Path, how: str, part: str, left: list[str], looks: int, results: list[str], requests: int
) -> None:
    path = tmp_path / "threads.db"
    assert process(str(path), how, "go").returncode == -signal.SIGKILL
    done = process(str(path), how, part)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told == {
        "left": left,
        "reason": "settled",
        "wakes": 0 if part == "anew" else 1,
        "results": results,
        "requests": requests,
        "faults": [],
    }
    assert path.with_suffix(".log").read_text().splitlines() == ["look"] * looks
