"""C73: five large files on a server with a window of 15,000 tokens."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from processes import Shell

pytestmark = pytest.mark.loopback

LINES = 500  # of 32 characters: 4,000 tokens per file
ASK = "Read the five files."


@pytest.fixture
def small(shell: Shell) -> Iterator[Callable[..., str]]:
    """Start a server process with a window, next to five large files."""
    running: list[subprocess.Popen[str]] = []

    def start(window: int, *more: str) -> str:
        for number in range(5):
            (Path(shell.folder) / f"big{number}.txt").write_text("a line of thirty-two characters\n" * LINES)
        program = [sys.executable, str(Path(__file__).with_name("window_server.py")), str(window), *more]
        server = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
        running.append(server)
        assert server.stdout is not None
        return f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"

    yield start
    for server in running:
        server.kill()
        server.communicate()


def seen(url: str) -> list[list[int]]:
    with urlopen(url.replace("/v1", "/seen")) as answer:
        return json.loads(answer.read())  # type: ignore[no-any-return]


def ask(shell: Shell, url: str, *words: str) -> Any:
    return shell(*words, "--model", "m", "--base-url", url, "--json")


@pytest.mark.slow
def test_c73_a_refusal_is_learned_and_the_thread_lives_on(shell: Shell, small: Callable[..., str]) -> None:
    url = small(15_000)
    ran = ask(shell, url, "run", ASK, "--thread", "t")
    assert (ran.returncode, json.loads(ran.stdout)["session"]["reason"]) == (0, "answered"), ran.stderr
    assert [status for _, status in seen(url)] == [*[200] * 5, 400, 200]
    ran = ask(shell, url, "run", "Thank you.", "--thread", "t")
    assert (ran.returncode, [status for _, status in seen(url)][-1]) == (0, 200), ran.stderr


def test_c73_a_server_that_names_its_window_refuses_nothing(shell: Shell, small: Callable[..., str]) -> None:
    url = small(15_000, "says")
    ran = ask(shell, url, "run", ASK, "--thread", "t")
    assert (ran.returncode, {status for _, status in seen(url)}) == (0, {200}), ran.stderr
    assert len(seen(url)) == 6


@pytest.mark.slow
def test_c73_a_thread_that_died_of_its_length_is_healed(shell: Shell, small: Callable[..., str]) -> None:
    url = small(15_000)
    ran = ask(shell, url, "run", ASK, "--thread", "t", "--set", "max_context=0")
    assert (ran.returncode, seen(url)[-1][1]) == (1, 400)
    before = len(seen(url))
    ran = ask(shell, url, "resume", "t", "--set", "max_context=100000")
    assert (ran.returncode, json.loads(ran.stdout)["session"]["reason"]) == (0, "answered"), ran.stderr
    assert [status for _, status in seen(url)[before:]].count(400) == 1


def test_c73_a_window_that_is_too_small_ends_as_full(shell: Shell, small: Callable[..., str]) -> None:
    url = small(500)
    ran = shell("run", ASK, "--thread", "t", "--model", "m", "--base-url", url)
    assert (ran.returncode, [status for _, status in seen(url)]) == (1, [400, 400, 400])
    assert "does not fit the model's context" in ran.stdout + ran.stderr
    assert "max_context" in ran.stdout + ran.stderr
