"""The demo: the whole graph over real files, killed and resumed."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
from pathlib import Path
from unittest.mock import ANY

import pytest
from processes import Shell, lines


def thread_of(text: str) -> str:
    found = re.search(r"\bdemo-[0-9a-f]+", text)
    assert found, text
    return found.group()


def test_json_is_one_object_and_the_rest_goes_to_stderr(shell: Shell, files) -> None:
    files(shell.folder, 1)
    done = shell("demo", ".", "--json")
    final = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert final["session"] == {
        "state": "dormant",
        "reason": "settled",
        "open": 0,
        "items": 2,
        "completed": 2,
        "cancelled": 0,
        "blocked": 0,
        "wakes": 2,
        "budget": 27,
        "list": ANY,
        "spent": ANY,
    }
    assert final["wakes"] == 2
    assert final["error"] is None
    assert [todo["status"] for todo in final["todos"]] == ["completed"] * 2
    assert final["usage"]["total_tokens"] == sum(
        final["usage"][key] for key in ("input_tokens", "output_tokens")
    )
    assert lines(done.stderr, "Auto-continuing (2/26): 1 incomplete todo remains")


@pytest.mark.slow
def test_without_a_folder_it_audits_samples_and_is_compared_with_a_plain_loop(shell: Shell) -> None:
    done = shell("demo")
    shown = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(shown) <= 60
    assert shown[-2:] == [
        "A plain loop stops at 1 of 8 items. Here: 8 of 8, with 5 wakes and 15 requests.",
        "Report: wakeloop-demo/wakeloop-report.html",
    ]
    assert len(lines(done.stdout, "Auto-continuing (")) == 5
    assert "about" in shown[-3]  # nothing counts a script's tokens
    report = (shell.folder / "wakeloop-demo" / "wakeloop-report.md").read_text()
    assert "dead link in line `7: winter.md`" in report
    (shell.folder / "wakeloop-demo" / "fares.py").write_text("# TODO: my own\n")
    assert "TODO: my own" in shell("demo").stdout


def reads(db: Path) -> list[str]:
    """Return the calls of measure_file that finished, as the history has them."""
    shown = json.loads(db.read_text())
    calls = {call["id"]: call for m in shown["history"] for call in m.get("tool_calls", ())}
    return [
        calls[m["tool_call_id"]]["args"]["path"]
        for m in shown["history"]
        if m["type"] == "tool" and m["name"] == "measure_file" and m["status"] == "success"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "after",
    ["tool: measure_file", "Auto-continuing (1/26)", "list: 2/5"],
)
def test_killed_and_resumed_it_finishes_and_reads_nothing_twice(
    shell: Shell, files, after: str, tmp_path: Path
) -> None:
    files(shell.folder, 4)
    process = shell.start("demo", ".", "--delay", "0.05")
    assert process.stdout is not None
    told = []
    for line in process.stdout:
        told.append(line)
        if line.startswith(after):
            process.kill()
            break
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    thread = thread_of(told[0])
    listed = json.loads(shell("threads", "--json").stdout)
    assert listed[0]["state"] == "interrupted"
    done = shell("resume", thread)
    assert done.returncode == 0, done.stderr
    wakes = lines("".join(told) + done.stdout, "Auto-continuing (")
    numbers = {int(line.partition("(")[2].partition("/")[0]) for line in wakes}  # one may be shown twice
    assert numbers == set(range(1, len(numbers) + 1))
    assert len(numbers) in {3, 4}  # undisturbed three; the model of a new process draws its habits again
    (tmp_path / "shown").write_text(shell("show", thread, "--history", "--json").stdout)
    assert sorted(reads(tmp_path / "shown")) == [f"part{n}.py" for n in range(4)]


def test_synchronous_normal_and_wal(shell: Shell, files) -> None:
    files(shell.folder, 1)
    shell("demo", ".")
    with sqlite3.connect(shell.db) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    assert shell.db.stat().st_mode & 0o077 == 0


def test_two_processes_never_run_one_thread(shell: Shell, files) -> None:
    files(shell.folder, 2)
    process = shell.start("demo", ".", "--delay", "3")
    assert process.stdout is not None
    thread = thread_of(process.stdout.readline())
    assert process.stdout.readline()
    second = shell("resume", thread)
    assert second.returncode == 1
    assert "Another process is using the thread" in second.stderr
    assert shell("todo", thread, "add", "x").returncode == 1
    assert json.loads(shell("threads", "--json").stdout)[0]["state"] == "running"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "SIGTERM: stopping" in out


def test_a_closed_pipe_ends_it_quietly(shell: Shell, files) -> None:
    files(shell.folder, 2)
    with shell.start("demo", ".", "--delay", "0.1") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 1
