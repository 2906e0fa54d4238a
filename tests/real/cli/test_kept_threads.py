"""Threads as they are kept: the last one, ids cut short, removed, renamed, taken out; full disks."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply
from processes import COMMAND, Shell, until, wakeloop

from wakeloop import create_todo_agent
from wakeloop.cli.recipe import Recipe
from wakeloop.cli.store import Place, writing
from wakeloop.testing import ScriptedModel, calls, says

pytestmark = pytest.mark.loopback
PLAN = Reply(calls=[("todo_write", {"items": ["a"]})])
DONE = Reply(calls=[("todo_update", {"id": 1, "status": "done"})])
BYE = Reply("bye")


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAKELOOP_DB", str(tmp_path / "threads.sqlite"))
    return tmp_path / "threads.sqlite"


def keep(db: Path, *names: str, script: Any = ()) -> None:
    """Threads that a run has ended, the last one named last."""
    with writing(Place(db, named=True)) as store:
        for name in names:
            model = ScriptedModel(list(script) or [says(f"hello {name}")])
            agent = create_todo_agent(model, checkpointer=store.saver)
            agent.invoke({"messages": [("user", f"go {name}")]}, {"configurable": {"thread_id": name}})
            store.remember(name, Recipe(model="m", root=str(db.parent)), f"go {name}")


# -- which thread is meant --------------------------------------------------------------------------------

NAMED = [["show", "ID"], ["todo", "ID", "list"], ["export", "ID"], ["config", "--thread", "ID"]]


@pytest.mark.parametrize("command", NAMED, ids=lambda one: one[0])
def test_an_id_may_be_cut_short(db: Path, command: list[str]) -> None:
    keep(db, "t-12", "t-1234", "t-5")

    def ask(name: str) -> tuple[int, str, str]:
        return wakeloop(*[name if word == "ID" else word for word in command])

    assert ask("t-123") == ask("t-1234")
    assert ask("t-12")[0] == 0  # a whole id is none that is cut short
    assert ask("t-1") == (
        2,
        "",
        "wakeloop: 2 threads begin with 't-1': t-1234, t-12; write more of the id.\n",
    )
    assert ask("t-") == (
        2,
        "",
        "wakeloop: 3 threads begin with 't-': t-5, t-1234, t-12; write more of the id.\n",
    )
    assert ask("u")[:2] == (2, "")


def test_resume_and_chat_take_the_last_thread(shell: Shell, serve: Any) -> None:
    none = shell("resume")
    told = f"wakeloop: There is no thread in '{shell.db}' yet; wakeloop run begins one.\n"
    assert (none.returncode, none.stdout, none.stderr) == (2, "", told)
    server = serve(*[Reply("hello")] * 4)
    for name in ("one", "two"):
        assert shell("run", name, "--model", "m", "--base-url", server.url, "--thread", name).returncode == 0
    gone_on = shell("resume")
    assert gone_on.stdout.splitlines()[0] == "Continuing thread two (m)"
    talked = shell("chat", "-c", typed="more\n")
    assert talked.stdout.splitlines()[0] == "Thread two (m); .help lists the commands."
    assert len(json.loads(shell("show", "two", "--json", "--history").stdout)["history"]) == 4
    both = shell("chat", "-c", "--thread", "one")
    assert (both.returncode, both.stderr) == (
        2,
        "wakeloop: --continue takes the last thread: leave --thread out, or --continue.\n",
    )


def test_a_minted_id_may_be_cut_short_also_where_a_new_one_may_be_named(shell: Shell, serve: Any) -> None:
    server = serve(Reply("hello"))
    keep(shell.db, "t-12345678", "mine")
    for named, meant in (("t-123", "Continuing thread t-12345678 (m)"), ("min", "Thread min (m)")):
        ran = shell("run", "x", "--model", "m", "--base-url", server.url, "--thread", named)
        assert ran.stdout.splitlines()[0] == meant


# -- the list ---------------------------------------------------------------------------------------------


def test_the_list_has_the_last_message_and_an_idle_chat_does_not_run(db: Path) -> None:
    keep(db, "t-1", script=[calls(("todo_write", {"items": ["a", "b"]})), *[says("I stop")] * 7])
    with writing(Place(db, named=True)) as store, store.held("t-1"):
        held = wakeloop("threads")[1].splitlines()
        row = json.loads(wakeloop("threads", "--json")[1])[0]
    assert held[0].split() == [
        "THREAD",
        "STATE",
        "REASON",
        "CLOSED",
        "WAKES",
        "CHANGED",
        "REQUEST",
        "LAST",
        "MESSAGE",
    ]
    assert held[1].split()[:5] == ["t-1", "idle", "stalled", "0/2", "5"]
    assert held[1].endswith("  go t-1   I stop")
    assert (row["state"], row["request"], row["last"]) == ("idle", "go t-1", "I stop")


# -- removed, renamed, taken out --------------------------------------------------------------------------


def rows(db: Path, name: str) -> int:
    with closing(sqlite3.connect(db)) as connection:
        tables = ("checkpoints", "writes", "wakeloop_threads")
        count = "SELECT COUNT(*) FROM {} WHERE thread_id = ?"
        return sum(connection.execute(count.format(table), [name]).fetchone()[0] for table in tables)


def test_threads_are_removed_whole_or_not_at_all(db: Path) -> None:
    keep(db, "t-1", "t-2", "t-3")
    assert wakeloop("rm", "t-1", "nobody")[0] == 2
    assert rows(db, "t-1") > 2
    with writing(Place(db, named=True)) as store, store.held("t-1"):
        ran = subprocess.run([*COMMAND, "rm", "t-1"], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr[:48]) == (1, "wakeloop: The thread 't-1' is in the hands of an")
    assert wakeloop("rm", "t-1", "t-3") == (0, "Removed t-1 (go t-1).\nRemoved t-3 (go t-3).\n", "")
    assert (rows(db, "t-1"), rows(db, "t-3")) == (0, 0)
    assert [one["thread"] for one in json.loads(wakeloop("threads", "--json")[1])] == ["t-2"]


def test_a_thread_has_another_name_and_the_same_in_it(db: Path) -> None:
    keep(db, "t-1", "t-2")
    before, count = json.loads(wakeloop("show", "t-1", "--json", "--history")[1]), rows(db, "t-1")
    assert wakeloop("rename", "t-1", "notes") == (0, "t-1 is notes now.\n", "")
    assert (rows(db, "t-1"), rows(db, "notes")) == (0, count)
    assert json.loads(wakeloop("show", "notes", "--json", "--history")[1]) == before | {"thread": "notes"}
    taken = (2, "", "wakeloop: There is a thread 't-2' already: choose another name.\n")
    assert wakeloop("rename", "notes", "t-2") == taken
    assert wakeloop("rename", "notes", "a b")[0] == 2


def test_a_session_of_a_server_stays(db: Path) -> None:
    keep(db, "t-1")
    with closing(sqlite3.connect(f"{db}-sessions")) as events, events:
        events.execute("CREATE TABLE wakeloop_events (thread)")
        events.execute("INSERT INTO wakeloop_events VALUES ('t-1')")
    told = "wakeloop: The thread 't-1' is a session of wakeloop serve: it stays as it is.\n"
    assert wakeloop("rm", "t-1") == wakeloop("rename", "t-1", "b") == (2, "", told)
    assert rows(db, "t-1") > 2


def test_a_thread_is_taken_out(db: Path, tmp_path: Path) -> None:
    script = [
        calls(("todo_write", {"items": ["a", "```b"]})),
        calls(
            ("todo_update", {"id": 1, "status": "done"}),
            ("todo_update", {"id": 2, "status": "blocked", "reason": "no"}),
        ),
        says("```\nDone, \x1b[31mred"),
    ]
    keep(db, "t-1", script=script)
    code, out, err = wakeloop("export", "t-1")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "# Thread t-1"
    assert lines[2].startswith("dormant (settled), changed 20")
    assert lines[4:12] == [
        "## List: 1/2 closed, 1 blocked",
        "",
        "- [x] 1 a",
        "- [ ] 2 ```b (blocked): no",
        "",
        "## Conversation",
        "",
        "### You",
    ]
    assert lines[-6:] == ["### Model", "", "````text", "```", "Done, red", "````"]
    file = tmp_path / "t.md"
    assert wakeloop("export", "t-1", "-o", str(file)) == (0, f"{file}\n", "")
    assert file.read_text() == out
    assert wakeloop("export", "t-1", "-o", str(file))[::2] == (
        2,
        f"wakeloop: The file '{file}' is there already: name another.\n",
    )
    whole = wakeloop("show", "t-1", "--json", "--history")[1]
    assert wakeloop("export", "t-1", "--json") == (0, whole, "")


# -- what fails -------------------------------------------------------------------------------------------


def test_a_first_try_in_vain_leaves_no_thread(shell: Shell, serve: Any) -> None:
    server = serve(Reply(status=401), PLAN, Reply(status=401))
    args = ("run", "x", "--model", "m", "--base-url", server.url)
    failed = shell(*args)
    assert (failed.returncode, failed.stderr.splitlines()[1]) == (
        1,
        "No thread was kept: nothing was answered. Give the same command again.",
    )
    assert json.loads(shell("threads", "--json").stdout) == []
    failed = shell(*args, "--thread", "mine")  # a second request is in vain: what was answered is kept
    assert failed.stderr.splitlines()[1] == f"To try again: wakeloop resume mine --db {shell.db}"
    assert [one["thread"] for one in json.loads(shell("threads", "--json").stdout)] == ["mine"]
    down = shell("run", "x", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--thread", "other")
    assert (down.returncode, rows(shell.db, "other")) == (1, 0)


def test_a_chat_in_vain_leaves_no_thread(shell: Shell, serve: Any) -> None:
    server = serve(Reply(status=401), Reply("hello"), Reply(status=401))
    args = ("chat", "--model", "m", "--base-url", server.url, "--thread")
    failed = shell(*args, "vain", typed="hello\n")
    assert (failed.returncode, rows(shell.db, "vain")) == (1, 0)
    failed = shell(*args, "kept", typed="hello\nmore\n")
    assert failed.returncode == 1
    assert [one["thread"] for one in json.loads(shell("threads", "--json").stdout)] == ["kept"]


def test_a_reply_that_cannot_be_read_is_told_without_a_programs_words() -> None:
    from wakeloop.cli.failures import sentence_of
    from wakeloop.errors import ConcurrentRunError
    from wakeloop.model.broken_stream import unreadable

    assert sentence_of(unreadable("its role is 'user'")) == (
        "The model's reply could not be read (its role is 'user'), so nothing of it was stored: "
        "try again, and if it comes again look at the model's address and at what stands before its server."
    )
    assert sentence_of(ConcurrentRunError("t", "1", "2")) == (
        "Two writers were on the thread 't' at once: this run, which stands at checkpoint 1, and another "
        "run or an edit by hand, which wrote checkpoint 2; let one program at a time have a thread, "
        "and go on from here."
    )


def test_a_demo_without_its_report_fails(shell: Shell) -> None:
    (shell.folder / "a.py").write_text("x = 1\n")
    (shell.folder / "wakeloop-report.md").mkdir()  # in its place
    done = shell("demo", ".")
    assert done.returncode == 1
    told = [line for line in done.stdout.splitlines() if line.startswith("The report could not be written: ")]
    assert told == [
        "The report could not be written: 'wakeloop-report.md' is a folder, not a file; list_files lists it."
    ]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/dev/full is Linux's")
def test_an_output_on_a_full_disk_leaves_the_thread_whole(shell: Shell, serve: Any) -> None:
    server = serve(PLAN, DONE, BYE)
    with open("/dev/full", "w") as full:  # noqa: PTH123
        failed = shell("run", "x", "--model", "m", "--base-url", server.url, "--thread", "t", stdout=full)
        listed = shell("threads", stdout=full)
    told = "wakeloop: The disk that the output goes to is full: make room, then go on where it stopped.\n"
    assert (listed.returncode, listed.stderr) == (1, told)
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[0] + "\n" == told
    assert sqlite3.connect(shell.db).execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_full_database_is_told_as_a_full_disk(shell: Shell, serve: Any) -> None:
    """SQLite says the same of a database that may have no more pages as of a disk without room."""
    server = serve(PLAN, DONE, BYE)
    assert shell("run", "x", "--model", "m", "--base-url", server.url, "--thread", "t").returncode == 0
    code = (
        "import sqlite3, sys\n"
        "from wakeloop.cli import store\n"
        "def connected(place, mode, before=store.connected):\n"
        "    made = before(place, mode)\n"
        "    [(pages,)] = made.execute('PRAGMA page_count')\n"
        "    made.execute(f'PRAGMA max_page_count = {pages}')\n"
        "    return made\n"
        "store.connected = connected\n"
        "from wakeloop.cli.commands.app import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code, "resume", "t", "again " * 20_000]
    ran = subprocess.run(
        command, env=shell.env, cwd=shell.folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[0] == (
        "wakeloop: The disk of the database is full: make room, then go on where it stopped."
    )
    shown = json.loads(shell("show", "t", "--json").stdout)
    assert (shown["session"]["state"], shown["answer"]) == ("dormant", "bye")


def test_a_terminal_that_is_closed_leaves_the_thread_whole(shell: Shell, serve: Any) -> None:
    import os
    import pty

    asked: list[int] = []

    def slow(number: int, _: Any) -> Reply:
        asked.append(number)
        return PLAN if number == 1 else Reply("bye", delay=3) if number == 2 else DONE

    server = serve(script=slow)
    master, terminal = pty.openpty()
    args = [*COMMAND, "run", "x", "--model", "m", "--base-url", server.url, "--thread", "t"]
    with subprocess.Popen(
        args,
        env=shell.env,
        cwd=shell.folder,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        text=True,
    ) as ran:
        os.close(terminal)
        until(lambda: asked[1:], ran)
        os.close(master)
        ran.wait(timeout=30)
    shown = json.loads(shell("show", "t", "--json").stdout)
    assert [todo["content"] for todo in shown["todos"]] == ["a"]
    assert sqlite3.connect(shell.db).execute("PRAGMA integrity_check").fetchall() == [("ok",)]
