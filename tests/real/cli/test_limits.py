"""Rule 29 on the command line: a countdown when a person is looking, otherwise an exit code."""

from __future__ import annotations

import json
import re
import time

import pytest
from chat_server import Reply
from processes import Shell
from test_terminal import Terminal

pytestmark = pytest.mark.loopback

SOON = Reply(status=429, headers={"retry-after-ms": "50"})  # the client itself tries three times
LATER = Reply(status=429, words="Rate limit reached. Please try again in 1h2m.")
NEVER = Reply(status=429, words="Rate limit reached. Please try again later.")
HELLO = Reply("Hello.")


def test_without_a_terminal_it_exits_and_a_resume_tries_again(shell: Shell, serve) -> None:
    server = serve(SOON, SOON, SOON, HELLO)
    ran = shell("run", "hi", "--model", "small", "--base-url", server.url, "--thread", "t")
    assert ran.returncode == 4
    assert re.search(r"Waiting for a limit of the provider, until \d\d:\d\d:\d\d\.", ran.stdout)
    assert "To continue: wakeloop resume t" in ran.stdout
    assert len(server.requests) == 3
    listed = shell("threads", "--json")
    [row] = json.loads(listed.stdout)
    assert (row["state"], row["on"], row["until"] > time.time() - 60) == ("waiting", "limit", True)
    assert "t: waits for a limit of the provider, until " in shell("threads").stdout
    again = shell("resume", "t")
    assert (again.returncode, "model: Hello." in again.stdout) == (0, True)
    assert [m["content"] for m in server.requests[-1]["messages"]][1:] == ["hi"]


def test_without_a_time_it_is_an_error(shell: Shell, serve) -> None:
    server = serve(NEVER)
    ran = shell("run", "hi", "--model", "small", "--base-url", server.url)
    assert (ran.returncode, "is limiting your requests (429)" in ran.stderr) == (1, True)


@pytest.mark.slow
def test_at_a_terminal_it_counts_down_and_continues(shell: Shell, serve) -> None:
    server = serve(SOON, SOON, SOON, HELLO)
    terminal = Terminal(shell, "run", "hi", "--model", "small", "--base-url", server.url)
    terminal.until("The provider limits requests: the next one in ")
    terminal.until("model: Hello.")
    assert terminal.ends() == 0
    assert len(server.requests) == 4


def test_ctrl_c_ends_the_countdown_and_keeps_the_thread(shell: Shell, serve) -> None:
    server = serve(LATER)
    command = ["run", "hi", "--model", "small", "--base-url", server.url, "--thread", "t"]
    terminal = Terminal(shell, *command, "--wait", "2h")
    terminal.until("the next one in 1 h 0")
    terminal.types("\x03")
    terminal.until("Waiting for a limit of the provider, until ")
    assert terminal.ends() == 4
    assert json.loads(shell("show", "t", "--json").stdout)["session"]["on"] == "limit"


@pytest.mark.slow
@pytest.mark.parametrize("option", [[], ["--wait", "none"]])
def test_too_long_a_wait_is_an_error(shell: Shell, serve, option: list[str]) -> None:
    server = serve(LATER)
    terminal = Terminal(shell, "run", "hi", "--model", "small", "--base-url", server.url, *option)
    assert terminal.ends() == 4
    assert "the next one in" not in terminal.raw


@pytest.mark.slow
def test_in_a_chat_a_message_cancels_the_wait(shell: Shell, serve) -> None:
    server = serve(LATER, LATER, LATER, HELLO)
    terminal = Terminal(shell, "chat", "--model", "small", "--base-url", server.url, "--wait", "2h")
    terminal.until(".help lists the commands.")
    terminal.types("hi\r")
    terminal.until("the next one in 1 h 0")
    terminal.types("are you there?\r")
    terminal.until("Hello.")
    terminal.types("\x04")
    terminal.ends()


@pytest.mark.parametrize("given", ["soon", "-5"])
def test_a_wait_is_a_time(shell: Shell, given: str) -> None:
    ran = shell("run", "hi", "--model", "small", f"--wait={given}")
    assert (ran.returncode, "--wait takes a time such as 15m" in ran.stderr) == (2, True)
