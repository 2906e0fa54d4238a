"""MCP servers under the commands: one process for a whole run, only when asked for, never left behind."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply, Server
from processes import Shell, is_gone, lines, until, wakeloop

pytestmark = pytest.mark.loopback

PROGRAM = {"command": sys.executable, "args": [str(Path(__file__).with_name("tool_server.py"))]}
TOKEN = "tok-1234567"
PID = Reply(calls=[("pid", {})])


def servers(folder: Path, **more: Any) -> str:
    """Write a file of one server."""
    path = folder / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {"local": {**PROGRAM, **more}}}))
    return str(path)


def pids(server: Server) -> list[str]:
    """Return what the calls of `pid` have returned, in every conversation's last request."""
    results = [m["content"] for asked in server.requests for m in asked["messages"] if m["role"] == "tool"]
    return sorted({one for one in results if one.isdigit()})


@pytest.mark.slow
def test_a_run_has_one_process_and_its_secrets_are_nowhere(shell: Shell, serve: Any) -> None:
    calls = [
        ("add", {"a": 1, "b": 2}),
        ("fail", {"words": "$THE_TOKEN"}),
        ("surroundings", {"name": "THE_TOKEN"}),
    ]
    model = serve(PID, Reply(calls=calls), PID, Reply(calls=[("die", {})]), PID, Reply("Done."))
    path = servers(shell.folder, env={"THE_TOKEN": "${MY_TOKEN}"})
    where = ["--model", "m", "--base-url", model.url, "--thread", "mine"]
    done = shell("run", "go", *where, "--mcp", ".mcp.json", env={"MY_TOKEN": TOKEN})
    assert done.returncode == 0, done.stderr
    names = [one["function"]["name"] for one in model.requests[0]["tools"]]
    assert {"pid", "dotted_name_one", "write", "read_file", "todo_write"} < set(names)
    first, three, wrong, token, second, ended, third = [
        m["content"] for m in model.requests[-1]["messages"] if m["role"] == "tool"
    ]
    assert (three, wrong, token) == ("3", "Error: Error executing tool fail: …", "…")
    assert first == second != third
    assert ended.startswith("Error: the MCP server 'local' ended during this call")
    assert [is_gone(int(one)) for one in (first, third)] == [True, True]
    assert "2 calls failed" in done.stdout
    assert "Found .mcp.json" not in done.stdout
    assert TOKEN not in done.stdout + done.stderr
    with closing(sqlite3.connect(shell.db)) as database:
        stored = "\n".join(database.iterdump())
    assert (TOKEN.encode().hex().upper() in stored, TOKEN in stored) == (False, False)
    assert path in stored

    # the thread knows its file, wherever it is resumed
    again = shell("resume", "mine", "again", cwd=shell.folder.parent)
    assert (again.returncode, again.stderr) == (
        2,
        f"wakeloop: {path}: the server 'local' needs the environment variable MY_TOKEN, which is not set.\n",
    )


@pytest.mark.slow
def test_a_call_that_does_more_than_read_needs_a_persons_approval(shell: Shell, serve: Any) -> None:
    write = ("write", {"path": "a.txt", "text": "x\u202ey"})
    calls = [write, ("add", {"a": 1, "b": 2})]

    def script(number: int, asked: dict[str, Any]) -> Reply:
        return Reply("Done.") if asked["messages"][-1]["role"] == "tool" else Reply(calls=calls)

    model = serve(script=script)
    servers(shell.folder)
    where = ["--model", "m", "--base-url", model.url, "--mcp", ".mcp.json"]
    waits = shell("run", "go", *where, "--thread", "mine")
    assert waits.returncode == 4
    assert [line.strip() for line in lines(waits.stdout, "question:")] == [
        "question: Make this call of the MCP server 'local'?",
        "question:   tool: write",
        "question:   path: a.txt",
        r"question:   text: x\u202ey",
        r"question:   | (1 invisible character, shown as \x.. or \u....)",
    ]
    assert not (shell.folder / "a.txt").exists()
    assert shell("resume", "mine", "not today").returncode == 0
    told = [m["content"] for m in model.requests[-1]["messages"] if m["role"] == "tool"]
    refused = 'Error: the user rejected this call; it was not run. They said: "not today" '
    assert told == [f"{refused}Do not send it again unless they ask for it.", "3"]
    assert shell("run", "go", *where, "--yes", "--thread", "other").returncode == 0
    assert (shell.folder / "a.txt").read_text() == "x\u202ey"


SLEEP = Reply(calls=[("slow", {"seconds": 60})])
NAP = Reply(calls=[("slow", {"seconds": 2})])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "then", "env"),
    [
        pytest.param(signal.SIGINT, 130, SLEEP, {}, marks=pytest.mark.large),
        (
            signal.SIGINT,
            130,
            Reply(delay=20),
            {"STUBBORN": "yes"},
        ),  # left during a request: the process is killed
        (signal.SIGTERM, 143, NAP, {}),
        (signal.SIGKILL, -signal.SIGKILL, SLEEP, {}),
    ],
    ids=["Ctrl-C", "cut off", "SIGTERM", "kill -9"],
)
def test_no_ending_leaves_a_server_behind(
    shell: Shell, serve: Any, number: int, code: int, then: Reply, env: dict[str, str]
) -> None:
    model = serve(PID, then, Reply("Bye."))
    servers(shell.folder, env=env)
    run = shell.start("run", "go", "--model", "m", "--base-url", model.url, "--mcp", ".mcp.json")
    until(lambda: len(model.requests) == 2, run)
    (pid,) = pids(model)
    assert not is_gone(int(pid), 0.5)
    run.send_signal(number)
    run.communicate(timeout=30)
    assert run.returncode == code
    assert is_gone(int(pid))


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_server_that_is_not_ready_yet_is_not_left_behind(shell: Shell, number: int, code: int) -> None:
    pid = shell.folder / "pid"
    text = f"import os, time; open({str(pid)!r}, 'w').write(f'{{os.getpid()}} '); time.sleep(60)"
    servers(shell.folder, command=sys.executable, args=["-c", text])
    run = shell.start("run", "go", "--model", "m", "--mcp", ".mcp.json")
    until(lambda: pid.exists() and pid.read_text().endswith(" "), run)
    run.send_signal(number)
    out, _ = run.communicate(timeout=30)
    assert (run.returncode, out) == (code, "")
    assert is_gone(int(pid.read_text()))
    assert not shell.db.exists()


@pytest.mark.slow
def test_a_chat_holds_its_servers_from_line_to_line(shell: Shell, serve: Any) -> None:
    model = serve(PID, Reply("One."), PID, Reply("Two."))
    servers(shell.folder)
    options = ["--model", "m", "--base-url", model.url, "--mcp", ".mcp.json"]
    done = shell("chat", *options, typed="first\nsecond\n")
    assert done.returncode == 0, done.stderr
    assert [m["content"] for m in model.requests[-1]["messages"] if m["role"] == "tool"] == pids(model) * 2
    assert is_gone(int(pids(model)[0]))


@pytest.mark.slow
def test_a_worker_holds_its_servers_for_its_life(shell: Shell, serve: Any) -> None:
    def script(number: int, asked: dict[str, Any]) -> Reply:
        return Reply("Done.") if asked["messages"][-1]["role"] == "tool" else PID

    model = serve(script=script)
    servers(shell.folder)
    shell.env = {k: v for k, v in shell.env.items() if k != "PYTHONWARNINGS"}
    worker = shell.start("serve", "--model", "m", "--base-url", model.url, "--mcp", ".mcp.json")
    try:
        for session in ("one", "two"):
            assert wakeloop("send", session, "go", "--wait", "--db", str(shell.db))[:2] == (0, "Done.\n")
        (pid,) = pids(model)
        assert not is_gone(int(pid), 0.2)
        worker.send_signal(signal.SIGTERM)
        out, err = worker.communicate(timeout=60)
        assert (worker.returncode, out.splitlines()[-1], err) == (0, "Stopped.", "")
        assert is_gone(int(pid))
    finally:
        worker.kill()


@contextmanager
def at_once(put: Callable[[int, None], None]) -> Iterator[None]:
    """In place of signals: a worker stops as soon as it serves."""
    put(signal.SIGTERM, None)
    yield


@pytest.mark.slow
@pytest.mark.parametrize("command", [["run", "x"], ["chat"], ["serve"]], ids=lambda command: command[0])
def test_a_file_that_nobody_named_is_reported_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], serve: Callable[..., Server]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-secret")
    monkeypatch.setattr("wakeloop.cli.sessions.serve.handle_signals", at_once)
    begun = tmp_path / "begun"
    servers(tmp_path, command="/bin/sh", args=["-c", f"touch {begun}"])
    told = "Found .mcp.json. Start its servers with --mcp .mcp.json; --mcp none hides this note.\n"
    options = ["--model", "m", "--base-url", serve(Reply("Hello.")).url, "--db", "threads.sqlite"]
    code, out, _ = wakeloop(*command, *options, input="")
    assert (code, out.count(told)) == (0, 1)
    assert told not in wakeloop(*command, *options, "--mcp", "none", input="")[1]
    assert not begun.exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--mcp", "nothing.json"], "'nothing.json' of --mcp is not a file."),
        (["--mcp", "."], "'.' of --mcp is not a file."),
        (["--mcp", "bad.json"], r"\S+/bad.json, line 1 is not valid JSON: Expecting value."),
        (
            ["--mcp", "one.json", "--model", "m"],
            "The MCP server 'one' cannot be used: the command 'no-such' or the folder '.' does not exist.",
        ),
    ],
)
def test_a_missing_file_or_server_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-secret")
    (tmp_path / "bad.json").write_text("x")
    (tmp_path / "one.json").write_text('{"mcpServers": {"one": {"command": "no-such"}}}')
    code, out, err = wakeloop("run", "x", "--model", "m", *options, "--db", "threads.sqlite")
    assert (code, out) == (2, "")
    assert re.fullmatch(f"wakeloop: {says}\n", err), err
    assert not Path("threads.sqlite").exists()


def test_a_configuration_file_may_name_one_next_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    (config / "agents").mkdir(parents=True)
    (config / "config.yaml").write_text("mcp: servers.json\n")
    (config / "agents" / "ada.yaml").write_text("mcp: none\n")
    (config / "agents" / "bad.yaml").write_text("tools: [files, os:system]\n")
    monkeypatch.setenv("WAKELOOP_CONFIG", str(config))
    monkeypatch.chdir(tmp_path)

    def held(*options: str) -> tuple[Any, str]:
        found = json.loads(wakeloop("config", "--json", "--db", "t", *options)[1])["values"]["mcp"]
        return found["value"], found["level"]

    assert held() == (str(config / "servers.json"), "global")
    assert held("--agent", "ada") == ("", "agent")
    monkeypatch.setenv("WAKELOOP_MCP", ".mcp.json")
    assert held() == (str(tmp_path / ".mcp.json"), "global")
    code, _, err = wakeloop("config", "--agent", "bad", "--db", "t")
    assert code == 2
    assert err.endswith("Your own need the option --tools.\n")
