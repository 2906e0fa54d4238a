"""Open questions: answered in words, whatever flags the answering process has."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chat_server import Reply
from processes import Shell

pytestmark = [
    pytest.mark.loopback,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
BYE = Reply("All done.")


def runs(*names: str) -> Reply:
    return Reply(calls=[("run_shell", {"command": f"touch {name}"}) for name in names])


def options(server: Any) -> list[str]:
    return ["--model", "m", "--base-url", server.url, "--tools", "shell"]


def ran(shell: Shell) -> list[str]:
    return sorted(path.name for path in shell.folder.iterdir() if len(path.name) == 1)


def test_c93_a_no_is_a_no_in_a_process_that_asks_nobody(shell: Shell, serve: Any) -> None:
    """Later calls run without a question: that is what --yes is for."""
    server = serve(runs("a", "b"), runs("c"), BYE)
    assert shell("run", "go", "--thread", "t", *options(server)).returncode == 4
    assert shell("resume", "t", "n", "--yes").returncode == 0
    assert (ran(shell), len(server.requests)) == (["c"], 3)


def test_c93_chat_takes_a_no_as_a_no(shell: Shell, serve: Any) -> None:
    server = serve(runs("a"), BYE)
    assert shell("run", "go", "--thread", "t", *options(server)).returncode == 4
    (shell.folder / "typed").write_text("n\n")
    with (shell.folder / "typed").open() as typed:
        done = shell("chat", "--thread", "t", "--yes", stdin=typed)
    assert (done.returncode, ran(shell), len(server.requests)) == (0, [], 2)


@pytest.mark.slow
def test_c64_words_and_decisions_answer_all_calls_of_a_reply(shell: Shell, serve: Any) -> None:
    server = serve(runs("a", "b"), BYE)
    asked = shell("run", "go", "--thread", "t", *options(server))
    assert [line for line in asked.stdout.splitlines() if "command:" in line] == [
        "question:   command: touch a",
        "question:   command: touch b",
    ]
    again = shell("resume", "t", "hm")
    assert again.returncode == 4
    assert "question: The answer was not accepted: it is neither a yes nor a no; answer yes" in again.stdout
    answer = {"decisions": [{"type": "reject", "message": "Not there."}, {"type": "approve"}]}
    assert shell("resume", "t", json.dumps(answer)).returncode == 0
    assert (ran(shell), len(server.requests)) == (["b"], 2)


@pytest.mark.slow
def test_c65_a_message_does_not_drop_the_question(shell: Shell, serve: Any) -> None:
    server = serve(runs("a"), BYE)
    assert shell("run", "go", "--thread", "t", *options(server)).returncode == 4
    told = shell("run", "something else", "--thread", "t")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith(
        "wakeloop: The thread waits for your answer, and this message would drop the question. To answer: "
        "wakeloop resume t"
    )
    assert shell("resume", "t", "ok").returncode == 0
    assert (ran(shell), len(server.requests)) == (["a"], 2)
