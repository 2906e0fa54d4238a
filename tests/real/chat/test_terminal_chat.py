"""wakeloop chat in a real pseudo-terminal, against a server on loopback."""

from __future__ import annotations

import json
import re
import signal
import subprocess
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

READY = "\x1b\\[\\?2004h"  # sent by the prompt when it begins to read
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
PLAN = Reply(calls=[("todo_write", {"items": ["one", "two"]})])
ALT_ENTER, TAB, CTRL_C, CTRL_D = "\x1b\r", "\t", "\x03", "\x04"


class Typist:
    """A person at a terminal that shows `wakeloop chat`."""

    def __init__(self, shell: Shell, state: Path, *args: str) -> None:
        self.child = seated(shell, state, "chat", *args, PROMPT_TOOLKIT_NO_CPR="1")

    def ready(self) -> str:
        """Wait for the next prompt, and return what came before it."""
        self.child.expect(READY)
        return ESCAPES.sub("", str(self.child.before))

    def types(self, text: str) -> None:
        self.child.send(text)

    def enters(self, text: str) -> str:
        """Type an entry and wait for the next prompt."""
        self.types(text + "\r")
        self.child.expect("\x1b\\[\\?2004l")  # the entry is taken
        return self.ready()

    def ends(self) -> int:
        self.child.expect(pexpect.EOF)
        self.child.close()
        return int(self.child.exitstatus if self.child.signalstatus is None else -self.child.signalstatus)


@pytest.fixture
def chat(shell: Shell, tmp_path: Path) -> Iterator[Callable[..., Typist]]:
    typists: list[Typist] = []

    def start(server: Server, *args: str) -> Typist:
        where = ["--thread", "mine", "--model", "m", "--base-url", server.url]
        typists.append(Typist(shell, tmp_path / "state", *where, *args))
        return typists[-1]

    yield start
    for typist in typists:
        typist.child.close(force=True)


def texts(request: dict[str, Any], role: str = "user") -> list[str]:
    return [message["content"] for message in request["messages"] if message["role"] == role]


def waits_for(server: Server, count: int) -> None:
    until(lambda: len(server.requests) >= count)


def test_a_conversation(chat, serve, shell: Shell, tmp_path: Path) -> None:
    done = [("todo_update", {"id": 1, "status": "done"}), ("todo_update", {"id": 2, "status": "done"})]
    server = serve(PLAN, Reply("Working on it."), Reply(calls=done), Reply("All done."), Reply("Two lines."))
    typist = chat(server)
    begun = typist.ready()
    assert "Starting m on thread mine …" in begun
    assert ".help lists the commands." in begun
    assert "Thread mine" not in begun  # nothing is shown twice
    shown = typist.enters("please do it")
    assert "Auto-continuing (1/25): 2 incomplete todos remain" in shown
    assert "model: All done." in shown
    assert "[x] 2 two" in shown
    assert "Settled: nothing on the list is open." in shown
    assert "Did you mean .set?" in typist.enters(".sett")

    typist.types("first" + ALT_ENTER + "second")
    typist.enters("")
    assert texts(server.requests[-1])[-1] == "first\nsecond"
    typist.types('"""\rthird\r\rfourth\r"""')
    typist.enters("")
    assert texts(server.requests[-1])[-1] == "third\n\nfourth"

    asked = len(server.requests)
    typist.types(".set auto" + TAB)
    typist.child.expect("_continue")
    typist.types(" f" + TAB)
    typist.child.expect("alse")
    assert "auto_continue is false in this thread (default: true)." in typist.enters("")
    assert "auto_continue is off" in typist.enters(".clear todo")
    assert "auto_continue is true; this thread does not override it." in typist.enters(
        ".set auto_continue null"
    )
    assert "list: 2/2 closed" in typist.enters(".info todo")
    assert "List and goal cleared." in typist.enters(".clear todo")
    assert "list: 0/0 closed" in typist.enters(".info todo")
    typist.types("not sent" + CTRL_C)
    typist.ready()
    assert "thread: mine" in typist.enters(".session")
    assert len(server.requests) == asked
    typist.types(".exit\r")
    assert typist.ends() == 0
    # if the path is long, the command has its own row
    told = ESCAPES.sub("", str(typist.child.before)).split()
    way = f"To continue: wakeloop chat --thread mine --db {tmp_path / 'threads.sqlite'}"
    assert " ".join(told).endswith(way)

    kept = tmp_path / "state" / "wakeloop" / "chat-history"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "+please do it" in kept.read_text()
    assert json.loads(shell("show", "mine", "--json").stdout)["session"]["state"] == "dormant"


@pytest.mark.slow
def test_ctrl_c_ends_the_chain_for_good(chat, serve) -> None:
    server = serve(PLAN, Reply("Later."), Reply("Never read.", delay=4), Reply("Later."))
    typist = chat(
        server, "--set", "max_wake_cycles=2", "--set", "max_idle_wakes=0", "--set", "guard_retries=0"
    )
    typist.ready()
    typist.types("go\r")
    waits_for(server, 3)
    typist.types(CTRL_C)
    typist.child.expect("Stopped with 2 open; your next message starts fresh.")
    typist.ready()
    time.sleep(4)  # the reply has come by now, to nobody
    assert len(server.requests) == 3
    assert "list: 0/2 closed" in typist.enters(".info todo")
    assert "nag_after is 3" in typist.enters(".set nag_after 3")
    shown = typist.enters("keep going")
    assert "Auto-continuing (1/2)" in shown
    assert "Waiting for your answer." in shown  # no call twice after a new message
    assert len(server.requests) == 5
    assert "Never read." not in json.dumps(server.requests[-1])
    assert "keep going" in texts(server.requests[-1])
    typist.types(CTRL_D)
    assert typist.ends() == 0


@pytest.mark.slow
def test_a_request_that_fails_after_ctrl_c_is_not_repeated(chat, serve) -> None:
    server = serve(Reply(status=500, delay=3), Reply("Hello."))
    typist = chat(server)
    typist.ready()
    typist.types("go\r")
    waits_for(server, 1)
    typist.types(CTRL_C)
    typist.child.expect("Stopped with 0 open")
    typist.ready()
    time.sleep(6)  # the client would retry half a second after the failure
    assert len(server.requests) == 1
    assert "model: Hello." in typist.enters("hello?")
    assert len(server.requests) == 2
    typist.types(".exit\r")
    assert typist.ends() == 0


@pytest.mark.slow
def test_a_question_is_asked_inline_and_at_the_next_start(chat, serve, shell: Shell) -> None:
    ask = Reply(calls=[("run_shell", {"command": "echo it ran > ran.txt"})])
    server = serve(ask, Reply("It ran."), ask, Reply("Well then."))
    typist = chat(server, "--tools", "shell")
    typist.ready()
    assert "command: echo it ran > ran.txt" in typist.enters("go")
    assert "has not finished. Type .resume" in typist.enters(".set nag_after 1")
    assert "model: It ran." in typist.enters("y")
    assert (shell.folder / "ran.txt").exists()
    typist.enters("again")
    typist.types(CTRL_D)
    assert typist.ends() == 0

    typist = chat(server)
    assert "question:   command: echo it ran > ran.txt" in typist.ready()
    assert "question:   command:" in typist.enters(".resume")
    assert "model: Well then." in typist.enters("not now")
    assert "not now" in texts(server.requests[-1], "tool")[-1]
    typist.types(".exit\r")
    assert typist.ends() == 0


def test_a_failure_is_one_sentence_and_resume_tries_again(chat, serve) -> None:
    server = serve(Reply(status=400, words="no"), Reply(status=400, words="no"), Reply("Here I am."))
    typist = chat(server)
    typist.ready()
    shown = typist.enters("hello")
    at = server.url.removesuffix("/v1")
    assert f"The server at {at} rejected the request (400): no." in " ".join(shown.split())
    assert shown.count("wakeloop doctor") == 1
    assert "Traceback" not in shown
    assert "has not finished. Type .resume to continue it" in typist.enters(".set nag_after 1")
    typist.enters(".resume")
    assert "model: Here I am." in typist.enters(".resume")
    assert texts(server.requests[-1]) == ["hello"]
    typist.types(".exit\r")
    assert typist.ends() == 0


def test_loki_is_switched_on_and_says_so(chat, serve) -> None:
    server = serve(Reply("Hello."))
    typist = chat(server, "--preset", "loki")
    assert "auto_continue is on. The preset loki leaves it off" in typist.ready()
    typist.enters("hi")
    typist.enters(".set auto_continue false")
    typist.enters("hi")
    assert ["tools" in request for request in server.requests] == [True, True]
    named = ["todo__init" in json.dumps(request["tools"]) for request in server.requests]
    assert named == [True, False]
    typist.types(".exit\r")
    assert typist.ends() == 0


def test_ctrl_c_ends_a_script_and_keeps_the_thread(shell: Shell, serve) -> None:
    server = serve(PLAN, Reply("late", delay=30))
    where = ["--thread", "mine", "--model", "m", "--base-url", server.url]
    process = shell.start("chat", *where, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write("go\nnever read\n")
    process.stdin.flush()
    waits_for(server, 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert "Stopped with 2 open" in out
    assert len(server.requests) == 2


def test_sigterm_during_a_run_stops_it_cleanly_and_resume_continues(chat, serve, shell: Shell) -> None:
    server = serve(PLAN, Reply(calls=[("list_files", {})], delay=1.5), Reply("Later."))
    typist = chat(server, "--set", "max_wake_cycles=0", "--set", "guard_retries=0")
    typist.ready()
    typist.types("go\r")
    waits_for(server, 2)
    typist.child.kill(signal.SIGTERM)
    assert typist.ends() == 143
    assert len(server.requests) == 2
    assert shell("resume", "mine").returncode == 3
    assert len(server.requests) == 3


def test_sigterm_at_the_prompt_restores_the_terminal(chat, serve) -> None:
    typist = chat(serve(Reply("Hello.")))
    typist.ready()
    typist.child.kill(signal.SIGTERM)
    assert typist.ends() == 143
    assert str(typist.child.before).count("\x1b[?2004l") == 1


ASK = "I found 14 files. Shall I delete them?"
DONE = Reply(calls=[("todo_update", {"id": [1, 2], "status": "done"})])


def test_a_question_in_words_waits_at_the_prompt(chat, serve) -> None:
    server = serve(PLAN, Reply(ASK), DONE, Reply("Deleted."))
    typist = chat(server)
    typist.ready()
    shown = typist.enters("Tidy up.")
    assert f"question: {ASK}" in shown
    assert "Your answer, on one line:" in shown
    assert len(server.requests) == 2  # nothing is requested before the person has answered
    shown = typist.enters("Yes, all of them.")
    assert texts(server.requests[2])[-1] == "Yes, all of them."
    assert "model: Deleted." in shown
    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]].count("ask_user") == 1


def test_a_question_by_the_tool_looks_the_same(chat, serve) -> None:
    server = serve(PLAN, Reply(calls=[("ask_user", {"question": ASK})]), DONE, Reply("Deleted."))
    typist = chat(server)
    typist.ready()
    shown = typist.enters("Tidy up.")
    assert f"question: {ASK}" in shown
    assert "Your answer, on one line:" in shown
    typist.enters("Yes, all of them.")
    assert texts(server.requests[2], "tool")[-1] == "Yes, all of them."


def test_stop_stops_and_a_new_topic_is_a_new_topic(chat, serve) -> None:
    server = serve(
        PLAN, Reply("Later.", delay=4), Reply("OK."), Reply("OK."), Reply("Paris."), Reply("I wait.")
    )
    typist = chat(server)
    typist.ready()
    typist.types("go\r")
    waits_for(server, 2)
    typist.types(CTRL_C)
    typist.child.expect("Stopped with 2 open")
    typist.ready()
    asked = len(server.requests)
    shown = typist.enters("Stop. Do nothing more until I say so.")
    assert len(server.requests) == asked + 2
    assert "question:" not in shown
    typist.enters("Forget that. What is the capital of France?")
    assert len(server.requests) == asked + 4
    told = [text for text in texts(server.requests[-1]) if "Still open from before" in text]
    assert len(told) == 2  # once for each of the two messages


@pytest.mark.slow
def test_a_line_sent_during_a_run_steers_it(chat, serve, shell: Shell) -> None:
    server = serve(PLAN, Reply("Soon.", delay=3), DONE, Reply("Both done."), Reply("Later."))
    typist = chat(server)
    typist.ready()
    typist.types("go\r")
    waits_for(server, 2)
    typist.types(f"and then?{ALT_ENTER}Use tabs.\r")
    typist.child.expect("sent: Use tabs.")
    shown = typist.ready()  # the run is over, and the line kept for later is sent
    assert "Auto-continuing" not in shown
    assert texts(server.requests[2])[-1] == "Use tabs."
    until(lambda: len(server.requests) == 5)
    assert texts(server.requests[4])[-1] == "and then?"
    until(lambda: json.loads(shell("show", "mine", "--json").stdout)["session"]["reason"] == "answered")
    assert [row["sent"] for row in json.loads(shell("threads", "--json").stdout)] == [0]


@pytest.mark.slow
def test_a_queued_message_waits_for_an_answer_and_ctrl_c_discards_it(chat, serve, shell: Shell) -> None:
    ask = Reply(calls=[("ask_user", {"question": ASK})], delay=3)
    server = serve(PLAN, ask, Reply("Fine."), Reply("Late.", delay=30))
    typist = chat(server)
    typist.ready()
    typist.types("go\r")
    waits_for(server, 2)
    typist.types("Use tabs.\r")
    typist.child.expect("sent: Use tabs.")
    typist.child.expect("1 message that you sent: read once you have answered.")
    typist.ready()
    assert [row["sent"] for row in json.loads(shell("threads", "--json").stdout)] == [1]
    typist.types("Yes.\r")
    waits_for(server, 4)
    assert texts(server.requests[2])[-1] == "Use tabs."
    typist.types("Too late.\r")
    typist.child.expect("sent: Too late.")
    typist.types(CTRL_C)
    typist.child.expect("Discarded what you typed meanwhile")
    typist.ready()
    assert [row["sent"] for row in json.loads(shell("threads", "--json").stdout)] == [0]


def test_a_thread_on_hold_is_moved_by_go(chat, serve, shell: Shell) -> None:
    server = serve(PLAN, Reply("Later."), Reply("Later."), DONE, Reply("Done."))
    typist = chat(server, "--set", "max_wake_cycles=1", "--set", "earn_wakes=0", "--set", "guard_retries=0")
    typist.ready()
    typist.enters("go")
    assert "On hold: your next message or .go moves it." in typist.enters(".hold")
    assert json.loads(shell("show", "mine", "--json").stdout)["session"]["on"] == "hold"
    typist.enters(".go")
    assert len(server.requests) == 5
    assert json.loads(shell("show", "mine", "--json").stdout)["session"]["reason"] == "settled"


def test_a_thread_on_hold_is_released_by_resume(serve, shell: Shell) -> None:
    server = serve(PLAN, Reply("Later."), DONE, Reply("Done."))
    where = ["--thread", "mine", "--model", "m", "--base-url", server.url]
    shell("run", "go", *where, "--set", "max_wake_cycles=0", "--set", "guard_retries=0")
    assert "mine is now on hold." in shell("hold", "mine").stdout
    assert "mine is already on hold." in shell("hold", "mine").stdout
    assert shell("resume", "mine").returncode == 0
    assert len(server.requests) == 4
