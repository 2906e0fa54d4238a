"""run --done-when COMMAND: exit codes, reasons, what is kept of it, and resuming."""

from __future__ import annotations

import json
import re

import pytest
from chat_server import Reply
from processes import Shell

pytestmark = pytest.mark.loopback

DONE = Reply("All done.")


def last_message(request: dict[str, object]) -> str:
    """Return the last user message of a request."""
    return [m["content"] for m in request["messages"] if m["role"] == "user"][-1]  # type: ignore[attr-defined]


def run(shell: Shell, url: str, check: str, *more: str) -> object:
    return shell("run", "go", "--done-when", check, "--model", "small", "--base-url", url, *more)


def test_it_continues_until_the_command_succeeds(shell: Shell, serve) -> None:
    server = serve(DONE, Reply(calls=[("write_file", {"path": "a", "content": "x"})]), DONE)
    ran = run(shell, server.url, "echo a is missing; echo b too; test -e a")
    assert (ran.returncode, len(server.requests)) == (0, 3)
    assert "It says what is missing: a is missing\n  | b too" in last_message(server.requests[1])
    assert "goal: not met: a is missing b too" in ran.stdout
    assert "Done: the goal is met, 0 open." in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "code", "reason", "missing"),
    [
        ("exit 0", 0, "goal_met", None),
        ("echo no key; exit 3", 3, "blocked", "no key"),
        ("echo the build; exit 4", 4, "waiting", "the build"),
        ("echo 1 failed; exit 1", 3, "stalled", "1 failed"),
        ("exit 9", 3, "stalled", "the command ended with exit code 9"),
        ("sleep 60", 3, "stalled", "did not finish in 0.2 s"),
    ],
)
def test_each_exit_code_of_the_command(
    check: str, code: int, reason: str, missing: str | None, shell: Shell, serve
) -> None:
    server = serve(DONE, DONE)
    ran = run(shell, server.url, check, "--set", "max_idle_wakes=1", "--done-when-seconds", "0.2", "--json")
    final = json.loads(ran.stdout)
    assert (ran.returncode, final["session"]["reason"], final["session"].get("missing")) == (
        code,
        reason,
        missing,
    )
    assert len(server.requests) == (2 if reason == "stalled" else 1)


def test_the_command_is_kept_and_a_resume_of_an_unmet_goal_continues(shell: Shell, serve) -> None:
    server = serve(DONE, DONE)
    ran = run(shell, server.url, "echo no a; test -e a", "--set", "max_wake_cycles=0", "--root", ".")
    assert ran.returncode == 3
    assert "Missing: no a." in ran.stdout
    assert "To continue: wakeloop resume" in ran.stdout
    thread = re.search(r"\bt-[0-9a-f]{8}", ran.stdout)
    assert thread
    (shell.folder / "a").touch()
    again = shell("resume", thread.group(), "--json")
    assert "missing: no a" in last_message(server.requests[1])
    assert (again.returncode, json.loads(again.stdout)["session"]["reason"]) == (0, "goal_met")


@pytest.mark.slow
def test_a_resume_of_a_condition_asks_before_any_request(shell: Shell, serve) -> None:
    server = serve(DONE)
    ran = run(shell, server.url, "test -e a || { echo the build; exit 4; }", "--root", ".")
    assert ran.returncode == 4
    assert "Waiting for the build, until " in ran.stdout
    thread = re.search(r"\bt-[0-9a-f]{8}", ran.stdout)
    assert thread
    assert shell("resume", thread.group()).returncode == 4
    (shell.folder / "a").touch()
    assert shell("resume", thread.group()).returncode == 0
    assert len(server.requests) == 1


def test_a_met_goal_with_open_items_asks_before_any_request(shell: Shell, serve) -> None:
    server = serve(Reply(calls=[("todo_write", {"items": ["a"]})]), DONE)
    ran = run(shell, server.url, "true")
    thread = re.search(r"\bt-[0-9a-f]{8}", ran.stdout)
    assert thread
    assert (ran.returncode, shell("resume", thread.group()).returncode) == (0, 0)
    assert len(server.requests) == 2


def test_a_goal_given_to_a_thread_at_rest_is_checked(shell: Shell, serve) -> None:
    server = serve(DONE, DONE)
    ran = shell("run", "go", "--model", "small", "--base-url", server.url)
    thread = re.search(r"\bt-[0-9a-f]{8}", ran.stdout)
    assert thread
    assert shell("resume", thread.group(), "--done-when", "true").returncode == 0
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--done-when", ""], "--done-when expects a command or 'none'"),
        (
            ["--done-when", "nosuchprogram -x"],
            "/bin/sh does not find 'nosuchprogram', the program of --done-when",
        ),
        (
            ["--done-when", "/no/such/check"],
            "/bin/sh does not find '/no/such/check', the program of --done-when",
        ),
        (
            ["--done-when", "true", "--done-when-seconds", "0"],
            "--done-when-seconds expects a number of seconds",
        ),
        (
            ["--done-when", "true", "--done-when-seconds", "soon"],
            "--done-when-seconds expects a number of seconds",
        ),
    ],
)
def test_refusals_before_the_run(options: list[str], sentence: str, shell: Shell) -> None:
    ran = shell("run", "go", *options, "--model", "small")
    assert ran.returncode == 2
    assert sentence in ran.stderr
