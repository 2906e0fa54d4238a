"""In a terminal: the live view, typed answers, Ctrl-C and Ctrl-D."""

from __future__ import annotations

import os
import pty
import re
import select
import time
from collections.abc import Iterator

import pytest
from chat_server import Reply
from processes import Shell

pytestmark = pytest.mark.loopback

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
ASKS = Reply(calls=[("run_shell", {"command": "echo it ran > ran.txt"})])
EVIL = "\x1b]0;title\x07[bold]x[/bold]\x1b[8m\u202e"


class Terminal:
    """A process whose stdin, stdout and stderr are one terminal."""

    def __init__(self, shell: Shell, *args: str) -> None:
        self.ours, theirs = pty.openpty()
        env = {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
        self.process = shell.start(*args, terminal=theirs, env=env)
        os.close(theirs)
        self.raw = ""

    def until(self, text: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while text not in ESCAPES.sub("", self.raw):
            if not self.more(0.1) or time.monotonic() > deadline:
                self.process.kill()
                pytest.fail(f"{text!r} never came: {self.raw!r}")

    def more(self, seconds: float) -> bool:
        if not select.select([self.ours], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.ours, 65_536)
        except OSError:
            return False
        self.raw += data.decode(errors="replace")
        return bool(data)

    def types(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def ends(self) -> int:
        deadline = time.monotonic() + 60
        while self.more(0.1) and self.process.poll() is None:
            if time.monotonic() > deadline:
                self.process.kill()
                pytest.fail(f"it does not end: {self.raw!r}")
        code = self.process.wait(timeout=60)
        while select.select([self.ours], [], [], 0)[0] and self.more(0):
            pass
        os.close(self.ours)
        assert "Traceback" not in self.raw, self.raw
        return code


@pytest.fixture
def asked(shell: Shell, serve) -> Iterator[Terminal]:
    plan = Reply(f"Plan {EVIL}", calls=[("todo_write", {"items": [f"look {EVIL}"]})])
    server = serve(
        plan, ASKS, Reply(calls=[("todo_update", {"id": 1, "status": "done"})]), Reply("All done.")
    )
    terminal = Terminal(shell, "run", "x", "--model", "m", "--base-url", server.url, "--tools", "shell")
    terminal.until("n and your reason for no")
    yield terminal
    assert "\x1b]0;" not in terminal.raw
    assert "\x1b[8m" not in terminal.raw
    assert "\u202e" not in terminal.raw
    assert "[bold]x[/bold]" in terminal.raw
    assert terminal.raw.count("\x1b[?25l") == terminal.raw.count("\x1b[?25h")  # the cursor is back


def test_a_command_is_run_after_a_yes(asked: Terminal, shell: Shell) -> None:
    asked.types("y\n")
    assert asked.ends() == 0
    assert (shell.folder / "ran.txt").exists()
    assert "0/1 closed" in asked.raw
    assert "Settled: nothing on the list is open." in asked.raw


def test_the_end_of_input_parks_it(asked: Terminal, shell: Shell) -> None:
    asked.types("\x04")
    assert asked.ends() == 4
    assert "To answer:\r\nwakeloop resume t-" in ESCAPES.sub("", asked.raw)
    assert not (shell.folder / "ran.txt").exists()


def test_ctrl_c_at_the_question(asked: Terminal, shell: Shell) -> None:
    asked.types("\x03")
    assert asked.ends() == 130
    assert "To answer:\r\nwakeloop resume t-" in ESCAPES.sub("", asked.raw)
    assert not (shell.folder / "ran.txt").exists()


@pytest.mark.slow
def test_ctrl_c_twice_during_a_request(shell: Shell, serve) -> None:
    server = serve(Reply("late", delay=30))
    terminal = Terminal(shell, "run", "x", "--model", "m", "--base-url", server.url)
    terminal.until("waiting for the model")
    terminal.types("\x03\x03")
    assert terminal.ends() == 130
    assert "To continue:\r\nwakeloop resume t-" in ESCAPES.sub("", terminal.raw)
    assert terminal.raw.count("\x1b[?25l") == terminal.raw.count("\x1b[?25h")


QUESTION = "I found 14 files. Shall I delete them?"
PLAN = Reply(calls=[("todo_write", {"items": ["one"]})])
DONE = Reply(calls=[("todo_update", {"id": 1, "status": "done"})])


@pytest.mark.parametrize(("typed", "told"), [("Yes.", "Yes."), ("", "(automatic) Nobody has answered")])
def test_a_question_in_words_is_asked_right_there(shell: Shell, serve, typed: str, told: str) -> None:
    server = serve(PLAN, Reply(QUESTION), DONE, Reply("Done."))
    shown = Terminal(shell, "run", "Tidy up.", "--thread", "mine", "--model", "m", "--base-url", server.url)
    shown.until(f"question: {QUESTION}")
    shown.until("(Enter alone continues without it):")
    shown.types(f"{typed}\n")
    assert shown.ends() == 0
    last = [message["content"] for message in server.requests[2]["messages"] if message["role"] == "user"][-1]
    assert last.startswith(told)
    assert "ask_user" in [tool["function"]["name"] for tool in server.requests[0]["tools"]]


def test_if_nobody_types_it_continues(serve, shell: Shell) -> None:
    server = serve(PLAN, Reply(QUESTION), DONE, Reply("Done."))
    assert shell("run", "Tidy up.", "--model", "m", "--base-url", server.url).returncode == 0
    assert "Nobody has answered" in server.requests[2]["messages"][-1]["content"]
    assert "ask_user" not in [tool["function"]["name"] for tool in server.requests[0]["tools"]]


@pytest.mark.slow
def test_if_nobody_types_and_it_should_park_it_says_how_to_answer(serve, shell: Shell) -> None:
    server = serve(PLAN, Reply(QUESTION), DONE, Reply("Done."))
    where = ["--thread", "mine", "--model", "m", "--base-url", server.url, "--set", "on_question=park"]
    first = shell("run", "Tidy up.", *where)
    assert first.returncode == 4
    assert f"question: {QUESTION}" in first.stdout
    assert "wakeloop resume mine 'your answer'" in first.stdout
    assert "it waits for your answer" in shell("resume", "mine").stdout
    assert f"question: {QUESTION}" in shell("show", "mine").stdout
    shell("resume", "mine", "Yes.")
    assert len(server.requests) == 4
