"""A real server through the command: how it ends, what it prints, and `kill -9`."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import API_KEY, MODEL

from wakeloop.testing import wire_faults

pytestmark = pytest.mark.loopback

COMMAND = [sys.executable, "-W", "error", "-m", "wakeloop.cli.commands.app"]
ENDED = (0, 1, 3, 143)  # settled, a failure in words, open items, SIGTERM; never a traceback
PATIENCE = 25  # seconds: the command sets no step limit, and a weak model may make calls forever
WORK = "Plan two steps with todo_write to tidy the kitchen, then do them."


@pytest.fixture
def command(relay: Any, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts the command in its own folder, through the relay."""
    env = {
        **os.environ,
        "WAKELOOP_DB": str(tmp_path / "db"),
        "OPENAI_API_KEY": API_KEY,
        "PYTHONUNBUFFERED": "1",
    }
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.txt").write_text("Tidy the kitchen.\n")

    def start(*args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                *COMMAND,
                *args,
                "--model",
                MODEL,
                "--base-url",
                relay.url,
                "--set",
                "max_wake_cycles=2",
                "--tools",
                "none",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path / "work",
            env=env,
        )

    return start


def read_output(process: subprocess.Popen[str]) -> str:
    """Return what it printed, and check that it ended in one of the documented ways."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert "Traceback" not in err, err
    assert process.returncode in ENDED, err
    if API_KEY != "none":
        assert API_KEY not in out + err
    return out


def test_a_run_and_a_second_message(command: Any, relay: Any) -> None:
    for args in (("run", WORK, "--thread", "t"), ("resume", "t", "And once more.")):
        before = len(relay.bodies)
        state = json.loads(read_output(command(*args, "--json")))
        assert state["session"]["wakes"] <= 2
        assert len(relay.bodies) > before
    assert wire_faults(relay.requests) == []


def test_kill_9_and_resume(command: Any, relay: Any) -> None:
    process = command("run", WORK, "--thread", "t")
    deadline = time.monotonic() + 60
    while len(relay.bodies) < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    asked = len(relay.bodies)
    read_output(command("resume", "t"))
    if process.returncode == -signal.SIGKILL:
        assert len(relay.bodies) > asked
        said = [m.content for m in relay.requests[-1] if m.type == "human"]
        assert said.count(WORK) == 1
    assert wire_faults(relay.requests) == []
