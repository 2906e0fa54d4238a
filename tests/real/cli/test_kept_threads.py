"""Stored threads: the last one, shortened ids, removed, renamed, exported; full disks."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest
from chat_server import Reply
from processes import COMMAND, PROGRAM, Shell, run_python, until, wakeloop

from wakeloop import create_todo_agent
from wakeloop.cli import show
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.store import DatabaseFile, Store, ThreadRecord, open_to_write
from wakeloop.cli.thread_lookup import resolve_thread_option
from wakeloop.display.terminal_output import count_columns
from wakeloop.testing import ScriptedModel, calls, says

pytestmark = pytest.mark.loopback
PLAN = Reply(calls=[("todo_write", {"items": ["a"]})])
DONE = Reply(calls=[("todo_update", {"id": 1, "status": "done"})])
BYE = Reply("bye")


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAKELOOP_DB", str(tmp_path / "threads.sqlite"))
    return tmp_path / "threads.sqlite"


def keep(db: Path, *names: str, script: Any = (), request: str = "") -> None:
    """Keep threads that a run has ended, the last one named last."""
    with open_to_write(DatabaseFile(db, named=True)) as store:
        for name in names:
            model = ScriptedModel(list(script) or [says(f"hello {name}")])
            agent = create_todo_agent(model, checkpointer=store.saver)
            asked = request or f"go {name}"
            agent.invoke({"messages": [("user", asked)]}, {"configurable": {"thread_id": name}})
            store.remember(name, AgentSpec(model="m", root=str(db.parent)), asked)


# -- which thread is meant --------------------------------------------------------------------------------

NAMED = [["show", "ID"], ["todo", "ID", "list"], ["export", "ID"], ["config", "--thread", "ID"]]


@pytest.mark.slow
@pytest.mark.parametrize("command", NAMED, ids=lambda one: one[0])
def test_an_id_may_be_shortened(db: Path, command: list[str]) -> None:
    keep(db, "t-12", "t-1234", "t-5")

    def ask(name: str) -> tuple[int, str, str]:
        return wakeloop(*[name if word == "ID" else word for word in command])

    assert ask("t-123") == ask("t-1234")
    assert ask("t-12")[0] == 0  # a whole id is not a shortened one
    assert ask("t-1") == (
        2,
        "",
        "wakeloop: 2 threads start with 't-1': t-1234, t-12. Type more of the id.\n",
    )
    assert ask("t-") == (
        2,
        "",
        "wakeloop: 3 threads start with 't-': t-5, t-1234, t-12. Type more of the id.\n",
    )
    assert ask("u")[:2] == (2, "")


@pytest.mark.slow
def test_resume_and_chat_take_the_last_thread(shell: Shell, serve: Any) -> None:
    none = shell("resume")
    told = f"wakeloop: No threads in '{shell.db}' yet; start one with wakeloop run.\n"
    assert (none.returncode, none.stdout, none.stderr) == (2, "", told)
    server = serve(*[Reply("hello")] * 4)
    for name in ("one", "two"):
        assert shell("run", name, "--model", "m", "--base-url", server.url, "--thread", name).returncode == 0
    gone_on = shell("resume")
    told = ["Answered without a list and without calling a tool.", nothing("two", shell.db)]
    assert gone_on.stdout.splitlines() == told
    assert shell("hold").returncode == 0
    assert "calling a tool" not in shell("resume").stdout  # nothing was asked
    talked = shell("chat", "-c", typed="more\n")
    assert talked.stdout.splitlines()[0] == "Thread two (m); .help lists the commands."
    assert len(json.loads(shell("show", "two", "--json", "--history").stdout)["history"]) == 4
    both = shell("chat", "-c", "--thread", "one")
    assert (both.returncode, both.stderr) == (
        2,
        "wakeloop: --continue takes the latest thread, --thread names one. Use only one of them.\n",
    )


BLOCKED = {"id": 2, "status": "blocked", "reason": "no key"}
WORKED = [
    calls(("todo_write", {"items": ["a", "b"]})),
    says("I stop"),
    calls(("todo_update", {"id": 1, "status": "done"}), ("todo_update", BLOCKED)),
    says("the answer"),
]
ALL = "Nothing to resume: the last run has ended and no item is open."


def nothing(name: str, db: Path) -> str:
    return f"{ALL} To give it a message: wakeloop resume {name} 'your message' --db {db}"


@pytest.mark.parametrize("manner", [[], ["--json"], ["--quiet"], ["--output", "stream-json"]], ids=str)
def test_a_resume_with_nothing_to_do_says_so_and_changes_nothing(db: Path, manner: list[str]) -> None:
    keep(db, "t-1", script=WORKED)
    before, count = wakeloop("show", "t-1", "--json", "--history")[1], rows(db, "t-1")
    code, out, err = wakeloop("resume", "t-1", *manner)  # its model "m" is nowhere
    told = f"{out}{err}".splitlines()
    assert (code, nothing("t-1", db) in told) == (3, True)  # an item is blocked
    if "json" in str(manner):
        final = json.loads(out)
        assert (final["wakes"], final["session"]["spent"]["requests"], final["error"]) == (1, 4, None)
    else:
        assert out.splitlines()[-1] == ("the answer" if manner else nothing("t-1", db))
    assert (wakeloop("show", "t-1", "--json", "--history")[1], rows(db, "t-1")) == (before, count)


def test_a_resume_with_nothing_to_do_keeps_no_setting_and_says_so(db: Path) -> None:
    keep(db, "t-1", script=WORKED)
    before = wakeloop("config", "t-1")
    unkept = f"{nothing('t-1', db)} The settings you gave were not saved; give them with the message."
    assert wakeloop("resume", "t-1", "--max-requests", "9")[1].splitlines()[-1] == unkept
    assert wakeloop("config", "t-1") == before


def test_a_resume_with_nothing_open_keeps_an_ending_other_than_success(db: Path) -> None:
    keep(db, "t-1", script=[says("")] * 5)
    before = json.loads(wakeloop("show", "t-1", "--json")[1])
    assert before["session"]["reason"] == "empty_reply"
    code, out, _ = wakeloop("resume", "t-1")
    assert (code, out.splitlines()[0]) == (1, "The model gave only empty replies; 0 open.")
    assert json.loads(wakeloop("show", "t-1", "--json")[1]) == before


def test_a_chat_with_nothing_to_continue_says_the_same(db: Path) -> None:
    keep(db, "t-1", script=WORKED)
    before, count = wakeloop("show", "t-1", "--json")[1], rows(db, "t-1")
    talked = wakeloop("chat", "-c", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", input=".resume\n")
    assert talked[::2] == (2, f"{ALL}\n")
    assert (wakeloop("show", "t-1", "--json")[1], rows(db, "t-1")) == (before, count)


def test_a_generated_id_may_be_shortened_even_where_a_new_one_may_be_named(shell: Shell, serve: Any) -> None:
    server = serve(Reply("hello"))
    keep(shell.db, "t-12345678", "mine")
    for named, meant in (("t-123", "Continuing thread t-12345678 (m)"), ("min", "Thread min (m)")):
        ran = shell("run", "x", "--model", "m", "--base-url", server.url, "--thread", named)
        assert ran.stdout.splitlines()[0] == meant


@pytest.mark.parametrize(
    ("typed", "meant", "asked"),
    [
        ("t-12345678", "t-12345678", ["t-12345678"]),
        ("new", "new", ["new"]),
        ("t-123", "t-12345678", ["t-123", None]),
        ("t-9", "t-9", ["t-9", None]),
    ],
)
def test_all_threads_are_read_only_if_an_id_may_be_shortened(
    db: Path, monkeypatch: pytest.MonkeyPatch, typed: str, meant: str, asked: list[str | None]
) -> None:
    keep(db, "t-12345678")
    seen: list[str | None] = []
    read = Store.threads

    def counted(store: Store, only: str | None = None) -> Sequence[ThreadRecord]:
        seen.append(only)
        return read(store, only)

    monkeypatch.setattr(Store, "threads", counted)
    assert (resolve_thread_option(DatabaseFile(db, named=True), typed)[0], seen) == (meant, asked)


# -- the list ---------------------------------------------------------------------------------------------


def test_the_list_has_the_last_message_and_an_idle_chat_does_not_run(db: Path) -> None:
    keep(db, "t-1", script=[calls(("todo_write", {"items": ["a", "b"]})), *[says("I stop")] * 7])
    with open_to_write(DatabaseFile(db, named=True)) as store, store.hold("t-1"):
        held = wakeloop("threads")[1].splitlines()
        row = json.loads(wakeloop("threads", "--json")[1])[0]
    assert held[0].split() == [
        "THREAD",
        "STATE",
        "OPEN",
        "REASON",
        "WAKES",
        "CHANGED",
        "REQUEST",
        "LAST",
        "MESSAGE",
    ]
    assert held[1].split()[:7] == ["t-1", "idle", "2", "of", "2", "stalled", "5"]
    assert held[1].endswith("  go t-1   I stop")
    assert (row["state"], row["request"], row["last"]) == ("idle", "go t-1", "I stop")


KEPT = ["t-12345678", "demo-12345678", "customer-4711"]
REQUEST = "Say which of the files in this folder are unexpectedly long, 東京の資料も全部"


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_thread_has_one_row_at_every_width(db: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Its state and its open items are in it, and it can be found by its name."""
    script = [
        calls(("todo_write", {"items": ["a", "b"]})),
        calls(("nothing", {})),
        calls(("todo_update", {"id": 1, "status": "blocked", "reason": "none"})),
        *[says("I stop here, 次に何をしますか教えてください")] * 7,
    ]
    keep(db, *KEPT, script=script, request=REQUEST)
    monkeypatch.setattr(show, "find_width", lambda _: width)
    head, *lines = wakeloop("threads")[1].splitlines()
    assert [count_columns(line) for line in lines if count_columns(line) > width] == []
    assert len(lines) == len(KEPT)
    for name, line in zip(reversed(KEPT), lines, strict=True):
        shown, _, rest = line.partition("  ")
        assert rest.split()[:4] == ["idle", "1", "of", "2"]
        assert wakeloop("show", shown)[1].splitlines()[0] == f"thread: {name}"
    assert head.split()[0] == "THREAD"


def states() -> list[str]:
    """Return the state of the one thread, as another process sees it."""
    ran = run_python(*PROGRAM, "threads", "--json")
    shown = run_python(*PROGRAM, "show", "broken")
    return [json.loads(ran.stdout)[0]["state"], shown.stdout.splitlines()[1].split(", ")[0]]


def test_a_chat_open_over_a_broken_run_does_not_run(db: Path) -> None:
    with suppress(KeyboardInterrupt):
        keep(db, "broken", script=[KeyboardInterrupt()])
    with open_to_write(DatabaseFile(db, named=True)) as store, store.hold("broken") as hold:
        assert states() == ["interrupted", "state: interrupted"]
        with hold.mark_running():
            assert states() == ["running", "state: running"]
        assert states() == ["interrupted", "state: interrupted"]


def test_failures_under_a_settled_list_are_in_the_list_of_threads(db: Path) -> None:
    keep(db, "t-1")
    assert "TROUBLE" not in wakeloop("threads")[1]
    keep(db, "t-2", script=[calls(("look", {})), *WORKED])
    head, failed, well = wakeloop("threads")[1].splitlines()
    database = head.index("TROUBLE")
    assert failed[database:].startswith("1 call failed, 1 item blocked  go t-2")
    assert well[database:].startswith(" " * 31 + "go t-1")
    counts = [(one["failed_calls"], one["blocked"]) for one in json.loads(wakeloop("threads", "--json")[1])]
    assert counts == [(1, 1), (0, 0)]
    page = wakeloop("report", "t-2", "-o", "-")[1]
    assert "<dt>Trouble</dt><dd>1 call failed, 1 item blocked</dd>" in page


# -- removed, renamed, exported ---------------------------------------------------------------------------


def rows(db: Path, name: str) -> int:
    with closing(sqlite3.connect(db)) as connection:
        tables = ("checkpoints", "writes", "wakeloop_threads")
        count = "SELECT COUNT(*) FROM {} WHERE thread_id = ?"
        return sum(connection.execute(count.format(table), [name]).fetchone()[0] for table in tables)


def test_threads_are_removed_completely_or_not_at_all(db: Path) -> None:
    keep(db, "t-1", "t-2", "t-3")
    assert wakeloop("rm", "t-1", "nobody")[0] == 2
    assert rows(db, "t-1") > 2
    with open_to_write(DatabaseFile(db, named=True)) as store, store.hold("t-1"):
        ran = run_python(*PROGRAM, "rm", "t-1")
        assert (ran.returncode, ran.stderr[:51]) == (
            1,
            "wakeloop: Another process is using the thread 't-1'",
        )
    assert wakeloop("rm", "t-1", "t-3", "t-1") == (0, "Removed t-1 (go t-1).\nRemoved t-3 (go t-3).\n", "")
    assert (rows(db, "t-1"), rows(db, "t-3")) == (0, 0)
    assert [one["thread"] for one in json.loads(wakeloop("threads", "--json")[1])] == ["t-2"]


def test_a_renamed_thread_has_the_same_content(db: Path) -> None:
    keep(db, "t-1", "t-2")
    before, count = json.loads(wakeloop("show", "t-1", "--json", "--history")[1]), rows(db, "t-1")
    assert wakeloop("rename", "t-1", "notes") == (0, "Renamed t-1 to notes.\n", "")
    assert (rows(db, "t-1"), rows(db, "notes")) == (0, count)
    assert json.loads(wakeloop("show", "notes", "--json", "--history")[1]) == before | {"thread": "notes"}
    taken = (2, "", "wakeloop: The thread 't-2' already exists: choose another name.\n")
    assert wakeloop("rename", "notes", "t-2") == taken == wakeloop("rename", "t-2", "t-2")
    assert wakeloop("rename", "notes", "a b")[0] == 2


def test_a_servers_session_is_kept(db: Path) -> None:
    """And with it a thread that is named before it."""
    keep(db, "t-0", "t-1")
    with closing(sqlite3.connect(f"{db}-sessions")) as events, events:
        events.execute("CREATE TABLE wakeloop_events (thread)")
        events.execute("INSERT INTO wakeloop_events VALUES ('t-1')")
    told = "wakeloop: The thread 't-1' is a session of wakeloop serve and cannot be removed or renamed.\n"
    assert wakeloop("rm", "t-0", "t-1") == wakeloop("rename", "t-1", "b") == (2, "", told)
    assert min(rows(db, "t-0"), rows(db, "t-1")) > 2


def test_a_thread_is_exported(db: Path, tmp_path: Path) -> None:
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
    assert lines[2].startswith("dormant (blocked), changed 20")
    assert lines[4:12] == [
        "## List: 1/2 closed, 1 blocked",
        "",
        "- [x] 1 a",
        "- [!] 2 ```b (blocked: no)",
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
        f"wakeloop: The file '{file}' already exists. Name another one with -o, or add --force.\n",
    )
    file.write_text("mine")
    assert wakeloop("export", "t-1", "-o", str(file), "--force") == (0, f"{file}\n", "")
    assert file.read_text() == out
    whole = wakeloop("show", "t-1", "--json", "--history")[1]
    assert wakeloop("export", "t-1", "--json") == (0, whole, "")


SECRETS = ("sk-0123456789abcdef", "ghp_0123456789abcdef", "hunter2", "of-the-environment")
LOOKED_AT = [
    ["export", "t-1"],
    ["export", "t-1", "--json"],
    ["show", "t-1"],
    ["show", "t-1", "--history"],
    ["show", "t-1", "--history", "--json"],
    ["report", "t-1", "-o", "-"],
    ["todo", "t-1", "list"],
    ["threads"],
    ["threads", "--json"],
]


@pytest.mark.parametrize("command", LOOKED_AT, ids=" ".join)
def test_nothing_that_looks_like_a_secret_leaves(
    db: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRETS[3])
    told = f"use {SECRETS[0]}, TOKEN={SECRETS[1]} or {SECRETS[3]}"
    told += f" https://a:{SECRETS[2]}@host Cookie: a={SECRETS[2]}; b={SECRETS[2]}"
    script = [
        calls(("todo_write", {"items": [told]})),
        calls(("todo_update", {"id": 1, "status": "blocked", "reason": told})),
        calls(("look", {"Cookie": SECRETS[2], "at": told})),
        says(told),
    ]
    keep(db, "t-1", script=script, request=told)
    code, out, err = wakeloop(*command)
    assert (code, err) == (0, "")
    assert "use …, TOKEN=… or …" in out.replace("\\u2026", "…")
    assert [secret for secret in SECRETS if secret in out] == []


# -- failures ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_failed_first_attempt_leaves_no_thread(shell: Shell, serve: Any) -> None:
    server = serve(Reply(status=401), PLAN, Reply(status=401))
    args = ("run", "x", "--model", "m", "--base-url", server.url)
    failed = shell(*args)
    assert (failed.returncode, failed.stderr.splitlines()[1]) == (
        1,
        "No thread was created, since nothing was answered. Once that is solved, run the command again.",
    )
    assert json.loads(shell("threads", "--json").stdout) == []
    failed = shell(*args, "--thread", "mine")  # a second request fails: what was answered is kept
    assert failed.stderr.splitlines()[1] == f"To try again: wakeloop resume mine --db {shell.db}"
    assert [one["thread"] for one in json.loads(shell("threads", "--json").stdout)] == ["mine"]
    down = shell("run", "x", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--thread", "other")
    assert (down.returncode, rows(shell.db, "other")) == (1, 0)


def test_a_failed_chat_leaves_no_thread(shell: Shell, serve: Any) -> None:
    server = serve(Reply(status=401), Reply("hello"), Reply(status=401))
    args = ("chat", "--model", "m", "--base-url", server.url, "--thread")
    failed = shell(*args, "vain", typed="hello\n")
    assert (failed.returncode, rows(shell.db, "vain")) == (1, 0)
    failed = shell(*args, "kept", typed="hello\nmore\n")
    assert failed.returncode == 1
    assert [one["thread"] for one in json.loads(shell("threads", "--json").stdout)] == ["kept"]


def test_two_runs_at_once_are_reported_in_plain_words() -> None:
    from wakeloop.cli.failures import FAILED, error_exit_code, format_error
    from wakeloop.errors import ConcurrentRunError

    assert format_error(ConcurrentRunError("t", "1", "2")) == (
        "Two runs wrote to the thread 't' at the same time: this one, up to checkpoint 1, and another "
        "run or a manual edit, which wrote checkpoint 2. Let only one program use a thread at a time, "
        "then resume it."
    )
    assert error_exit_code(ConcurrentRunError("t", "1", "2")) == FAILED


def test_a_demo_without_its_report_fails(shell: Shell) -> None:
    (shell.folder / "a.py").write_text("x = 1\n")
    (shell.folder / "wakeloop-report.md").mkdir()  # in its place
    done = shell("demo", ".")
    assert done.returncode == 1
    told = [line for line in done.stdout.splitlines() if line.startswith("The report could not be written: ")]
    assert told == [
        "The report could not be written: 'wakeloop-report.md' is a folder, not a file; list_files lists it."
    ]


@pytest.mark.slow
def test_without_room_no_half_file_is_left_and_the_old_one_stays(db: Path, tmp_path: Path) -> None:
    keep(db, "t-1", script=[says("long " * 20_000)], request="long " * 20_000)
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "page.html").write_text("mine")
    limited = ["sh", "-c", 'ulimit -f 80; exec "$@"', "sh", *COMMAND]  # blocks of 512 bytes
    for command in (["export", "t-1", "-o", "t.md"], ["report", "t-1", "--force", "-o", "page.html"]):
        ran = subprocess.run([*limited, *command], cwd=folder, capture_output=True, text=True, check=False)
        told = f"wakeloop: Cannot write the file '{command[-1]}': File too large.\n"
        assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", told)
    assert {file.name: file.read_text() for file in folder.iterdir()} == {"page.html": "mine"}


@pytest.mark.parametrize("command", ["export", "report"])
def test_the_output_is_appended_to_and_not_replaced(db: Path, tmp_path: Path, command: str) -> None:
    keep(db, "t-1")
    kept = tmp_path / "kept"
    kept.write_text("before\n")
    with kept.open("a") as out:
        ran = run_python(*PROGRAM, command, "-o", "-", stdout=out, cwd=tmp_path)
    told = wakeloop(command, "-o", "-")[1]
    made = re.compile(r"Made [^<]+ from")  # a minute may pass
    assert (ran.returncode, made.sub("", kept.read_text())) == (0, f"before\n{made.sub('', told)}")
    assert told.startswith("# Thread t-1\n" if command == "export" else "<!doctype html>\n")
    assert not (tmp_path / "-").exists()


def test_a_replaced_file_keeps_its_permissions(db: Path, tmp_path: Path) -> None:
    keep(db, "t-1")
    page = tmp_path / ("🎉" * 60 + ".html")  # 245 bytes of 255
    page.write_text("mine")
    page.chmod(0o640)
    assert wakeloop("report", "t-1", "-o", str(page), "--force")[0] == 0
    assert S_IMODE(page.stat().st_mode) == 0o640
    assert page.read_text().startswith("<!doctype html>")
    assert wakeloop("export", "-o", "/dev/null")[::2] == (0, "")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/dev/full is Linux's")
def test_an_output_on_a_full_disk_leaves_the_thread_intact(shell: Shell, serve: Any) -> None:
    server = serve(PLAN, DONE, BYE)
    (shell.folder / "a.py").write_text("x = 1\n")
    with open("/dev/full", "w") as full:  # noqa: PTH123
        failed = shell("run", "x", "--model", "m", "--base-url", server.url, "--thread", "t", stdout=full)
        listed = shell("threads", stdout=full)
        others = [shell(*command, stdout=full) for command in (["--help"], ["--version"], ["demo", "."])]
    told = "wakeloop: The disk that the output goes to is full: free some space, then resume.\n"
    assert (listed.returncode, listed.stderr) == (1, told)
    kept = "No thread was created, since nothing was answered. Once that is solved, run the command again.\n"
    assert [(one.returncode, one.stderr) for one in (failed, others[2])] == [(1, told + kept)] * 2
    assert [(one.returncode, one.stderr) for one in others[:2]] == [(1, told)] * 2
    assert json.loads(shell("threads", "--json").stdout) == []
    assert sqlite3.connect(shell.db).execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_full_database_is_reported_as_a_full_disk(shell: Shell, serve: Any) -> None:
    """SQLite says the same of a database that may have no more pages as of a full disk."""
    server = serve(PLAN, DONE, BYE)
    assert shell("run", "x", "--model", "m", "--base-url", server.url, "--thread", "t").returncode == 0
    code = (
        "import sqlite3, sys\n"
        "from wakeloop.cli import store\n"
        "from wakeloop.platform import outages\n"
        "outages.PATIENCE = 0.5\n"
        "def connected(database, mode, before=store.connect, **more):\n"
        "    made = before(database, mode, **more)\n"
        "    [(pages,)] = made.execute('PRAGMA page_count')\n"
        "    made.execute(f'PRAGMA max_page_count = {pages}')\n"
        "    return made\n"
        "store.connect = connected\n"
        "from wakeloop.cli.commands.app import main\n"
        "main()\n"
    )
    ran = run_python("-c", code, "resume", "t", "again " * 20_000, env=shell.env, cwd=shell.folder)
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[:2] == [
        "The database cannot be used: its disk is full. Trying again.",
        "wakeloop: The disk that holds the database is full: free some space, then resume.",
    ]
    shown = json.loads(shell("show", "t", "--json").stdout)
    assert (shown["session"]["state"], shown["answer"]) == ("dormant", "bye")


FILLS_THE_DISK = """
import pathlib, resource, threading
from langchain_core.tools import tool

@tool
def fill() -> str:
    \"\"\"Fill the disk, as another program would, which frees it after two seconds.\"\"\"
    with pathlib.Path("ran").open("a") as file:
        file.write("x")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    threading.Timer(2, resource.setrlimit, (resource.RLIMIT_FSIZE, before)).start()
    return "filled"
"""


@pytest.mark.slow
def test_c82_a_disk_that_is_full_for_seconds_costs_no_call(shell: Shell, serve: Any) -> None:
    server = serve(Reply(calls=[("fill", {})]), BYE)
    (shell.folder / "filling.py").write_text(FILLS_THE_DISK)
    ran = shell("run", "x", "--model", "m", "--base-url", server.url, "--tools", "filling:fill", "-q")
    full = "The database cannot be used: its disk is full. Trying again.\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "bye\n", full)
    assert (shell.folder / "ran").read_text() == "x"


IN_A_FULL_FOLDER = """
import json, resource, sys
from typer.testing import CliRunner
from wakeloop.cli.commands.app import app
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))  # as on a disk without room: no file may grow
for words in json.loads(sys.argv[1]):
    ran = CliRunner().invoke(app, words)
    print(json.dumps([ran.exit_code, ran.stdout, ran.stderr]))
"""


def without_minute(look: list[Any]) -> list[Any]:
    """Return a command's exit code, output and errors, without the minute in which a page was made."""
    code, output, errors = look
    return [code, re.sub(r"Made \d{4}-\d\d-\d\d \d\d:\d\d UTC", "Made", output), errors]


def test_on_a_full_disk_a_thread_can_still_be_read(db: Path) -> None:
    """SQLite needs room next to its file even to read; a command that only looks does not."""
    keep(db, "t")
    looks = [["show", "t"], ["threads"], ["export", "t"], ["report", "t", "-o", "-"], ["todo", "t", "list"]]
    writes = [["todo", "t", "add", "x"], ["rm", "t"], ["rename", "t", "u"], ["demo", "."], ["ps"]]
    (db.parent / "a.md").write_text("# A\n")
    before = [[*wakeloop(*words)] for words in looks]
    ran = run_python("-c", IN_A_FULL_FOLDER, json.dumps(looks + writes), cwd=db.parent)
    assert (ran.returncode, ran.stderr) == (0, "")
    told = [*map(json.loads, ran.stdout.splitlines())]
    assert [without_minute(look) for look in told[: len(looks)]] == [without_minute(look) for look in before]
    full = f"wakeloop: The disk that holds the database {str(db)!r} is full: free some space, then resume.\n"
    assert told[len(looks) :] == [[1, "", full]] * len(writes)


def test_where_no_file_can_be_made_next_to_it_a_thread_can_still_be_read(db: Path) -> None:
    """As on a read-only file system."""
    keep(db, "t")
    looked = wakeloop("show", "t")
    Path(f"{db}-shm").unlink(missing_ok=True)
    Path(f"{db}-shm").symlink_to("/nowhere/x")
    assert wakeloop("show", "t") == looked
    assert wakeloop("todo", "t", "add", "x")[:2] == (1, "")


def test_a_closed_terminal_leaves_the_thread_intact(shell: Shell, serve: Any) -> None:
    import pty

    asked: list[int] = []

    def slow(number: int, _: Any) -> Reply:
        asked.append(number)
        return PLAN if number == 1 else Reply("bye", delay=3) if number == 2 else DONE

    server = serve(script=slow)
    master, terminal = pty.openpty()
    args = ["run", "x", "--model", "m", "--base-url", server.url, "--thread", "t"]
    with shell.start(*args, terminal=terminal) as ran:
        os.close(terminal)
        until(lambda: asked[1:], ran)
        os.close(master)
        ran.wait(timeout=30)
    shown = json.loads(shell("show", "t", "--json").stdout)
    assert [todo["content"] for todo in shown["todos"]] == ["a"]
    assert sqlite3.connect(shell.db).execute("PRAGMA integrity_check").fetchall() == [("ok",)]
