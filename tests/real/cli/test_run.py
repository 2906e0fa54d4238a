"""Run and resume against a real server on loopback, in other processes."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import time
from unittest.mock import ANY

import pytest
from chat_server import Reply
from processes import COMMAND, Shell, lines, until

from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.store import DatabaseFile, open_to_write

pytestmark = pytest.mark.loopback

PLAN = Reply(calls=[("todo_write", {"items": ["look"]})])
DONE = Reply(calls=[("todo_update", {"id": 1, "status": "done"})])
BYE = Reply("All done.")


def thread_of(text: str) -> str:
    found = re.search(r"\bt-[0-9a-f]{8}", text)
    assert found, text
    return found.group()


def test_a_request_runs_until_its_list_is_settled(shell: Shell, serve) -> None:
    server = serve(PLAN, Reply("Working on it."), DONE, BYE)
    done = shell("run", "look around", "--model", "small", "--base-url", server.url)
    assert done.returncode == 0, done.stderr
    assert lines(done.stdout, "Auto-continuing (1/25): 1 incomplete todo remains")
    assert "model: All done." in done.stdout
    assert "Settled: nothing on the list is open." in done.stdout
    assert "1 wake, 4 requests, 60 tokens, " in done.stdout
    assert done.stderr == ""
    assert [r["model"] for r in server.requests] == ["small"] * 4
    assert all(r["stream"] and r["stream_options"] == {"include_usage": True} for r in server.requests)


def test_the_default_preset_makes_eight_requests_and_ends_stalled(shell: Shell, serve) -> None:
    server = serve(PLAN, Reply("Nothing to see."))
    done = shell("run", "x", "--model", "openai:small", "--base-url", server.url, "--json")
    final = json.loads(done.stdout)
    assert done.returncode == 3
    assert len(server.requests) == 8
    assert final["session"] == {
        "state": "idle",
        "reason": "stalled",
        "open": 1,
        "wakes": 5,
        "budget": 25,
        "list": ANY,
        "items": 1,
        "completed": 0,
        "cancelled": 0,
        "blocked": 0,
        "spent": {
            "requests": 8,
            "input": 80,
            "cached": 0,
            "output": 40,
            "cost": None,
            "seconds": ANY,
            "estimated": False,
            "failed_calls": 0,
        },
    }
    assert final["answer"] == "Nothing to see."
    assert final["messages"] == len(server.requests[-1]["messages"])
    assert len(lines(done.stderr, "graph correction:")) == 1


@pytest.mark.slow
def test_settings_reach_the_run_and_are_remembered(shell: Shell, serve) -> None:
    server = serve(PLAN, Reply("Nothing."))
    where = ["--model", "small", "--base-url", server.url]
    first = shell(
        "run", "x", *where, "--set", "max_wake_cycles=1", "--set", "guard_retries=0", "--thread", "mine"
    )
    assert first.returncode == 3
    assert len(server.requests) == 3
    assert "the 1 wake of this activation is spent" in first.stdout
    again = shell("resume", "mine")
    assert again.returncode == 3
    assert len(server.requests) == 5  # the kick's own nudge, then one wake
    assert shell("resume", "mine", "--set", "max_wake_cycles=0").returncode == 3
    assert len(server.requests) == 6
    assert "guard_retries" in shell("show", "mine").stdout


def test_tools_stay_below_the_root_and_the_system_prompt_is_sent(shell: Shell, serve, tmp_path) -> None:
    (shell.folder / "a.txt").write_text("inside")
    (tmp_path / "b.txt").write_text("outside")
    (tmp_path / "system.txt").write_text("Be brief.")
    calls = [("read_file", {"path": "a.txt"}), ("read_file", {"path": "../b.txt"})]
    server = serve(Reply(calls=calls), BYE)
    done = shell(
        "run", "read", "--model", "m", "--base-url", server.url, "--system", str(tmp_path / "system.txt")
    )
    assert done.returncode == 0
    first, second = server.requests[-1]["messages"][-2:]
    assert "inside" in first["content"]
    assert "outside the folder" in second["content"]
    assert lines(done.stdout, "tool error: read_file: ")
    assert server.requests[0]["messages"][0]["content"].startswith("Be brief.")


@pytest.mark.slow
def test_a_thread_continues_with_the_next_message(shell: Shell, serve) -> None:
    server = serve(Reply("Hello."))
    first = shell("run", "hi", "--model", "m", "--base-url", server.url)
    thread = thread_of(first.stdout)
    second = shell("run", "-", "--thread", thread, typed="and now?\n")
    assert second.returncode == 0
    assert second.stdout.startswith(f"Continuing thread {thread}")
    asked = [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "user"]
    assert asked == ["hi", "and now?\n"]
    third = shell("resume", thread, "more")
    assert third.returncode == 0
    assert len(server.requests) == 3
    assert shell("resume", thread).returncode == 0  # nothing is open: nobody is asked
    assert len(server.requests) == 3


def test_model_and_address_from_the_environment_are_remembered(shell: Shell, serve) -> None:
    server = serve(Reply("Hello."))
    done = shell("run", "hi", env={"WAKELOOP_MODEL": "from-env", "OPENAI_BASE_URL": server.url})
    assert done.returncode == 0, done.stderr
    again = shell("resume", thread_of(done.stdout), "more")
    assert again.returncode == 0, again.stderr
    assert [request["model"] for request in server.requests] == ["from-env"] * 2


def test_text_that_is_not_utf_8(shell: Shell) -> None:
    bad = subprocess.run(
        [*COMMAND, "run", "-", "--model", "m"],
        input=b"\xff\xfe",
        env=shell.env,
        capture_output=True,
        check=False,
    )
    assert (bad.returncode, bad.stderr.count(b"\n")) == (2, 1)
    bad = subprocess.run(
        [*COMMAND, "run", b"\xff", "--model", "m"], env=shell.env, capture_output=True, check=False
    )
    assert (bad.returncode, bad.stderr.count(b"\n")) == (2, 1)
    assert not shell.db.exists()


# -- failures --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "says"),
    [
        (400, "rejected the request (400): the server says no."),
        (401, "rejected the key (401): the server says no. Set OPENAI_API_KEY to a valid key."),
        (404, "has no such model or address (404): the server says no. Check --model and --base-url."),
        (
            429,
            "is limiting your requests (429): the server says no. Wait a while, or check your quota.",
        ),
        (500, "failed (500): the server says no."),
    ],
)
def test_a_refusal_is_one_sentence_and_the_thread_continues(
    shell: Shell, serve, status: int, says: str
) -> None:
    server = serve(PLAN, *[Reply(status=status)] * (1 if status in (400, 401, 404) else 3), DONE, BYE)
    failed = shell("run", "x", "--model", "m", "--base-url", server.url)
    assert failed.returncode == 1
    thread = thread_of(failed.stdout)
    look = f"To diagnose it: wakeloop doctor --model m --base-url {server.url}"
    assert failed.stderr.splitlines() == [
        f"wakeloop: The server at {server.url.removesuffix('/v1')} {says}",
        f"To try again: wakeloop resume {thread} --db {shell.db}",
        *([look] if status != 429 else []),  # it would ask once more
    ]
    shown = json.loads(shell("show", thread, "--json").stdout)
    assert (shown["session"]["state"], [todo["status"] for todo in shown["todos"]]) == (
        "failed",
        ["pending"],
    )
    done = shell("resume", thread)
    assert done.returncode == 0, done.stderr


def test_keys_are_never_shown(shell: Shell, serve) -> None:
    server = serve(PLAN, Reply(status=401, words="bad key sk-loopback-secret, \x1b[31mreally"))
    url = server.url.replace("http://", "http://user:hunter22@")
    failed = shell("run", "x", "--model", "m", "--base-url", url, "--json")
    assert failed.returncode == 1
    for text in (failed.stdout, failed.stderr):
        assert "sk-loopback-secret" not in text
        assert "hunter22" not in text
        assert "\x1b" not in text
    assert json.loads(failed.stdout)["error"].startswith(
        f"The server at {server.url.removesuffix('/v1')} rejected the key (401): bad key …, really"
    )
    assert b"hunter22" not in shell.db.read_bytes()
    with sqlite3.connect(shell.db) as connection:
        ((spec,),) = connection.execute("SELECT spec FROM wakeloop_threads").fetchall()
    connection.close()
    assert json.loads(spec)["base_url"] == server.url
    assert "secret" not in spec


def test_nobody_answers(shell: Shell) -> None:
    failed = shell("run", "x", "--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    assert failed.returncode == 1
    assert failed.stderr.splitlines() == [
        "wakeloop: The server at http://127.0.0.1:9 cannot be reached: [Errno 111] Connection refused.",
        "No thread was created, since nothing was answered. Once that is solved, run the command again.",
        "To diagnose it: wakeloop doctor --model m --base-url http://127.0.0.1:9/v1",
    ]


UNREAD = (
    "The model's reply could not be read (an HTML page came instead), so nothing of it was stored: "
    "try again. If it happens again, check the model's address and any proxy in front of its server."
)
NOTHING = (
    "The server at HERE has nothing at /chat/completions (404). Check --base-url: most servers want it "
    "to end in /v1."
)


@pytest.mark.slow
@pytest.mark.parametrize("door", ["json", "stream-json", "chat", "resume"])
@pytest.mark.parametrize(("path", "said"), [("/page", UNREAD), ("", NOTHING)], ids=["a page", "no /v1"])
def test_every_door_says_once_what_did_not_answer_and_what_to_try(
    shell: Shell, serve, door: str, path: str, said: str
) -> None:
    at = serve().url.removesuffix("/v1")
    model = ["--model", "m", "--base-url", at + path]
    told = [said.replace("HERE", at), f"To diagnose it: wakeloop doctor {shlex.join(model)}"]
    if door == "chat":
        failed = shell("chat", *model, typed="x\n")
        assert failed.stderr.splitlines() == told
    elif door == "resume":
        with open_to_write(DatabaseFile(shell.db, named=True)) as store:
            store.remember("mine", AgentSpec(model="m", base_url=at + path, root=str(shell.folder)), "x")
        failed = shell("resume", "mine")
        assert failed.stderr.splitlines()[::2] == [f"wakeloop: {told[0]}", told[1]]
    else:
        failed = shell("run", "x", *model, "--output", door)
        assert failed.stderr.splitlines()[-3::2] == [f"wakeloop: {told[0]}", told[1]]
        assert json.loads(failed.stdout.splitlines()[-1])["error"] == " ".join(told)
    assert failed.returncode == 1


# -- questions -------------------------------------------------------------------------------------------

SHELL = [Reply(calls=[("run_shell", {"command": "echo it ran > ran.txt"})]), BYE]


@pytest.mark.slow
def test_a_question_parks_the_thread_if_nobody_can_answer(shell: Shell, serve) -> None:
    server = serve(*SHELL)
    asked = shell("run", "x", "--model", "m", "--base-url", server.url, "--tools", "files,shell", typed="y\n")
    assert asked.returncode == 4
    thread = thread_of(asked.stdout)
    assert "question:   command: echo it ran > ran.txt" in asked.stdout
    assert f"To answer: wakeloop resume {thread} 'your answer' --db {shell.db}" in asked.stdout
    assert not (shell.folder / "ran.txt").exists()
    assert shell("resume", thread).returncode == 4
    refused = shell("todo", thread, "add", "x")
    assert refused.returncode == 2
    assert "waiting at an interrupt" in refused.stderr
    assert json.loads(shell("threads", "--json").stdout)[0]["reason"] == "interrupted"
    done = shell("resume", thread, "y", "--json")
    assert done.returncode == 0
    assert (shell.folder / "ran.txt").read_text() == "it ran\n"
    assert json.loads(done.stdout)["questions"] == []
    assert len(server.requests) == 2


@pytest.mark.slow
def test_a_stopped_model_waits_for_a_message(shell: Shell, serve) -> None:
    server = serve(
        Reply(calls=[("todo_write", {"items": ["a"]})]), Reply("Soon."), Reply("OK."), Reply("OK.")
    )
    off = ("--set", "max_wake_cycles=0", "--set", "guard_retries=0")
    began = shell("run", "x", "--model", "m", "--base-url", server.url, *off)
    stopped = shell("resume", thread := thread_of(began.stdout), "Stop.", "--set", "max_wake_cycles=9")
    assert (stopped.returncode, len(server.requests)) == (4, 4)
    assert f"To continue: wakeloop resume {thread} 'your message' --db {shell.db}" in stopped.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "ran"),
    [
        ("y", ["a", "b"]),
        ("no", []),
        ('{"decisions": [{"type": "approve"}, {"type": "reject", "message": "no"}]}', ["a"]),
    ],
    ids=["yes", "no", "decisions"],
)
def test_one_answer_decides_all_questions_of_a_reply(
    shell: Shell, serve, answer: str, ran: list[str]
) -> None:
    both = [("run_shell", {"command": f"echo {name} > {name}.txt"}) for name in ("a", "b")]
    server = serve(Reply(calls=both), BYE)
    asked = shell("run", "x", "--model", "m", "--base-url", server.url, "--tools", "shell")
    thread = thread_of(asked.stdout)
    assert len(lines(asked.stdout, "question: Run this command?")) == 2
    assert shell("resume", thread, answer).returncode == 0
    assert sorted(path.stem for path in shell.folder.glob("*.txt")) == ran
    assert len(server.requests) == 2


def test_a_message_instead_of_an_answer_drops_no_question(shell: Shell, serve) -> None:
    server = serve(*SHELL)
    asked = shell("run", "x", "--model", "m", "--base-url", server.url, "--tools", "shell")
    thread = thread_of(asked.stdout)
    refused = shell("run", "never mind", "--thread", thread)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "wakeloop: The thread waits for your answer, and this message would drop the question. "
        f"To answer: wakeloop resume {thread} 'your answer' --db {shell.db}; "
        f"to reject: wakeloop resume {thread} no --db {shell.db}\n"
    )
    assert len(server.requests) == 1
    assert shell("resume", thread, "y").returncode == 0
    assert (shell.folder / "ran.txt").read_text() == "it ran\n"
    assert len(server.requests) == 2


# -- signals ---------------------------------------------------------------------------------------------


def test_ctrl_c_during_a_request_asks_for_no_other(shell: Shell, serve) -> None:
    server = serve(PLAN, Reply("late", delay=30))
    process = shell.start("run", "x", "--model", "m", "--base-url", server.url)
    until(lambda: len(server.requests) == 2, process)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - began < 5
    assert err == ""
    assert f"To continue: wakeloop resume {thread_of(out)}" in out
    assert len(server.requests) == 2


def test_a_second_ctrl_c_is_quiet_and_ends_a_command_with_its_children(shell: Shell, serve) -> None:
    server = serve(Reply(calls=[("run_shell", {"command": "trap '' INT; echo $$ > pid; sleep 77"})]), BYE)
    process = shell.start("run", "x", "--model", "m", "--base-url", server.url, "--tools", "shell", "--yes")
    pid = shell.folder / "pid"
    until(lambda: pid.exists() and pid.read_text().strip(), process)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert len(server.requests) == 1


@pytest.mark.slow
def test_sigterm_stops_cleanly_after_the_step(shell: Shell, serve) -> None:
    server = serve(PLAN, Reply(calls=[("list_files", {})], delay=1.5), DONE, BYE)
    process = shell.start("run", "x", "--model", "m", "--base-url", server.url)
    until(lambda: len(server.requests) == 2, process)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143, (out, err)
    assert "SIGTERM: stopping" in out
    assert len(server.requests) == 2
    assert shell("resume", thread_of(out)).returncode == 0
    assert len(server.requests) == 4


# -- databases -------------------------------------------------------------------------------------------


def test_a_database_removed_during_a_run_is_not_success(shell: Shell, serve) -> None:
    def remove(number: int, asked: dict[str, object]) -> Reply:
        shell.db.unlink(missing_ok=True)
        return BYE

    ran = shell("run", "x", "--model", "m", "--base-url", serve(script=remove).url, "--json")
    told = f"The database {str(shell.db)!r} was removed during the run: nothing is stored."
    assert (ran.returncode, json.loads(ran.stdout)["error"]) == (1, told)


def test_a_full_or_vanished_database_is_one_sentence(shell: Shell, serve) -> None:
    def drop(number: int, asked: dict[str, object]) -> Reply:
        if number == 2:
            with sqlite3.connect(shell.db) as connection:
                connection.execute("DROP TABLE checkpoints")
            connection.close()
        return PLAN if number == 1 else BYE

    server = serve(script=drop)
    failed = shell("run", "x", "--model", "m", "--base-url", server.url)
    assert failed.returncode == 1
    assert "no such table" in failed.stderr
