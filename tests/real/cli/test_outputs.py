"""What stdout gets: only the answer, events as lines of JSON, the final state; and what stderr shows."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply
from processes import Shell, wakeloop

from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.store import DatabaseFile, open_to_write

pytestmark = pytest.mark.loopback

PLAN = Reply(calls=[("todo_write", {"items": ["a"]})])
WRITES = Reply(calls=[("write_file", {"path": "none/../../x", "content": "x"})])
DONE = Reply(calls=[("todo_update", {"id": 1, "status": "done"})])
BLOCKED = Reply(calls=[("todo_update", {"id": 1, "status": "blocked", "reason": "no leave"})])
ASKS = Reply(calls=[("run_shell", {"command": "ls"})])
BYE = Reply("All **done**.")


@pytest.fixture
def does(serve, shell: Shell, tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    shell.env = {key: value for key, value in shell.env.items() if not key.startswith("WAKELOOP_")}
    shell.env |= {"XDG_DATA_HOME": str(tmp_path), "WAKELOOP_CONFIG": str(tmp_path / "config")}

    def run(replies: list[Reply], *args: str) -> tuple[int, str, str]:
        server = serve(*replies)
        done = shell("run", "go", "--model", "m", "--base-url", server.url, "--thread", "mine", *args)
        return done.returncode, done.stdout, done.stderr

    return run


def test_quiet_prints_only_the_answer(does) -> None:
    assert does([PLAN, DONE, BYE], "--quiet") == (0, "All **done**.\n", "")


def test_c69_quiet_says_what_was_given_up(does) -> None:
    code, out, err = does([PLAN, WRITES, BLOCKED, BYE], "-q")
    assert (code, out) == (3, "All **done**.\n")
    assert err.splitlines() == [
        "list: 0/1 closed, 1 blocked",
        "Blocked: 0 open, 0 completed, 1 blocked, 0 cancelled.",
        "1 call failed, 1 item blocked",
    ]


CANCELLED = Reply(calls=[("todo_update", {"id": 1, "status": "cancelled"})])
UNPROVED = "No item of the list passed the verifier."
GIVEN_UP = "list: 1/1 closed (1 cancelled)\nSettled: nothing on the list is open.\n1 item cancelled\n"
EXIT_CODES: dict[str, tuple[list[Reply], list[str], int, str, str]] = {  # what stderr shows with -q
    "settled": ([PLAN, DONE, BYE], [], 0, "settled", ""),
    "answered": ([BYE], [], 0, "answered", ""),
    "blocked": ([PLAN, BLOCKED, BYE], [], 3, "blocked", "1 item blocked"),
    "cancelled": ([PLAN, CANCELLED, BYE], [], 0, "settled", GIVEN_UP),
    "proved": ([PLAN, DONE, BYE], ["--verify", "true"], 0, "settled", ""),
    "refused": ([PLAN, DONE, DONE, DONE, BYE], ["--verify", "false"], 3, "blocked", "1 item blocked"),
    "unproved": (
        [PLAN, CANCELLED, BYE], ["--verify", "true"], 3, "settled", UNPROVED
    ),
    "answered, unproved": ([BYE], ["--verify", "true"], 3, "answered", UNPROVED),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", EXIT_CODES)
def test_c69_exit_codes_and_what_quiet_says(does, shell: Shell, name: str) -> None:
    replies, options, exits, reason, told = EXIT_CODES[name]
    code, out, err = does(replies, "-q", *options)
    assert (code, out) == (exits, "All **done**.\n")
    assert told in err if told else err == ""
    [row] = json.loads(shell("threads", "--json").stdout)
    assert (row["state"], row["reason"]) == ("dormant", reason)
    assert row["completed"] + row["cancelled"] + row["blocked"] == row["total"]


def test_quiet_reports_another_ending_and_how_to_continue(does) -> None:
    code, out, err = does([PLAN, *[Reply("Later.")] * 9], "-q", "--set", "max_wake_cycles=0")
    assert (code, out) == (3, "Later.\n")
    assert err.splitlines() == [
        "list: 0/1 closed",
        "Idle with 1 open: it does not continue by itself (auto_continue off, or no budget).",
        "To continue: wakeloop resume mine",
    ]


def test_c72_a_resumed_run_counts_the_wakes_of_its_activation(does, shell: Shell, serve) -> None:
    later = [Reply("Later.")] * 2
    assert does([PLAN, *later, ASKS], "--tools", "shell")[0] == 4
    server = serve(Reply("Even later."), DONE, BYE)
    done = shell("resume", "mine", "n", "--base-url", server.url)
    session = json.loads(shell("show", "mine", "--json").stdout)["session"]
    assert (done.returncode, session["reason"], session["wakes"]) == (0, "settled", 3)
    assert f"thread mine: {session['wakes']} wakes, {session['spent']['requests']} requests, " in done.stdout


def test_quiet_reports_a_question(does) -> None:
    code, out, err = does([ASKS], "-q", "--tools", "shell")
    assert (code, out) == (4, "")
    assert err.splitlines()[-3:] == [
        "question:   tool: run_shell",
        "question:   command: ls",
        "To answer: wakeloop resume mine 'your answer'",
    ]


def test_events_are_lines_and_the_last_has_answer_and_session(does) -> None:
    code, out, err = does([PLAN, WRITES, DONE, BYE], "--output", "stream-json")
    *events, result = map(json.loads, out.splitlines())
    assert (code, out.isascii()) == (0, True)
    assert [event["type"] for event in events] == [
        *["activated", "spent", "todos", "spent", "spent", "todos", "spent", "parked"],
    ]
    assert events[2]["changed"] == [1]
    assert (result["type"], result["answer"], result["failed_calls"]) == ("result", "All **done**.", 1)
    assert result["session"] == events[-1]["session"]
    assert "model: All **done**." in err.splitlines()
    assert "1 call failed" in err.splitlines()


def test_a_failure_ends_the_events_too(does) -> None:
    code, out, err = does([Reply(status=400, words="no")], "--output", "stream-json", "--quiet")
    *events, result = map(json.loads, out.splitlines())
    assert ([event["type"] for event in events], result["type"]) == (["activated"], "result")
    said, kept, look = err.splitlines()
    assert re.fullmatch(
        r"wakeloop: The server at http://127\.0\.0\.1:\d+ rejected the request \(400\): no\.", said
    )
    assert kept.startswith("No thread was created, ")
    assert look.startswith("To diagnose it: wakeloop doctor --model m --base-url http://127.0.0.1:")
    told = f"{said.removeprefix('wakeloop: ')} {look}"
    assert (code, result["error"], result["answer"]) == (1, told, "")


def test_json_is_an_output(does) -> None:
    code, out, err = does([BYE], "--output", "json", "--quiet")
    whole = json.loads(out)
    assert (code, whole["answer"], "type" in whole, err) == (0, "All **done**.", False, "")


def test_two_outputs_are_refused(does) -> None:
    code, out, err = does([BYE], "--json", "--output", "stream-json")
    told = "wakeloop: --json means --output json: drop --json or --output stream-json.\n"
    assert (code, out, err) == (2, "", told)


def test_a_request_that_the_client_repeats_is_shown(does) -> None:
    began = time.time() - 0.001  # a timestamp is rounded
    code, out, _ = does([Reply(status=503), Reply(status=429), BYE], "--output", "stream-json")
    events: list[Any] = [event for event in map(json.loads, out.splitlines()) if event["type"] == "retried"]
    assert events == [
        {"type": "retried", "retry": 1, "status": 503, "at": events[0]["at"]},
        {"type": "retried", "retry": 2, "status": 429, "at": events[1]["at"]},
    ]
    assert began <= events[0]["at"] < events[1]["at"] <= time.time()
    assert code == 0


def test_without_an_output_they_are_lines(does) -> None:
    code, out, err = does([Reply(status=503), BYE])
    assert (code, err) == (0, "")
    assert re.sub(r"[\d.]+ s$", "S s", out, flags=re.MULTILINE).splitlines() == [
        "Thread mine (m)",
        "retry 1: the server answered 503, the request is sent again",
        "model: All **done**.",
        "Answered without a list and without calling a tool.",
        "thread mine: 0 wakes, 1 request, 15 tokens, S s",
        out.splitlines()[-1],
    ]
    assert out.splitlines()[-1].startswith("To try the model: wakeloop doctor --model m --base-url http")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("wakeloop res", "resume\n"),
        ("wakeloop resume ab", "abcd\nabef\n"),
        ("wakeloop rm x ab", "abcd\nabef\n"),
    ],
)
def test_the_shell_completes_commands_and_threads(tmp_path: Path, typed: str, offered: str) -> None:
    database = DatabaseFile(tmp_path / "db", named=True)
    with open_to_write(database) as store:
        for name in ("abef", "b", "abcd"):
            store.remember(name, AgentSpec(), "go")
    asks = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_WAKELOOP_COMPLETE": "complete_bash"}
    code, out, _ = wakeloop(env={**asks, "WAKELOOP_DB": str(database.path)}, prog_name="wakeloop")
    assert (code, "".join(sorted(out.splitlines(keepends=True)))) == (0, offered)
