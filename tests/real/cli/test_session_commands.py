"""serve, send, ps, cron and drain, as sessions.md shows them: killed, drained and restarted."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from chat_server import Reply, Server
from processes import PROGRAM, Shell, run_python, start_python, wakeloop
from processes import until as until_it

from wakeloop.cli.sessions.storage import SessionStorage
from wakeloop.sessions.dbos.session_client import next_time

pytestmark = [pytest.mark.loopback, pytest.mark.timeout(300)]

ONE, TWO = {"items": ["a"]}, {"items": ["a", "b"]}
WHEN = re.compile(r", 20[\dT:.+-]+\]")  # in the label of an event
DONE = ("todo_update", {"id": 1, "status": "done"})


@dataclass
class Mind:
    """Chooses a model's replies: the first message of a session says what it should play.

    One that begins with `hold` stops at its second request until `go` is set; that request then fails if it
    is in `failing`.
    """

    go: Event = field(default_factory=Event)
    held: list[str] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)

    def __call__(self, number: int, asked: dict[str, Any]) -> Reply:  # noqa: PLR0911 - a reply a case
        messages = asked["messages"]
        told = [m["content"] for m in messages if m["role"] == "user"]
        called = [c["function"]["name"] for m in messages for c in m.get("tool_calls") or ()]
        match told[0]:
            case task if task.startswith("hold"):
                return self.holding(task, called, told)
            case "work" if "todo_update" not in called:
                return Reply(calls=[DONE if called else ("todo_write", ONE)])
            case "leave" if not called:
                return Reply(calls=[("todo_write", ONE)])
            case "ask" if not called:
                return Reply(calls=[("ask_user", {"question": "Which colour?"})])
            case "ask ada" if not called:
                return Reply(calls=[("talk_to_agent", {"agent": "ada", "message": "What is 2+2?"})])
            case "break":
                return Reply(status=400, words="the key sk-loopback-secret is not for this model")
            case task if "What is 2+2?" in task:
                return Reply("It is 4.")
            case _:
                return Reply(f"{asked['model']}: {last_of(messages)}")

    def holding(self, task: str, called: list[str], told: list[str]) -> Reply:
        if not called:
            return Reply(calls=[("todo_write", TWO)])
        if called == ["todo_write"]:
            self.held.append(task)
            assert self.go.wait(240)
            if task in self.failing:
                self.failing.remove(task)
                return Reply(status=400, words="not now")
            return Reply(calls=[DONE, ("todo_update", {"id": 2, "status": "done"})])
        return Reply(f"Read: {told[-1]}")


def last_of(messages: list[dict[str, Any]]) -> str:
    """Return the part of the last message that is not the model's own."""
    return str([m["content"] for m in messages if m["role"] in ("user", "tool")][-1])


until = partial(until_it, seconds=120, pause=0.2)  # a look costs as much as a command


class World:
    """A folder with a configuration, a model's server, and everything started on its database."""

    def __init__(self, folder: Path, db: str | None = None) -> None:
        self.mind = Mind()
        self.model = Server(self.mind)
        self.config = folder / "config"
        (self.config / "agents").mkdir(parents=True)
        (self.config / "agents" / "ada.yaml").write_text("model: ada-model\ntools: none\n")
        (folder / "root").mkdir()
        self.shell = Shell(folder / "root", folder / "threads.sqlite")
        own = {"WAKELOOP_CONFIG": str(self.config), "XDG_DATA_HOME": str(folder / "data")}
        self.db = db or str(self.shell.db)
        others = ("LANGCHAIN_", "LANGGRAPH_", "LANGSMITH_", "WAKELOOP_", "PYTHONWARNINGS")
        clean = {k: v for k, v in self.shell.env.items() if not k.startswith(others)}
        self.shell.env = {**clean, **own, "WAKELOOP_DB": self.db}
        self.servers: list[subprocess.Popen[str]] = []

    def serve(self, *args: str, begin: bool = True) -> subprocess.Popen[str]:
        """Start a server and wait until it is up."""
        server = self.shell.start("serve", "--model", "m", "--base-url", self.model.url, *args)
        self.servers.append(server)
        if begin:
            assert server.stdout is not None
            line = server.stdout.readline()
            assert line.startswith("Serving main, ada; "), (line, server.communicate())
        return server

    def here(self, *args: str, **more: Any) -> tuple[int, str, str]:
        """Run a command in this process."""
        names = ("WAKELOOP_CONFIG", "WAKELOOP_DB", "XDG_DATA_HOME", "OPENAI_API_KEY")
        return wakeloop(*args, env={name: self.shell.env[name] for name in names}, **more)

    def ps(self, thread: str) -> dict[str, Any]:
        """Return a session, as in `ps --json`."""
        code, out, err = self.here("ps", "--json")
        assert (code, err) == (0, "")
        found: list[dict[str, Any]] = json.loads(out)
        return next((one for one in found if one["thread"] == thread), {})

    def settled(self, thread: str) -> bool:
        found = self.ps(thread)
        done = found["reason"] in ("settled", "answered")
        return done and (found["state"], found["queued"]) == ("dormant", 0)

    def said(self, thread: str) -> list[tuple[str, str]]:
        """Return who said what in a session: messages without times, and the called tools."""
        with SessionStorage(self.db).open_client() as post:
            snapshot = post.agents["main"].get_state({"configurable": {"thread_id": thread}})
        found = []
        for message in snapshot.values["messages"]:
            calls = [call["name"] for call in getattr(message, "tool_calls", ())]
            if message.type != "tool":
                found.append((message.type, " ".join(calls) or WHEN.sub("]", message.text)))
        return found

    def close(self) -> None:
        self.mind.go.set()
        for server in self.servers:
            server.kill()
            server.communicate()
        self.model.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One server for many sessions."""
    with closing(World(tmp_path_factory.mktemp("shared"))) as world:
        world.serve()
        yield world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world without a server."""
    with closing(World(tmp_path)) as world:
        yield world


def ended(server: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    """Return how a server has ended: its exit code, the rest of its lines, its errors."""
    out, err = server.communicate(timeout=120)
    return server.returncode, out.splitlines(), err


# -- one server for many sessions ------------------------------------------------------------------------


@pytest.mark.slow
def test_a_job_sent_from_elsewhere_settles(shared: World) -> None:
    sent = shared.shell("send", "job", "work")
    assert (sent.returncode, sent.stdout, sent.stderr) == (0, "Sent to job.\n", "")
    until(lambda: shared.settled("job"), shared.servers[0])
    assert shared.said("job") == [
        ("human", "work"), ("ai", "todo_write"), ("ai", "todo_update"),
        ("ai", "m: [1] done, 0 open."),
    ]  # fmt: skip
    shown = shared.shell("ps")
    assert (shown.returncode, shown.stderr) == (0, "")
    head, *rows = shown.stdout.splitlines()
    assert head.split() == [
        "SESSION",
        "STATE",
        "REASON",
        "OPEN",
        "DONE",
        "WAKES",
        "WAITS",
        "FOR",
        "QUEUED",
        "ERROR",
    ]
    assert [row.split() for row in rows if row.startswith("job ")] == [
        ["job", "dormant", "settled", "0", "1", "of", "1", "0/26", "-", "0", "-"]  # an item was settled
    ]


def test_send_says_in_a_terminal_that_it_waits(shared: World) -> None:
    ours, theirs = pty.openpty()
    ran = run_python(*PROGRAM, "send", "told", "hello", "--wait", env=shared.shell.env, stderr=theirs)
    os.close(theirs)
    assert (ran.stdout, os.read(ours, 1000)) == ("m: hello\n", "Waiting for the run of told …\r\n".encode())
    os.close(ours)


def test_a_send_stopped_while_it_waits_says_that_the_text_is_sent(
    shared: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("wakeloop.cli.sessions.commands.wait_for_run", stop)
    stopped = "Stopped waiting. The text is sent, and its run is not stopped.\n"
    assert shared.here("send", "stopped", "hello", "--wait") == (130, "", stopped)


def test_send_waits_for_open_items(shared: World) -> None:
    code, out, err = shared.here("send", "open", "leave", "--wait")
    assert (code, err) == (3, "")
    assert out.splitlines()[-1] == "open: idle, stalled; 1 open, 5/25 wakes"
    assert shared.ps("open")["open"] == 1


def test_send_waits_for_a_failure(shared: World) -> None:
    code, out, err = shared.here("send", "failure", "break", "--wait", "--json")
    found = json.loads(out)
    assert (code, err, found["queued"], found["answer"]) == (1, "", 0, "")
    assert found["error"] == "OpenAIInvalidRequestError: Error code: 400 - the key … is not for this model"
    assert b"sk-loopback" not in b"".join(p.read_bytes() for p in Path(shared.db).parent.glob("threads*"))
    code, out, _ = shared.here("send", "failure", "again", "--wait")
    assert (code, out.splitlines()[-1][:16]) == (1, "failure: failed,")


@pytest.mark.parametrize(
    "args", [["show"], ["resume"], ["todo", "list"], ["config", "--thread"]], ids=lambda args: args[0]
)
def test_half_a_character_in_a_threads_name_is_refused_in_one_sentence(
    shared: World, args: list[str]
) -> None:
    words = [args[0], *args[1:], "a\udcff"] if "list" not in args else ["todo", "a\udcff", "list"]
    code, out, err = shared.here(*words)
    assert (code, out, err) == (2, "", "wakeloop: 'a\\udcff' is not valid UTF-8. Type it again.\n")


def test_an_answer_names_its_question(shared: World) -> None:
    assert shared.here("send", "named", "ask", "--wait")[0] == 4
    [question] = shared.ps("named")["asks"]
    told = f"To answer: wakeloop send named 'your answer' --answers {question}"
    assert told in shared.here("ps")[1].splitlines()
    code, out, err = shared.here("send", "named", "blue", "--answers", "no such question")
    assert (code, out) == (2, "")
    assert err == (
        "wakeloop: The answer names question 'no such question', but the session asks "
        f"{question}. Name one of those.\n"
    )
    wrong = "wakeloop: --answers takes an id from wakeloop ps, and works only with --kind human.\n"
    assert shared.here("send", "named", "blue", "--answers", " ") == (2, "", wrong)
    assert shared.here("send", "named", "x", "--kind", "cron", "--answers", question) == (2, "", wrong)
    assert shared.ps("named")["queued"] == 0
    assert shared.here("show", "named")[1].endswith(f"question: Which colour?\n  its id: {question}\n")
    code, out, _ = shared.here("send", "name", "blue", "--answers", question[:12], "--wait")
    assert (code, out) == (0, "m: blue\n")
    assert shared.ps("named")["asks"] == []


def test_send_waits_for_a_question_and_answers_it(shared: World) -> None:
    code, out, err = shared.here("send", "question", "ask", "--wait")
    assert (code, err) == (4, "")
    assert out == "Which colour?\nquestion: waiting, for your answer; 0 open, 0/25 wakes\n"
    assert shared.here("send", "question", "ignored", "--kind", "cron")[0] == 0
    found = shared.ps("question")
    assert (found["state"], found["on"], found["queued"]) == ("waiting", "human", 1)
    row = next(r for r in shared.here("ps")[1].splitlines() if r.startswith("question"))
    assert " ".join(row.split()) == "question waiting interrupted 0 0 of 0 0/25 human 1 -"
    code, out, _ = shared.here("send", "question", "-", "--wait", input="blue")
    assert code == 0
    until(lambda: shared.settled("question"), shared.servers[0])
    assert shared.said("question") == [
        ("human", "ask"), ("ai", "ask_user"), ("ai", "m: blue"), ("human", "[cron] ignored"),
        ("ai", "m: [cron] ignored"),
    ]  # fmt: skip


def test_an_id_is_used_once(shared: World) -> None:
    first = shared.here("send", "once", "first", "--id", "e1", "--wait", "--json")
    again = shared.here("send", "once", "first", "--id", "e1", "--json")
    assert (first[0], json.loads(again[1])) == (0, {"thread": "once", "event": "e1"})
    assert shared.here("send", "once", "other words", "--id", "e1", "--wait") == (0, "m: first\n", "")
    assert shared.here("send", "once", "next", "--wait")[:2] == (0, "m: next\n")
    assert shared.said("once") == [
        ("human", "first"), ("ai", "m: first"), ("human", "next"), ("ai", "m: next"),
    ]  # fmt: skip


def test_an_agent_file_is_a_session_and_a_peer(shared: World) -> None:
    assert shared.here("send", "ada:desk", "hello", "--wait")[:2] == (0, "ada-model: hello\n")
    assert shared.ps("ada:desk")["agent"] == "ada"
    assert shared.here("send", "nobody:desk", "hello", "--wait")[:2] == (0, "m: hello\n")
    assert shared.ps("nobody:desk")["agent"] == "main"
    assert shared.here("send", "peers", "ask ada")[0] == 0
    until(lambda: len(shared.said("peers") if shared.ps("peers")["budget"] else ()) == 5, shared.servers[0])
    until(lambda: shared.settled("peers"), shared.servers[0])
    assert shared.said("peers")[-2:] == [
        ("human", "[peer_reply from ada] It is 4."), ("ai", "m: [peer_reply from ada] It is 4."),
    ]  # fmt: skip
    assert shared.said("ada")[0] == ("human", "[peer_message from peers] What is 2+2?")


def test_a_cron_line_wakes_its_session(shared: World) -> None:
    line = ("cron", "add", "clock", "0 0 1 1 *", "Happy new year")
    code, out, err = shared.here(*line)
    due = next_time("0 0 1 1 *", datetime.now(UTC)).isoformat()
    key = out.partition(":")[0]
    assert (code, out, err) == (0, f"{key}: due {due}\n", "")
    assert shared.here(*line)[1] == out  # repeating it changes nothing
    assert json.loads(shared.here("cron", "list", "--json")[1]) == [
        {"id": key, "thread": "clock", "cron": "0 0 1 1 *", "text": "Happy new year", "due": due}
    ]
    head, row = shared.here("cron", "list")[1].splitlines()
    assert head.split() == ["SCHEDULE", "SESSION", "CRON", "DUE", "TEXT"]
    assert row == f"{key}  clock    0 0 1 1 *  {due}  Happy new year"
    with SessionStorage(shared.db).open_client() as post:  # its time has come
        past = datetime.now(UTC) - timedelta(seconds=1)
        post.mailbox.set_due(key, past)
        post.set_timer(key, past)
    until(lambda: shared.ps("clock"), shared.servers[0])
    until(lambda: shared.settled("clock"), shared.servers[0])
    assert shared.said("clock") == [
        ("human", "[cron] Happy new year"), ("ai", "m: [cron] Happy new year"),
    ]  # fmt: skip
    until(lambda: due in shared.here("cron", "list")[1], shared.servers[0])  # and comes again
    assert shared.here("cron", "remove", key[:-4]) == (0, f"Removed {key}.\n", "")
    assert shared.here("cron", "remove", key) == (
        2, "", f"wakeloop: Unknown schedule {key!r}; list them with wakeloop cron list.\n",
    )  # fmt: skip
    assert shared.here("cron", "list") == (0, "No schedules.\n", "")
    assert shared.here("cron", "list", "--json") == (0, "[]\n", "")


def test_a_second_server_on_one_file_is_refused(shared: World) -> None:
    path = f"{shared.db}-sessions"
    said = f"Another host is using the sessions of {path!r}. Stop it first, or use Postgres to run several."
    assert shared.here("serve", "--model", "m") == (1, "", f"wakeloop: {said}\n")


def test_the_files_are_readable_only_by_their_owner(shared: World) -> None:
    found = {p.name: stat.S_IMODE(p.stat().st_mode) for p in Path(shared.db).parent.glob("threads.sqlite*")}
    assert {"threads.sqlite", "threads.sqlite-sessions", "threads.sqlite-sessions-host"} <= set(found)
    assert set(found.values()) == {0o600}


# -- killed, drained, restarted --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_kill_loses_and_repeats_nothing(world: World) -> None:
    first = world.serve()
    assert world.here("send", "job", "hold")[0] == 0
    until(lambda: world.mind.held, first)
    assert world.here("send", "job", "while it works")[0] == 0
    first.kill()
    first.wait()
    found = world.ps("job")
    assert (found["state"], found["open"], found["queued"]) == ("running", 2, 1)
    for text in ("while it is down", "and once more"):
        assert world.here("send", "job", text)[0] == 0
    assert world.here("send", "ada", "hello")[0] == 0
    world.mind.go.set()
    second = world.serve()
    until(lambda: world.settled("job") and world.settled("ada"), second)
    assert world.said("job") == [
        ("human", "hold"), ("ai", "todo_write"), ("ai", "todo_update todo_update"), ("ai", "Read: hold"),
        ("human", "while it works"), ("human", "while it is down"), ("human", "and once more"),
        ("ai", "Read: and once more"),
    ]  # fmt: skip
    assert world.said("ada") == [("human", "hello"), ("ai", "ada-model: hello")]
    assert world.mind.held == ["hold", "hold"]  # the interrupted request, again
    assert len(world.model.requests) == 6


@pytest.mark.slow
def test_a_drain_stops_at_a_step_and_the_next_start_continues(world: World) -> None:
    first = world.serve()
    world.mind.failing.append("hold b")
    for thread in ("a", "b"):
        assert world.here("send", thread, f"hold {thread}")[0] == 0
    until(lambda: len(world.mind.held) == 2, first)
    first.send_signal(signal.SIGTERM)
    assert first.stdout is not None
    assert first.stdout.readline() == "Draining: each run stops at its next step.\n"
    assert world.here("send", "a", "later")[0] == 0
    world.mind.go.set()
    assert ended(first) == (0, ["Stopped."], "")
    failed = "OpenAIInvalidRequestError: Error code: 400 - not now"  # until the next start tries it again
    assert [(world.ps(t)["error"], world.ps(t)["queued"]) for t in ("a", "b")] == [(None, 1), (failed, 0)]
    assert world.said("a")[-1] == ("ai", "todo_update todo_update")
    assert world.said("b")[-1] == ("ai", "todo_write")
    second = world.serve()
    ends = [("human", "later"), ("ai", "Read: later")]
    until(lambda: world.said("a")[-2:] == ends and world.settled("a") and world.settled("b"), second)
    for thread, more in (("a", ends), ("b", [])):
        assert world.said(thread) == [
            ("human", f"hold {thread}"), ("ai", "todo_write"), ("ai", "todo_update todo_update"),
            ("ai", f"Read: hold {thread}"), *more,
        ]  # fmt: skip
    assert sorted(world.mind.held) == ["hold a", "hold b", "hold b"]
    done = world.shell("drain")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "1 drained. Unfinished work continues at the next start.\n"
    code, lines, err = ended(second)
    assert (code, lines[-2:], err) == (0, ["Draining: each run stops at its next step.", "Stopped."], "")
    assert world.here("drain") == (0, "No worker is running.\n", "")


@pytest.mark.slow
def test_a_second_signal_ends_the_server(world: World) -> None:
    server = world.serve()
    assert world.here("send", "job", "hold")[0] == 0
    until(lambda: world.mind.held, server)
    server.send_signal(signal.SIGTERM)
    assert server.stdout is not None
    server.stdout.readline()
    server.send_signal(signal.SIGINT)
    assert ended(server) == (130, [], "")
    code, out, _ = world.here("drain", "--timeout", "0")
    assert code == 1
    assert out == "1 of 1 still running, or dead and not yet noticed.\n"


@pytest.mark.slow
def test_a_drain_cuts_off_an_unanswered_request(world: World) -> None:
    quick = "import wakeloop.cli.sessions.serve as s; s.GRACE = 0"
    code = f"{quick}; from wakeloop.cli.commands.app import main; main()"
    args = ["serve", "--model", "m", "--base-url", world.model.url]
    pipe = subprocess.PIPE
    server = start_python(
        "-c", code, *args, env=world.shell.env, cwd=world.shell.folder, stdout=pipe, stderr=pipe
    )
    world.servers.append(server)
    assert world.here("send", "job", "hold")[0] == 0
    until(lambda: world.mind.held, server)
    server.send_signal(signal.SIGTERM)
    code_, lines, err = ended(server)
    assert (code_, err) == (0, "")
    assert lines[-1] == "Stopped; 1 cut off in the middle of a step."
    assert world.ps("job")["state"] == "running"


@pytest.mark.slow
def test_messages_sent_before_a_server_starts_wait_for_one(world: World) -> None:
    assert world.here("ps") == (0, "No sessions yet.\n", "")
    assert world.here("ps", "--json") == (0, "[]\n", "")
    sent = json.loads(world.here("send", "early", "hello", "--json")[1])
    assert sorted(sent) == ["event", "thread"]
    assert world.ps("early") == {
        "thread": "early", "agent": "main", "state": "dormant", "reason": None, "open": 0, "wakes": 0,
        "budget": 0, "on": None, "queued": 1, "error": None, "waits_for": [], "asks": [],
        "items": 0, "completed": 0, "cancelled": 0, "blocked": 0, "verified": None, "sent": 0,
        "until": None, "question": "", "missing": "",
    }  # fmt: skip
    waiting = world.shell.start("send", "early", "and this", "--wait")
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == "Waiting for wakeloop serve: none is running.\n"
    world.serve()
    out, err = waiting.communicate(timeout=120)
    assert (waiting.returncode, out, err) == (0, "m: and this\n", "")
    assert world.said("early") == [("human", "hello"), ("human", "and this"), ("ai", "m: and this")]


def test_a_server_says_that_it_switches_auto_continue_on(world: World) -> None:
    server = world.serve("--preset", "loki", begin=False)
    assert server.stdout is not None
    said = "auto_continue is on. The preset loki leaves it off; set auto_continue=false to switch it off."
    assert server.stdout.readline() == f"main: {said}\n"
    assert server.stdout.readline().startswith("Serving main, ada; ")


@pytest.mark.slow
def test_a_servers_budget_ends_its_runs_and_is_shown_everywhere(world: World) -> None:
    server = world.serve("--max-requests", "2")
    code, out, err = world.here("send", "poor", "leave", "--wait")
    told = "poor: idle, request_budget; 1 open, 0/25 wakes"
    assert (code, err, out.splitlines()[-1]) == (3, "", told)
    [row] = [row for row in world.here("ps")[1].splitlines() if row.startswith("poor ")]
    assert " ".join(row.split()) == "poor idle request_budget 1 0 of 1 0/25 - 0 -"
    server.send_signal(signal.SIGTERM)
    code, said, _ = ended(server)
    assert (code, said[0]) == (0, told)


@pytest.mark.slow
def test_a_run_keeps_its_thread_while_others_end(world: World) -> None:
    server = world.serve()
    assert world.here("send", "long", "hold")[0] == 0
    until(lambda: world.mind.held, server)
    assert world.here("send", "job", "hello", "--wait")[:2] == (0, "m: hello\n")
    ran = world.shell("resume", "long")
    told = "wakeloop: Another process is using the thread 'long'. Wait for it, or stop it.\n"
    assert (ran.returncode, ran.stderr.partition("To try")[0]) == (1, told)
    world.mind.go.set()
    until(lambda: world.settled("long"), server)
    assert world.mind.held == ["hold"]


@pytest.mark.slow
def test_two_workers_on_postgres_and_one_that_dies(tmp_path: Path, postgres: str) -> None:
    with closing(World(tmp_path, postgres)) as world:
        workers = [world.serve(begin=False) for _ in range(2)]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline().startswith("Serving main, ada; ")
        for number in range(4):
            assert world.here("send", f"job:{number}", "work")[0] == 0
        until(lambda: all(world.settled(f"job:{number}") for number in range(4)), workers[0])
        assert world.here("send", "long", "hold")[0] == 0
        until(lambda: world.mind.held, workers[0])
        with SessionStorage(postgres).open_client() as post:
            busy = busy_worker(post, workers)
        busy.kill()
        busy.wait()
        (other,) = [worker for worker in workers if worker is not busy]
        world.mind.go.set()
        until(lambda: world.settled("long"), other)
        assert world.said("long") == [
            ("human", "hold"), ("ai", "todo_write"), ("ai", "todo_update todo_update"), ("ai", "Read: hold"),
        ]  # fmt: skip
        assert world.mind.held == ["hold", "hold"]
        assert world.here("drain") == (
            0, "1 drained. Unfinished work continues at the next start.\n", "",
        )  # fmt: skip
        assert ended(other)[::2] == (0, "")


def busy_worker(post: Any, workers: list[subprocess.Popen[str]]) -> subprocess.Popen[str]:
    """Return the worker that runs the turn of `long`: its name in the engine's records has its process id."""
    pending = post.client.list_workflows(status="PENDING", queue_name="wakeloop-runs")
    (name,) = [turn.executor_id for turn in pending if turn.queue_partition_key == "long"]
    return next(worker for worker in workers if f"-{worker.pid}-" in name)


def test_an_id_may_be_shortened_if_it_cannot_be_a_new_one(world: World) -> None:
    def sent(name: str) -> str:
        code, out, err = world.here("send", name, "x")
        assert (code, err) == (0, "")
        return out.removeprefix("Sent to ").removesuffix(".\n")

    names = ["t-12345678", "t-12399999", "user:10", "t-12345678", "user:1"]
    assert [sent(name) for name in (*names[:3], "t-1234", "user:1")] == names
    told = "wakeloop: 2 sessions start with 't-123': t-12345678, t-12399999. Type more of the id.\n"
    assert world.here("send", "t-123", "x") == (2, "", told)
    assert world.here("send", "user", "x", "--answers", "q")[2] == told.replace("t-123'", "user'").replace(
        "t-12345678, t-12399999", "user:1, user:10"
    )
    assert world.here("cron", "add", "t-1234", "0 0 1 1 *", "x")[0] == 0
    assert json.loads(world.here("cron", "list", "--json")[1])[0]["thread"] == "t-12345678"


# -- refusals --------------------------------------------------------------------------------------------

CRON_USAGE = 'Usage: cron add THREAD "MIN HOUR DAY MONTH WEEKDAY" TEXT, cron list, or cron remove ID.'
ODD = "A thread id may contain letters, digits and . _ : @ -, and must start with a letter or digit, got "
NO_LINE = "expected five fields (minute, hour, day, month, weekday)."
ADDRESS = (
    "The database must be a file name or an address postgresql://…, in which a password has %40 for @ and "
    "%2F for /."
)
KINDS = "human, peer_message, peer_reply, subagent_done, cron, kick"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["cron", "add"], CRON_USAGE),
        (["cron", "add", "x", "* * * * *"], CRON_USAGE),
        (["cron", "list", "x"], CRON_USAGE),
        (["cron", "remove"], CRON_USAGE),
        (["cron", "alter"], CRON_USAGE),
        (["cron", "remove", "no"], "Unknown schedule 'no'; list them with wakeloop cron list."),
        (["cron", "add", "x", "every day", "Hello"], f"Invalid cron line 'every day': {NO_LINE}"),
        (["cron", "add", "x", "61 * * * *", "Hello"], f"Invalid cron line '61 * * * *': {NO_LINE}"),
        (["cron", "add", "x", "* * * * * *", "Hello"], f"Invalid cron line '* * * * * *': {NO_LINE}"),
        (["cron", "add", "x y", "* * * * *", "Hello"], ODD),
        (["cron", "add", "x", "* * * * *", " "], "The text is empty: write what the session should read."),
        (["send", " ", "Hello"], ODD),
        (["send", "a\nb", "Hello"], ODD),
        (["send", "a\udcff", "Hello"], ODD),
        (["send", "x", " "], "The text is empty: write what to send."),
        (["send", "x", "a\udcff"], "'a\\udcff' is not valid UTF-8. Type it again."),
        (["send", "x", "a", "--id", "b\udcff"], "The event's id contains a lone surrogate"),
        (["send", "x", "a", "--answers", "b\udcff"], "The event's correlation_id contains a lone surrogate"),
        (["cron", "add", "x", "* * * * *", "a\udcff"], "'a\\udcff' is not valid UTF-8. Type it again."),
        (["cron", "remove", "a\udcff"], "'a\\udcff' is not valid UTF-8. Type it again."),
        (["todo", "a", "add", "b\udcff"], "'b\\udcff' is not valid UTF-8. Type it again."),
        (["run", "x", "--model", "m\udcff"], "'m\\udcff' is not valid UTF-8. Type it again."),
        (
            ["run", "x", "--model", "m", "--base-url", "u\udcff"],
            "'u\\udcff' is not valid UTF-8. Type it again.",
        ),
        (["run", "x", "--model", "m", "--set", "prompts=\udcff"], "'prompts=\\udcff' is not valid UTF-8"),
        (
            ["send", "x", "Hello", "--kind", "whisper"],
            f"Invalid event: kind must be one of {KINDS}, not 'whisper'.",
        ),
        (
            ["serve"],
            (
                "No model is configured: pass --model openai:NAME, set WAKELOOP_MODEL, or run wakeloop init "
                "to find one."
            ),
        ),
        (["serve", "--model", "m", "--set", "a=1"], "Unknown setting 'a'"),
        (["ps", "--db", "mysql://root:hidden@host/x"], ADDRESS),
        (["ps", "--db", "postgresql+psycopg://root:hidden@host/x"], ADDRESS),
        (["ps", "--db", "postgresql://root:hid@den@host/x"], ADDRESS),
        (["ps", "--db", "postgresql://root:hid/den@host/x@"], ADDRESS),
        (["ps", "--db", "postgresql://root:hidden@[host/x"], ADDRESS),
        (
            ["ps", "--db", "nowhere/threads.db"],
            "The database 'nowhere/threads.db' cannot be created (No such",
        ),
        (["ps", "--db", "."], "The database '.' is not a file. Name another file with --db."),
    ],
)
def test_wrong_usage_is_one_sentence(world: World, args: list[str], sentence: str) -> None:
    code, out, err = world.here(*args)
    assert (code, out) == (2, "")
    assert err.startswith(f"wakeloop: {sentence}")
    assert err.count("\n") == 1
    assert "hid" not in err


EVERY = (
    ["ps"], ["send", "x", "Hello"], ["cron", "list"], ["drain"], ["serve", "--model", "m"],
)  # fmt: skip


@pytest.mark.parametrize("args", EVERY, ids=lambda args: args[0])
def test_events_that_cannot_be_read_are_named(world: World, args: list[str]) -> None:
    Path(f"{world.db}-sessions").write_bytes(b"this is no database " * 100)
    assert world.here(*args) == (
        1, "", f"wakeloop: The database '{world.db}-sessions' cannot be used: file is not a database.\n",
    )  # fmt: skip


@pytest.mark.parametrize("args", EVERY, ids=lambda args: args[0])
def test_a_missing_postgres(world: World, tmp_path: Path, args: list[str]) -> None:
    url = f"postgresql://somebody:hidden@/nobody?host={tmp_path}"
    code, out, err = world.here(*args, "--db", url)
    assert (code, out) == (1, "")
    assert err.startswith("wakeloop: The database cannot be reached: ")
    assert "failed: No such file or directory" in err
    assert err.count("\n") == 1
    assert "hidden" not in err


def test_a_postgres_that_refuses(world: World, postgres: str) -> None:
    gone = postgres.replace("/test_", "/gone_").replace("postgres@", "postgres:hidden@")
    code, out, err = world.here("ps", "--db", gone)
    assert (code, out) == (1, "")
    assert "does not exist" in err
    assert (err.count("\n"), "hidden" in err) == (1, False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dbos", "psycopg"])
def test_a_missing_extra_is_named(world: World, name: str) -> None:
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {name!r}: raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from wakeloop.cli.commands.app import main\n"
        "main()\n"
    )
    args = [sys.executable, "-c", code, "ps", "--db", f"postgresql:///x?host={world.config}"]
    ran = subprocess.run(args, env=world.shell.env, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert (
        ran.stderr
        == "wakeloop: This command needs the extra 'sessions'. Run: pip install 'wakeloop[cli,sessions]'\n"
    )


def test_a_sqlite_that_is_too_old_is_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 40, 1))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.40.1")
    monkeypatch.setitem(sys.modules, "pysqlite3", None)
    said = "SQLite 3.40.1 is too old for durable sessions, which need 3.42."
    how = "Install pysqlite3-binary, or use Postgres"
    assert world.here("ps") == (1, "", f"wakeloop: {said} {how}.\n")
