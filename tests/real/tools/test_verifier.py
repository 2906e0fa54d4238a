"""Verifiers that run a command, with real processes."""

import json
import time
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pytest

from wakeloop.tools.shell import command_verifier, find_missing_program

TODO: Any = {"id": 3, "content": "write it", "status": "in_progress"}


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("true", None),
        ("echo fine", None),
        ("false", "the check ended with exit code 1"),
        ("echo one; echo ' two '; echo; exit 3", "two"),
        ("echo why >&2; exit 1", "why"),
        ("kill -9 $$", "the check ended with exit code -9"),
        ("head -c 301 /dev/zero | tr '\\0' x; exit 1", "x" * 299 + "…"),
    ],
)
def test_the_exit_code_is_the_verdict(command: str, verdict: str | None, tmp_path: Path) -> None:
    assert command_verifier(command, tmp_path)(TODO, {}) == verdict


@pytest.mark.parametrize("content", ["write it", "$(touch hit); `touch hit`; '\"; touch hit #", "é\nx", "-n"])
def test_the_item_is_in_the_environment_and_nowhere_else(content: str, tmp_path: Path) -> None:
    todo = {**TODO, "content": content}
    command = 'printf %s "$WAKELOOP_TODO_CONTENT" > words; printf %s "$WAKELOOP_TODO" > item; '
    command += 'test "$WAKELOOP_TODO_ID" = 3'
    assert command_verifier(command, tmp_path)(todo, {}) is None
    assert (tmp_path / "words").read_text() == content
    assert json.loads((tmp_path / "item").read_text()) == todo
    assert sorted(path.name for path in tmp_path.iterdir()) == ["item", "words"]


@pytest.mark.parametrize("content", ["a\0b", "\ud800", "x" * 300_000])
def test_values_that_no_environment_can_hold(content: str, tmp_path: Path) -> None:
    assert command_verifier("true", tmp_path)({**TODO, "content": content}, {}) is None


def test_secrets_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    assert command_verifier('test -z "$OPENAI_API_KEY"', tmp_path)(TODO, {}) is None


def test_it_has_a_time_limit_and_its_group_is_ended(tmp_path: Path) -> None:
    began = time.monotonic()
    check = command_verifier("(sleep 5; touch late) & sleep 60", tmp_path, timeout=0.2)
    assert check(TODO, {}) == "the check took longer than 0.2 s"
    assert time.monotonic() - began < 5


def test_stopping_it_is_not_a_verdict(tmp_path: Path) -> None:
    stop = Event()
    Timer(0.2, stop.set).start()
    with pytest.raises(KeyboardInterrupt):
        command_verifier("sleep 60", tmp_path, stop=stop)(TODO, {})


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("nosuchprogram", "nosuchprogram"),
        ("  nosuchprogram -x y", "nosuchprogram"),
        ("/no/such/check --fast", "/no/such/check"),
        ("/bin/sh -c true", None),
        ("test -s x", None),
        ("cd x && nosuchprogram", None),
        ("if true; then false; fi", None),
        ("./made-later.sh", None),
        ("A=1 nosuchprogram", None),
        ("nosuchprogram() { true; }; nosuchprogram", None),
        ("nosuchprogram () { true; }; nosuchprogram", None),
        ("! nosuchprogram", None),
        ("nosuchprogram || true", None),
        ('"$PROGRAM" x', None),
        ("true;", None),
    ],
)
def test_the_program_that_a_command_begins_with(command: str, missing: str | None) -> None:
    assert find_missing_program(command) == missing
