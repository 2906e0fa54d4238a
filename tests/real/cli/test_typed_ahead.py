"""In a terminal: anything typed before a question is not its answer, in run, resume and chat."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest
from chat_server import Reply, Server
from processes import Shell
from seated import seated
from waiting import until

pytestmark = [
    pytest.mark.loopback,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
PROMPT = "\x1b\\[\\?2004h"  # sent by the chat's prompt when it begins to read
HINT = "n and your reason for no"
FIRST, SECOND = (Reply(calls=[("run_shell", {"command": f"touch {name}"})], delay=1.5) for name in "ab")
PLAN = (FIRST, SECOND, Reply("Done."))


@pytest.fixture
def start(shell: Shell, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    started: list[Any] = []

    def begin(*args: str) -> Any:
        started.append(seated(shell, tmp_path / "state", *args, PROMPT_TOOLKIT_NO_CPR="1"))
        return started[-1]

    yield begin
    for child in started:
        child.close(force=True)


def at(server: Server, count: int) -> None:
    """Wait until a request is under way."""
    until(lambda: len(server.requests) >= count)


def made(shell: Shell) -> str:
    return "".join(name for name in "ab" if (shell.folder / name).exists())


def ends(child: Any) -> int:
    child.expect(pexpect.EOF)
    child.close()
    assert "Traceback" not in str(child.before)
    return int(child.exitstatus)


def options(server: Server) -> list[str]:
    return ["--model", "m", "--base-url", server.url, "--tools", "shell"]


@pytest.mark.slow
def test_run_takes_no_answer_that_was_typed_ahead(start, serve, shell: Shell) -> None:
    server = serve(*PLAN)
    child = start("run", "x", *options(server))
    at(server, 1)
    child.send("y\ny\n")
    child.expect(HINT)
    time.sleep(1)
    assert (made(shell), len(server.requests)) == ("", 1)
    child.send("y\n")
    at(server, 2)  # the first command ran; the next question has not come
    child.send("y\ny")  # the second line is not even ended
    child.expect(HINT)
    assert made(shell) == "a"
    child.send("\n")  # an empty line is a no: the y before it is gone
    assert ends(child) == 0
    assert made(shell) == "a"


@pytest.mark.slow
def test_resume_takes_no_answer_that_was_typed_ahead(start, serve, shell: Shell) -> None:
    server = serve(*PLAN)
    assert shell("run", "x", "--thread", "t", *options(server)).returncode == 4
    child = start("resume", "t")
    child.send("y\ny\n")  # before the command has even begun
    child.expect(HINT)
    time.sleep(1)
    assert (made(shell), len(server.requests)) == ("", 1)
    child.send("y\n")
    at(server, 2)
    child.send("y\n")
    child.expect(HINT)
    child.send("no\n")
    assert ends(child) == 0
    assert made(shell) == "a"


def test_two_questions_are_each_answered_by_what_is_typed_after_them(start, serve, shell: Shell) -> None:
    both = Reply(calls=[("run_shell", {"command": f"touch {name}"}) for name in "ab"])
    server = serve(both, Reply("Done."))
    child = start("run", "x", *options(server))
    child.expect("or o to decide one by one")
    child.send("o\ny\ny\n")  # what follows the o was typed before the first question
    child.expect(HINT)
    assert made(shell) == ""
    child.send("y\ny\n")
    child.expect(HINT)
    child.send("\n")
    assert ends(child) == 0
    assert made(shell) == "a"


@pytest.mark.slow
def test_chat_takes_no_answer_that_was_typed_ahead(start, serve, shell: Shell) -> None:
    server = serve(*PLAN)
    child = start("chat", "--thread", "t", *options(server))
    child.expect(PROMPT)
    child.send("go\ry\ry\r")  # the prompt has read the keys after the text
    at(server, 1)
    child.send("y\ry\r")  # and these lines are sent to the run
    child.expect(HINT)
    child.expect(PROMPT)
    time.sleep(1)
    assert (made(shell), len(server.requests)) == ("", 1)
    child.send("y\r")
    at(server, 2)
    child.send("y\r")
    child.expect(HINT)
    child.expect(PROMPT)
    time.sleep(0.5)
    assert made(shell) == "a"
    child.send("not this one\r")
    child.expect("model: Done.")
    child.expect(PROMPT)
    child.send(".exit\r")
    assert ends(child) == 0
    assert made(shell) == "a"
    results = [one["content"] for one in server.requests[-1]["messages"] if one["role"] == "tool"]
    assert "not this one" in str(results[-1])


@pytest.mark.slow
def test_chat_that_begins_at_a_question_takes_no_answer_that_was_typed_ahead(
    start, serve, shell: Shell
) -> None:
    server = serve(*PLAN)
    assert shell("run", "x", "--thread", "t", *options(server)).returncode == 4
    child = start("chat", "--thread", "t")
    child.send("y\r")
    child.expect(HINT)
    child.expect(PROMPT)
    time.sleep(1)
    assert (made(shell), len(server.requests)) == ("", 1)
    child.send("\x04")
    assert ends(child) == 0


def test_suspending_a_chat_adds_no_character_to_what_is_typed(
    serve: Callable[..., Server], start: Callable[..., Any]
) -> None:
    server = serve(Reply("Hello."))
    talk = start("chat", "--thread", "mine", "--model", "m", "--base-url", server.url)
    talk.expect(PROMPT)
    talk.send("\x1a")  # nobody is there to continue it: the system does
    talk.send("hello\r")
    at(server, 1)
    assert server.requests[0]["messages"][-1]["content"] == "hello"
