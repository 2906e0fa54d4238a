"""The bench against a server process: killed, resumed, and compared with an undisturbed run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from processes import Shell, is_gone, until, wakeloop
from rows import STUDY

from wakeloop.bench.journal import Row, read_journal
from wakeloop.bench.runner import play_study
from wakeloop.bench.study import plan_cells

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[2]
PATIENCE = 60.0


@contextmanager
def served(*args: str) -> Iterator[str]:
    """The address of a server, in another process."""
    path = os.pathsep.join([str(TESTS), str(TESTS / "real" / "cli"), *sys.path])
    command = [sys.executable, str(Path(__file__).with_name("bench_server.py")), *args]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    with suppress(BrokenPipeError):
        process.communicate("")


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a server that answers."""
    with served() as url:
        yield url


def killed(process: subprocess.Popen[str], journal: Path, rows: int) -> None:
    """Kill a run once it has this many rows, and wait until no process it started can spend money."""
    until(lambda: lines(journal) > rows, process, PATIENCE)
    workers = begun_by(process.pid)
    assert len(workers) >= 2
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert all(map(is_gone, workers))


def lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def begun_by(pid: int) -> list[int]:
    """Return the processes that a run has started, and their children."""
    try:
        children = list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return []
    return [*children, *(deeper for child in children for deeper in begun_by(child))]


def timeless(rows: Sequence[Row]) -> list[Row]:
    """Return rows in a fixed order, without what differs between any two runs."""
    return sorted((row | {"seconds": 0} for row in rows), key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.loopback
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
def test_killed_twice_and_resumed_it_has_the_same_result(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-secret")
    monkeypatch.setenv("NO_PROXY", "*")
    agents, model = ("plain", "asked 1", "wakeloop"), f"small@{server}"
    study = STUDY.with_changes(agents=agents, models=(model,), tasks=("make-files:5",), seeds=4)
    undisturbed = play_study(study, tmp_path / "whole", workers=1)
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
    assert lines(journal) == 1 + len(plan_cells(study))

    rows_of = timeless(read_journal(journal)[1])
    assert rows_of == timeless(undisturbed.rows)
    completed = {row["agent"]: row["completed"] for row in rows_of}
    assert completed == {"plain": False, "asked 1": True, "wakeloop": True}
    assert "sk-loopback-secret" not in journal.read_text()


# -- a server that is silent or dies, and a run that is stopped --------------------------------------------

SMALL = STUDY.with_changes(agents=("plain", "wakeloop"), tasks=("make-files:5",), seeds=3)
NOTHING = "no cell was finished"
AGAIN = "Run the same command again to continue: finished cells are not repeated.\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run in this process, with a file that keeps the server silent while it exists."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-secret")
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "silent").touch()
    return tmp_path


def asks(url: str) -> None:
    """Write a study of a model at this address."""
    Path("study.json").write_text(SMALL.with_changes(models=(f"small@{url}",)).model_dump_json())


def unjudged(url: str) -> str:
    """Return a run's sentence about a model of which it finished too little."""
    return f"No verdict on small@{url} yet: no job was finished by every agent.\n"


COMMAND = ("bench", "--study", "study.json", "--out", "run", "--workers")


def outages(journal: Path) -> list[str]:
    told = (json.loads(line) for line in journal.read_text().splitlines()[1:])
    return [line["outage"] for line in told if "outage" in line]


@pytest.mark.loopback
def test_a_silent_server_does_not_block_a_cell_forever(folder: Path) -> None:
    with served("6", "silent") as url:
        asks(url)
        code, out, err = wakeloop(*COMMAND, "1", "--timeout", "2")
        assert (code, out) == (1, ""), err
        assert (
            "The model did not answer within 2 seconds; --timeout sets how long to wait for a request" in err
        )
        assert f"; 3 cells in a row failed\n{unjudged(url)}{AGAIN}" in err
        found = outages(folder / "run" / "cells.jsonl")
        assert [said.partition(";")[0] for said in found] == ["The model did not answer within 2 seconds"] * 3
        told = " still missing (the last outage: The model did not answer within 2 seconds;"
        assert told in wakeloop("bench", "report", "run")[1]
        (folder / "silent").unlink()
        code, _, err = wakeloop(*COMMAND, "1")
    assert (code, "6 of 6 cells are in run/cells.jsonl\n" in err) == (0, True), err
    assert "outage" not in wakeloop("bench", "report", "run")[1]


@pytest.mark.loopback
def test_a_server_that_dies_in_the_middle_ends_the_run_in_one_sentence(folder: Path) -> None:
    with served("6") as url:
        asks(url)
        code, _, err = wakeloop(*COMMAND, "1")
    assert code == 1
    assert [line.rpartition(": OpenAI")[0] for line in err.splitlines() if ", seed" in line] == [
        "wakeloop, make-files:5, seed 1: The model cannot be reached",
        "plain, make-files:5, seed 2: The model cannot be reached",
        "wakeloop, make-files:5, seed 2: The model cannot be reached",
    ]
    assert err.endswith(
        f"1 of 6 cells is in run/cells.jsonl; 3 cells in a row failed\n{unjudged(url)}{AGAIN}"
    )
    assert len(outages(folder / "run" / "cells.jsonl")) == 3


def told(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return a process's output once it ends; one that does not end fails the test and shows it."""
    try:
        return process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"It did not end:\n{process.communicate()}")


@pytest.mark.loopback
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
@pytest.mark.parametrize(
    ("signals", "workers", "code"),
    [
        ([signal.SIGINT], "2", 130),
        ([signal.SIGINT] * 5, "1", 130),
        ([signal.SIGTERM], "1", 143),
        ([signal.SIGHUP], "1", -signal.SIGHUP),  # the terminal is closed: nobody would read a word
    ],
    ids=["Ctrl-C", "Ctrl-C again and again", "SIGTERM", "closed terminal"],
)
def test_a_run_that_is_stopped_loses_nothing(
    folder: Path, signals: list[int], workers: str, code: int
) -> None:
    """It waits for a silent server, so it could not end by itself."""
    journal, silent = folder / "run" / "cells.jsonl", folder / "silent"
    with served("9", "silent") as url:
        asks(url)
        process = Shell(folder, folder / "threads.sqlite").start(*COMMAND, workers)
        until(silent.read_text, process, PATIENCE)
        others = begun_by(process.pid)
        for number in signals:
            process.send_signal(number)
        out, err = told(process)
        assert (process.returncode, out) == (code, ""), err
        rows = lines(journal) - 1  # of two concurrent cells neither may be finished, or both
        kept = f"{rows} of 6 cells {'is' if rows == 1 else 'are'} in run/cells.jsonl" if rows else NOTHING
        assert rows == 1 or workers == "2"
        assert err.endswith(f"Stopped: {kept}. {AGAIN}" if code > 0 else ""), err
        assert "Traceback" not in err, err
        assert all(map(is_gone, others))
        silent.unlink()
        done, _, err = wakeloop(*COMMAND, "1")
    assert (done, "6 of 6 cells are in run/cells.jsonl\n" in err) == (0, True), err
