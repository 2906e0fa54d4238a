"""Streams that are closed before a command begins: one sentence, and no database in their place."""

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = f'"{sys.executable}" -m wakeloop.cli.commands.app'
NO_OUTPUT = "wakeloop: Standard output is closed, so nothing can be printed.\n"


def run_line(line: str, folder: Path) -> tuple[int, str, str]:
    shell = ["/bin/sh", "-c", f"exec {COMMAND} {line}"]
    ran = subprocess.run(shell, capture_output=True, text=True, cwd=folder, check=False)
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "ends"),
    [
        ("run - --model openai:x", (2, "wakeloop: The request is empty. Say what the agent shall do.\n")),
        ("chat --model openai:x", (0, "")),
    ],
)
def test_closed_input_is_empty_input(
    line: str, ends: tuple[int, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert run_line(f"{line} <&-", tmp_path)[::2] == ends


@pytest.mark.parametrize("line", ["threads", "graph", "show t", "ps"])
def test_a_command_that_writes_says_that_there_is_nothing_to_write_to(line: str, tmp_path: Path) -> None:
    assert run_line(f"{line} >&-", tmp_path) == (1, "", NO_OUTPUT)


@pytest.mark.slow
def test_without_stderr_the_output_stays_complete(tmp_path: Path) -> None:
    code, out, _ = run_line("graph 2>&-", tmp_path)
    assert code == 0
    assert out.startswith("---\nconfig:")


def test_without_any_stream_a_command_ends(tmp_path: Path) -> None:
    assert run_line("threads <&- >&- 2>&-", tmp_path) == (1, "", "")
