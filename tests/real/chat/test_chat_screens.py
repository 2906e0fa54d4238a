"""A chat on the screen of a terminal, as an emulator shows it, in three widths; and in tmux."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from pathlib import Path
from secrets import token_hex

import pexpect
import pytest
from chat_server import Reply, Server
from emulator import Emulator
from processes import COMMAND, Shell

from wakeloop.display.terminal_output import wrap_text

pytestmark = [
    pytest.mark.loopback,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
PLAN = Reply(calls=[("todo_write", {"items": ["measure the files of the whole folder", "report"]})])
DONE = Reply(calls=[("todo_update", {"id": n, "status": "done"}) for n in (1, 2)])
ANSWER = Reply("It is **measured**: the files of the whole folder are no longer than others.")


def options(server: Server) -> list[str]:
    return ["chat", "--thread", "mine", "--model", "m", "--base-url", server.url]


AT_80 = [
    "Starting m on thread mine …",
    ".help lists the commands.",
    "> first",
    "sent: second",
    "model: One.",
    "model: Two.",
    "0 wakes, 2 requests, 30 tokens, S s",
    "> third",
]
AT_40 = [
    "> plan",
    "model: It is measured: the files of the",
    "       whole folder are no longer than",
    "       others.",
    "  [x] 1 measure the files of the whole",
    "      folder",
    "  [x] 2 report",
    "Settled: nothing on the list is open.",
]
AT_120 = [
    "> go",
    "sent: not this",
    "Stopping. Press Ctrl-C again to stop at once.",
    "  [x] 1 measure the files of the whole folder",
    "  [x] 2 report",
    "Stopped with 0 open; your next message starts fresh.",
    "0 wakes, 0 requests, S s",
    "Discarded what you typed meanwhile.",
    ">",
    "list: 2/2 closed",
]


@pytest.mark.slow
def test_a_talk_in_three_widths(shell: Shell, tmp_path: Path, serve) -> None:
    server = serve(
        Reply("One.", delay=2), Reply("Two."), PLAN, DONE, ANSWER, Reply("late", delay=20), Reply("Six.")
    )
    talk = Emulator(shell, tmp_path / "state", *options(server))
    talk.until_last(*AT_80[:2], ">")

    # text typed during a run is shown, and taken by it
    talk.child.send("first\r")
    talk.until(lambda: server.requests)
    talk.child.send("seconn\x7fd\rthird")
    talk.until(lambda: "sent: second" in talk.rows())
    talk.until_last(*AT_80)
    assert talk.rows() == AT_80
    assert [request["messages"][-1]["content"] for request in server.requests] == ["first", "second"]

    # the list, next to the conversation
    talk.child.send("\x15")
    talk.resized(40)
    talk.child.send("plan\r")
    talk.until_last(">", "list: 2/2 closed")
    assert talk.rows()[: len(AT_40)] == AT_40

    # Ctrl-C drops the typed words, and says so
    talk.resized(120)
    talk.child.send("go\r")
    talk.until(lambda: len(server.requests) == 6)
    talk.child.send("not this\r")
    talk.until(lambda: "sent: not this" in talk.rows())
    talk.child.send("\x03")
    talk.until_last(*AT_120)
    assert talk.rows() == AT_120
    talk.child.send("quit\r")
    talk.child.expect(pexpect.EOF)
    talk.child.close()
    assert talk.child.exitstatus == 0
    assert len(server.requests) == 6


@pytest.mark.slow
def test_in_tmux(shell: Shell, tmp_path: Path, serve) -> None:
    server = serve(Reply("One.", delay=3), Reply("Two."))
    socket = [
        "tmux",
        "-L",
        f"wakeloop-{token_hex(4)}",
        "-f",
        "/dev/null",
    ]  # all of a user's are in one folder
    env = {**shell.env, "XDG_STATE_HOME": str(tmp_path / "state")}

    def tmux(*args: str) -> str:
        done = subprocess.run(
            [*socket, *args], env=env, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout

    def shown() -> list[str]:
        rows = [
            re.sub(r"\d+\.\d s$", "S s", row.rstrip()) for row in tmux("capture-pane", "-pJ").splitlines()
        ]
        return [row for row in rows if row]

    def until(*rows: str) -> None:
        deadline = time.monotonic() + 60
        while shown()[-len(rows) :] != list(rows):
            if time.monotonic() > deadline:
                pytest.fail("\n".join(shown()))
            time.sleep(0.1)

    command = shlex.join([*COMMAND, *options(server)])
    tmux("new-session", "-d", "-x", "80", "-y", "24", f"cd {shlex.quote(str(shell.folder))}; {command}; cat")
    try:
        until(*AT_80[:2], ">")
        tmux("send-keys", "first", "Enter")
        deadline = time.monotonic() + 60
        while not server.requests and time.monotonic() < deadline:
            time.sleep(0.05)
        tmux("send-keys", "second", "Enter", "third")
        until(*AT_80)
        assert shown() == AT_80
        tmux("send-keys", "C-u", "/help", "Enter")
        until("exit and quit leave, help lists these commands. A / works in place of the dot.", ">")
        tmux("send-keys", "exit", "Enter")
        until("> exit", *wrap_text(f"To continue: wakeloop chat --thread mine --db {shell.db}", 80))
    finally:
        tmux("kill-server")
