"""The bench against a server process: killed, resumed, and the figures of a run that nobody disturbed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from processes import Shell
from rows import STUDY

from wakeloop.bench.journal import Row, read
from wakeloop.bench.plan import cells
from wakeloop.bench.runner import run

TESTS = Path(__file__).parents[2]
PATIENCE = 60.0


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a server, in a process of its own."""
    path = os.pathsep.join([str(TESTS), str(TESTS / "real" / "cli"), *sys.path])
    command = [sys.executable, str(Path(__file__).with_name("bench_server.py"))]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.communicate("")


def until(reached: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def killed(process: subprocess.Popen[str], journal: Path, rows: int) -> None:
    """Kill a run when so many rows stand there, and wait until nobody it began is left to spend money."""
    until(lambda: lines(journal) > rows)
    workers = begun_by(process.pid)
    assert len(workers) >= 2
    process.send_signal(signal.SIGKILL)
    process.communicate()
    until(lambda: not any(map(alive, workers)))


def lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def begun_by(pid: int) -> list[int]:
    """The processes that a run has begun, and theirs."""
    try:
        children = list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return []
    return [*children, *(deeper for child in children for deeper in begun_by(child))]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def timeless(rows: Sequence[Row]) -> list[Row]:
    """Rows in one order, without what no two runs have in common."""
    return sorted((row | {"seconds": 0} for row in rows), key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.loopback
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
def test_killed_twice_and_resumed_it_comes_to_the_same(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-secret")
    monkeypatch.setenv("NO_PROXY", "*")
    agents, model = ("plain", "asked 1", "wakeloop"), f"small@{server}"
    study = STUDY.varied(agents=agents, models=(model,), tasks=("make-files:5",), seeds=4)
    undisturbed = run(study, tmp_path / "whole", workers=1)
    (tmp_path / "study.json").write_text(study.model_dump_json())

    shell = Shell(tmp_path, tmp_path / "threads.sqlite")
    command = ("bench", "--study", "study.json", "--workers", "2", "--out", "killed")
    journal, written = tmp_path / "killed" / "cells.jsonl", b""
    for rows in (1, 4):
        killed(shell.start(*command), journal, rows)
        assert journal.read_bytes().startswith(written)
        written = journal.read_bytes()
        with journal.open("ab") as file:
            file.write(b'{"agent":"plain","mod')  # as a kill in mid-write leaves it
    done = shell(*command)
    assert done.returncode == 0, done.stderr
    assert "12 of 12 cells are in killed/cells.jsonl" in done.stderr
    assert journal.read_bytes().startswith(written)
    assert lines(journal) == 1 + len(cells(study))

    rows_of = timeless(read(journal)[1])
    assert rows_of == timeless(undisturbed.rows)
    completed = {row["agent"]: row["completed"] for row in rows_of}
    assert completed == {"plain": False, "asked 1": True, "wakeloop": True}
    assert "sk-loopback-secret" not in journal.read_text()
