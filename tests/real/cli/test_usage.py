"""Wrong usage and databases: one sentence, the right exit code, nothing left behind."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from processes import run_python, wakeloop


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "threads.sqlite"
    monkeypatch.setenv("WAKELOOP_DB", str(path))
    monkeypatch.chdir(tmp_path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["run", "x"], 2, "No model is configured"),
        (["run", "  ", "--model", "m"], 2, "The request is empty"),
        (["run", "x", "--model", "m"], 2, "The model has no API key: set OPENAI_API_KEY"),
        (["run", "x", "--model", "m", "--set", "max_wake=1"], 2, "Unknown setting 'max_wake'"),
        (
            ["run", "x", "--model", "m", "--set", "max_wake_cycles=many"],
            2,
            "'max_wake_cycles' must be a number, got 'many'",
        ),
        (["run", "x", "--model", "m", "--set", "max_wake_cycles"], 2, "--set expects key=value"),
        (["run", "x", "--model", "m", "--preset", "nope"], 2, "Unknown preset 'nope'"),
        (["run", "x", "--model", "m", "--tools", "web"], 2, "Unknown tools 'web'. --tools takes"),
        (
            ["run", "x", "--model", "m", "--tools", "files shell"],
            2,
            "takes files, shell and MODULE:NAME for your own, with commas between, or none.",
        ),
        (["run", "x", "--model", "m", "--root", "nowhere"], 2, "is not a folder"),
        (
            ["run", "x", "--model", "m", "--system", "nothing.txt"],
            2,
            "of --system: No such file",
        ),
        (["run", "x", "--wait", "soon"], 2, "--wait takes a time such as 15m"),
        (["chat", "--wait", "soon"], 2, "--wait takes a time such as 15m"),
        (["run", "x", "--model", "m", "--thread", "-a b"], 2, "A thread id may contain letters"),
        (
            ["run", "x", "--model", "m", "--thread", "x" * 101],
            2,
            "at most 100 characters, got 101.",
        ),
        (["run", "x", "--model", "m", "--root", "x" * 300], 1, "File name too long: xxx"),
        (["run", "x", "--model", "anthropic:m", "--base-url", "http://x"], 2, "names another provider"),
        (["run", "x", "--model", "tiny:3b", "--base-url", "http://x"], 2, "write 'openai:tiny:3b'."),
        (["run", "x", "--model", "groq:m"], 2, "langchain-groq"),
        *(
            (
                ["run", "x", "--model", "m", "--base-url", url],
                2,
                f"--base-url must be an address such as http://HOST:PORT/v1, got {url!r}",
            )
            for url in ("http://[::1", "x", "http://host:port/v1", "localhost:11434")
        ),
        (["serve", "--demo", "nowhere"], 2, "is not a folder. Name another one with --demo."),
        (["bench", "report", "nowhere"], 2, "nowhere cannot be read: No such file"),
        (["resume", "nobody"], 2, "Unknown thread 'nobody'"),
        (["show", "nobody"], 2, "Unknown thread 'nobody'"),
        (["todo", "nobody", "add", "x"], 2, "Unknown thread 'nobody'"),
        (["todo", "nobody", "fly"], 2, "Neither 'nobody' nor 'fly' is an action. Available: add, done"),
        (["todo", "fly"], 2, "list them with wakeloop threads. Actions: add, done, start"),
        (["todo", "nobody", "block", "1"], 2, "needs an id and a reason"),
        (["todo", "nobody", "clear", "1"], 2, "takes no arguments"),
        (["demo", "nowhere"], 2, "is not a folder. Name another one."),
        (["demo", ".", "--preset", "nope"], 2, "Unknown preset 'nope'"),
        (["demo", "."], 2, "has no Python"),
    ],
)
def test_wrong_usage_is_one_sentence(db: Path, args: list[str], code: int, says: str) -> None:
    got, out, err = wakeloop(*args)
    assert (got, out) == (code, "")
    assert says in err
    assert err.startswith("wakeloop: ")
    assert len(err.splitlines()) == 1
    assert not db.exists()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["Tidy up"], "To run a request: python -m wakeloop run 'Tidy up'"),
        (["run", "Tidy", "up"], "Got unexpected extra argument(s) (up). Put text with spaces in quotes."),
        (["threads", "nope"], "Error: Got unexpected extra argument(s) (nope)."),
        (["init", "gpt-5"], "Error: Got unexpected extra argument(s) (gpt-5)."),
        (["show", "a", "b"], "Error: Got unexpected extra argument(s) (b)."),
        (["resume", "a", "b", "c"], "Got unexpected extra argument(s) (c). Put text with spaces in quotes."),
        (["chat", "hello"], "extra argument(s) (hello). Type messages at its prompt, or use wakeloop run."),
        (["chat", "--model"], "Option '--model' requires an argument."),
        (
            ["run", "Tidy", "--tools", "files", "shell"],
            "Got unexpected extra argument(s) (shell). Put commas between tools, as in --tools files,shell.",
        ),
        (
            ["run", "Tidy", "--set", "max_requests", "3"],
            "(3). Put = between a setting and its value, as in --set max_requests=100.",
        ),
        (["--model", "m", "run", "x"], "No such option: --model. It comes after the command."),
        (["show", "--thread", "a"], "--thread. Name the thread without it, as in wakeloop show THREAD."),
        (["ls"], "No such command 'ls'. Did you mean 'threads'?"),
        (["rm"], "Missing argument 'THREAD…'. List them with wakeloop threads."),
        (["run", "x", "--max-wakes", "3"], "No such option: --max-wakes. Use --set max_wake_cycles=N."),
        (["run", "x", "--max-steps", "3"], "No such option: --max-steps. Use --max-requests N."),
        (["run", "x", "--timeout", "3"], "No such option: --timeout. Use --max-seconds N."),
        (["run", "x", "--on-question", "park"], "--on-question. Use --set on_question=VALUE."),
        (["resume", "a b"], "list them with wakeloop threads. A message comes after the thread's id."),
        (["run", "x", "--output", "yaml"], "'--output': 'yaml' is not one of 'text', 'json', 'stream-json'."),
    ],
)
def test_a_wrong_command_line_says_what_was_meant(db: Path, args: list[str], says: str) -> None:
    done = run_python("-m", "wakeloop", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].endswith(says)


def test_help_is_a_command_too(db: Path) -> None:
    code, out, _ = wakeloop("help")
    assert (code, out) == (0, wakeloop("--help")[1])
    assert wakeloop("help", "run") == wakeloop("run", "--help")
    assert "No such command 'nope'" in wakeloop("help", "nope")[2]


def test_an_empty_address_is_ignored(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wakeloop.model.chat_models import create_model

    monkeypatch.setenv("OPENAI_BASE_URL", "")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    model: Any = create_model("openai:NAME")
    assert str(model.root_client.base_url) == "https://api.openai.com/v1/"


def test_commands_that_read_create_no_database(db: Path) -> None:
    assert wakeloop("threads") == (0, f"No threads yet in {db}.\n", "")
    assert wakeloop("threads", "--json") == (0, "[]\n", "")
    assert wakeloop("graph")[0] == 0
    assert not db.exists()
    assert list(db.parent.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_place(db: Path) -> None:
    (db.parent / "a.py").write_text("x = 1\n")
    db.parent.chmod(0o500)
    try:
        code, _, err = wakeloop("demo", ".")
    finally:
        db.parent.chmod(0o700)
    assert code == 1
    assert "cannot be created" in err
    wakeloop("demo", ".")
    kept = wakeloop("threads")
    db.parent.chmod(0o500)
    try:
        assert wakeloop("threads") == kept
        assert "cannot be used: attempt to write a readonly database" in wakeloop("demo", ".")[2]
    finally:
        db.parent.chmod(0o700)


def test_a_name_that_contains_a_colon(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKELOOP_BASE_URL", "http://127.0.0.1:9/v1")
    advice = {"tiny:3b": "For a model of your own server write", "llama:3b": "has no provider. Write"}
    for name, told in advice.items():
        code, out, err = wakeloop("run", "x", "--model", name)
        assert (code, out) == (2, "")
        assert err.endswith(f" {told} 'openai:{name}'.\n")


def test_an_empty_file_is_an_empty_database(db: Path) -> None:
    db.touch()
    assert wakeloop("threads")[0] == 0
    assert wakeloop("show", "t")[0] == 2


def test_threads_of_a_users_own_program_are_seen(db: Path) -> None:
    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.sqlite import SqliteSaver

    from wakeloop import create_todo_agent
    from wakeloop.testing import ScriptedModel, calls, says

    with SqliteSaver.from_conn_string(str(db)) as saver:
        script = [calls(("todo_write", {"items": ["a", "b"]})), *[says("no")] * 7]
        agent = create_todo_agent(ScriptedModel(script), checkpointer=saver)
        agent.invoke({"messages": [HumanMessage("do \x1b[31mthis")]}, {"configurable": {"thread_id": "own"}})
    code, out, _ = wakeloop("threads")
    assert code == 0
    assert out.splitlines()[1].split()[:5] == ["own", "idle", "2", "of", "2"]
    assert out.endswith("  do this  no\n")
    assert wakeloop("todo", "own", "done", "1")[1] == "list: 1/2 closed\n  [x] 1 a\n  [ ] 2 b\n"
    assert wakeloop("todo", "own", "done", "7")[0] == 2
    assert (
        wakeloop("todo", "own", "block", "2", "no", "wood")[1].splitlines()[2]
        == "  [!] 2 b (blocked: no wood)"
    )
    assert wakeloop("todo", "own", "edit", "2", "bb")[0] == 0
    assert wakeloop("todo", "own", "reopen", "2")[1].splitlines()[2] == "  [ ] 2 bb"
    assert wakeloop("todo", "own", "start", "2")[1].splitlines()[2] == "  [>] 2 bb"
    assert wakeloop("todo", "own", "cancel", "2")[0] == 0
    assert wakeloop("todo", "own", "add", "c", "d")[1].splitlines()[0] == "list: 2/4 closed (1 cancelled)"
    assert wakeloop("todo", "own", "add", " ")[0] == 2
    assert wakeloop("todo", "own", "remove", "3", "4")[0] == 0
    assert wakeloop("todo", "own", "list")[1] == "list: 2/2 closed (1 cancelled)\n  [x] 1 a\n  [-] 2 bb\n"
    assert wakeloop("todo", "own", "clear")[1] == "list: 0/0 closed\n"
    shown = wakeloop("show", "own", "--history")[1]
    assert "graph wake: (automatic) 2 of 2 items open. Continue" in shown
    assert "graph correction: (automatic) This run is about to end" in shown
    assert "user: do this" in shown


def test_help_is_quick_and_imports_nothing_slow() -> None:
    code = (
        "import sys\n"
        "from wakeloop.cli.commands.app import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "slow = {'langgraph', 'langchain_core', 'langchain_openai', 'rich', 'pydantic', 'platformdirs'}\n"
        "slow.add('mcp')\n"
        "sys.exit(str(slow & set(sys.modules)) if slow & set(sys.modules) else 0)\n"
    )
    unmeasured = {key: v for key, v in os.environ.items() if not key.startswith("COVERAGE_")}
    done = subprocess.run(  # coverage imports, too
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=unmeasured
    )
    assert done.returncode == 0, done.stderr
    for command in ("init", "doctor", "run", "resume", "threads", "show", "todo", "graph", "demo"):
        assert f"  {command} " in done.stdout
    assert wakeloop("-h")[0] == 0
    assert wakeloop("--version")[1].startswith("wakeloop ")


def test_a_damaged_thread_is_named_and_hides_no_other(db: Path) -> None:
    (db.parent / "a.md").write_text("# A\n")
    for _ in range(2):
        assert wakeloop("demo", ".")[0] == 0
    with sqlite3.connect(db) as connection:
        rows = connection.execute("SELECT thread_id FROM wakeloop_threads ORDER BY rowid").fetchall()
        (first,), (second,) = rows
        connection.execute("UPDATE checkpoints SET checkpoint = x'00' WHERE thread_id = ?", (first,))
        connection.execute("UPDATE wakeloop_threads SET spec = '{' WHERE thread_id = ?", (second,))
    connection.close()
    listed = json.loads(wakeloop("threads", "--json")[1])
    assert {row["thread"]: row["state"] for row in listed} == {first: "damaged", second: "dormant"}
    code, out, err = wakeloop("show", first)
    assert (code, out) == (1, "")
    assert err == f"wakeloop: Cannot read the thread '{first}': its stored data is damaged.\n"


@pytest.mark.parametrize("newest", [True, False])
def test_the_rest_of_a_thread_with_a_torn_row_is_shown(db: Path, newest: bool) -> None:
    (db.parent / "a.md").write_text("# A\n")
    assert wakeloop("demo", ".")[0] == 0
    whole = wakeloop("show")[1]
    with sqlite3.connect(db) as connection:
        ids = connection.execute(
            "SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id DESC"
        ).fetchall()
        torn = ids[0 if newest else len(ids) // 2]
        connection.execute("UPDATE checkpoints SET checkpoint = x'00' WHERE checkpoint_id = ?", torn)
        (name,) = connection.execute("SELECT thread_id FROM wakeloop_threads").fetchone()
    connection.close()
    sentence = "The stored thread is damaged; this is what could be read, 0 open."
    items = [line for line in whole.splitlines() if line.startswith("  [x]")]
    code, out, _ = wakeloop("show", name)
    assert (code, len(items) > 1) == (0, True)
    assert "state: damaged, changed " in out
    assert sentence in out
    assert [line for line in out.splitlines() if line.startswith("  [x]")] == items
    code, out, _ = wakeloop("export", name)
    assert (code, sentence in out, out.count("- [x]")) == (0, True, len(items))
    assert wakeloop("todo", name, "list")[1].splitlines()[1:] == items
    told = f"wakeloop: Cannot read the thread '{name}': its stored data is damaged.\n"
    assert wakeloop("resume", name) == (1, "", told)


# -- an invalid database ---------------------------------------------------------------------------------

HERE = ["--model", "m", "--base-url", "http://127.0.0.1:9/v1"]  # it is not asked
EVERY = [
    *(["run", "x", *HERE], ["resume", "t"], ["chat", "--thread", "t", *HERE], ["config", "--thread", "t"]),
    *(["threads"], ["show", "t"], ["todo", "t"], ["todo", "t", "add", "x"], ["report", "t", "-o", "-"]),
    *(["rm", "t"], ["rename", "t", "u"], ["export", "t"], ["demo", "."], ["send", "t", "x"], ["ps"]),
    *(["cron", "list"], ["drain", "--timeout", "0"], ["serve", "--demo", "."]),
]


def another_program(db: Path) -> None:
    with closing(sqlite3.connect(db)) as connection:
        connection.execute("CREATE TABLE bookmarks (x)")


STATES: list[tuple[Callable[[Path], object], int, str]] = [
    (Path.mkdir, 2, "is not a file. Name another file with --db."),
    (os.mkfifo, 2, "is not a file. Name another file with --db."),
    (another_program, 2, "belongs to another program. Name another file with --db."),
    (
        lambda db: db.write_bytes(b"this is no database " * 100),
        1,
        "cannot be used: file is not a database. Name another file with --db.",
    ),
]


KINDS = ("folder", "pipe", "other", "text")


@pytest.mark.slow
@pytest.mark.parametrize(("make", "code", "told"), STATES, ids=KINDS)
def test_every_command_says_the_same_of_an_invalid_database(
    db: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object], code: int, told: str
) -> None:
    (db.parent / "a.md").write_text("# A\n")
    monkeypatch.setenv("WAKELOOP_CONFIG", str(db.parent / "config"))
    make(db)
    before = db.read_bytes() if db.is_file() else None
    said = (code, "", f"wakeloop: The database {str(db)!r} {told}\n")
    told_by = {" ".join(args): wakeloop(*args, "--db", str(db)) for args in EVERY}
    assert told_by == dict.fromkeys(told_by, said)
    assert sorted(path.name for path in db.parent.iterdir()) == ["a.md", db.name]
    assert before == (db.read_bytes() if db.is_file() else None)
