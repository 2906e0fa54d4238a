"""Task folders of the user's own."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from bench_solver import laid_out, play
from processes import is_gone

from wakeloop.bench import task_folders
from wakeloop.bench.task import Check, find_damage, is_complete, share_of
from wakeloop.bench.task_folders import check_tasks, load_tasks
from wakeloop.errors import SettingsError

SHEET = """\
prompt: Copy a.txt to b.txt and say where it is.
parts: 1
says: [b.txt]
steps:
  - label: copy
    calls:
      - [write_file, {path: b.txt, content: hello}]
spoils:
  - [delete_file, {path: a.txt}]
"""
CHECK = """\
from pathlib import Path
import sys
assert Path(sys.argv[-1], "task.yaml").is_file()
for name in ("a.txt", "b.txt"):
    path = Path(name)
    print("ok" if path.is_file() and path.read_text() == "hello" else "not ok", name)
"""


def folder(root: Path, sheet: str = SHEET, check: str | None = CHECK, name: str = "copy") -> Path:
    made = root / name
    (made / "files").mkdir(parents=True)
    (made / "files" / "a.txt").write_text("hello")
    (made / "task.yaml").write_text(sheet)
    if check is not None:
        (made / "check.py").write_text(check)
    return made


def test_a_folder_is_a_task(tmp_path: Path) -> None:
    [task] = load_tasks(folder(tmp_path))
    assert (task.family, task.parts, task.prompt) == ("copy", 1, "Copy a.txt to b.txt and say where it is.")
    tools = laid_out(task, tmp_path / "world")
    asleep = task.checks(tmp_path / "world", "")
    assert asleep == [Check("a.txt", True, kept=True), Check("b.txt", False), Check("says b.txt", False)]
    assert share_of(asleep) == 0
    assert [play(tools, step.calls) for step in task.steps] == [[]]
    done = task.checks(tmp_path / "world", task.final)
    assert is_complete(done)
    assert play(tools, task.spoils) == []
    assert find_damage(done, task.checks(tmp_path / "world", task.final)) == ["a.txt"]


def test_a_folder_of_folders_is_tasks_in_order_and_an_exit_code_is_a_check(tmp_path: Path) -> None:
    folder(tmp_path, "prompt: b\ncheck: ['false']\n", None, "b")
    folder(tmp_path, "prompt: a\ncheck: ['true']\ntools: programs\n", None, "a")
    tasks = load_tasks(tmp_path)
    assert [task.family for task in tasks] == ["a", "b"]
    assert [task.check(tmp_path) for task in tasks] == [
        [Check("the check", True, kept=True)],
        [Check("the check", False)],
    ]
    assert [len(task.tools(tmp_path)) for task in tasks] == [8, 7]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("print('ok a'); open('b')", [("a", True), ("the check", False)]),  # it broke off: more was to come
        ("print('not ok a'); raise SystemExit(1)", [("a", False)]),
        ("print('ok a'); raise SystemExit(0)", [("a", True)]),
        ("raise SystemExit(3)", [("the check", False)]),
        ("", [("the check", True)]),
    ],
)
def test_an_exit_code_counts_if_no_line_explains_it(
    tmp_path: Path, said: str, found: list[tuple[str, bool]]
) -> None:
    [task] = load_tasks(folder(tmp_path, "prompt: x\n", said))
    assert [(check.name, check.passed) for check in task.check(tmp_path)] == found


@pytest.mark.parametrize(
    ("sheet", "check", "told"),
    [
        ("promt: x\n", CHECK, "task.yaml: prompt: Field required"),
        (
            "prompt: x\npart: 3\n",
            CHECK,
            "line 2: unknown key 'part'. Did you mean 'parts'?",
        ),
        ("prompt: x\nparts: many\n", CHECK, "line 2: parts: Input should be a valid integer"),
        ("prompt: x\ncheck: []\n", None, "line 2: check: List should have at least 1 item"),
        ("prompt: x\n", None, "has no check: add a check.py next to task.yaml, or a command under `check`."),
    ],
)
def test_a_wrong_folder_gets_one_sentence(tmp_path: Path, sheet: str, check: str | None, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_tasks(folder(tmp_path, sheet, check))
    assert told in str(caught.value)


def test_no_task_and_a_check_that_cannot_be_run_get_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"has no task: add a task\.yaml to it"):
        load_tasks(tmp_path)
    [task] = load_tasks(folder(tmp_path, "prompt: x\ncheck: [no-such-command]\n", None))
    with pytest.raises(SettingsError, match=r"The check of .*copy could not be run"):
        task.check(tmp_path)


# -- folders that show nothing, and checks that do what they should not -----------------------------------


HELD = (
    "The checks of {folder} all hold before any work, so they show nothing. Fix them, or "
    "set `parts: 0` if there is nothing to do."
)
KEPT = (
    "The check of {folder} writes into its own folder, where the next run finds it. Let it write into "
    "its working directory."
)
UNDONE = "The steps of {folder} do not complete it: "


@pytest.mark.parametrize(
    ("sheet", "check", "told"),
    [
        (
            SHEET.replace("says: [b.txt]\n", ""),
            "print('ok a'); print('ok b')",
            HELD,
        ),
        (SHEET, CHECK.replace('"b.txt"', '"c.txt"'), UNDONE + "'c.txt' fails after them."),
        (
            SHEET.replace("write_file", "write_fil"),
            CHECK,
            UNDONE + "'b.txt' fails after them (there is no tool 'write_fil').",
        ),
        (
            SHEET.replace("write_file, {path: b.txt", "append_file, {path: files/../../b.txt"),
            CHECK,
            UNDONE + "'b.txt' fails after them (append_file: 'files/../../b.txt' leads outside the folder;"
            " only paths inside it are allowed).",
        ),
        (
            SHEET,
            "open('b.txt'); ok()",
            UNDONE + "'the check' fails after them (NameError: name 'ok' is not defined).",
        ),
        (
            SHEET,
            CHECK + "Path(sys.argv[-1], 'log').open('a').write('looked')",
            KEPT,
        ),
        (SHEET, "import time; time.sleep(60)", "The check of {folder} did not end within 1 second."),
        (SHEET, "import os; os.kill(os.getpid(), 11)", "The check of {folder} was ended by signal 11."),
        (
            SHEET,
            "print('ok a'",
            "{folder}/check.py is not valid Python: '(' was never closed (check.py, line 1).",
        ),
    ],
    ids=["held", "undone", "no tool", "refused", "raised", "kept", "hung", "signal", "no program"],
)
def test_a_task_that_shows_nothing_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sheet: str, check: str, told: str
) -> None:
    if "sleep" in check:
        monkeypatch.setattr(task_folders, "SECONDS", 1)
    made = folder(tmp_path, sheet, check)
    with pytest.raises(SettingsError) as caught:
        check_tasks(made)
    assert str(caught.value) == told.format(folder=made)


def test_where_nothing_is_to_be_done_everything_may_hold(tmp_path: Path) -> None:
    check_tasks(folder(tmp_path, "prompt: Leave it.\nparts: 0\n", "print('ok a')", "still"))
    check_tasks(folder(tmp_path, SHEET))
    check_tasks(tmp_path)


def test_files_and_processes_of_a_check_are_gone_with_it(tmp_path: Path) -> None:
    made = folder(
        tmp_path,
        "prompt: x\n",
        "import subprocess, sys, tempfile\n"
        "left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open('a.txt', 'w').write('by the check'); open('new.txt', 'w')\n"
        "held = tempfile.mkdtemp()\n"
        "print('ok', left.pid, held)\n",
    )
    [task] = load_tasks(made)
    world = tmp_path / "world"
    task.lay_out(world)
    [check] = task.check(world)
    pid, temporary = check.name.split()
    assert is_gone(int(pid))
    assert not Path(temporary).exists()
    assert {path.name: path.read_text() for path in world.iterdir()} == {"a.txt": "hello"}
    assert sorted(path.name for path in made.iterdir()) == ["check.py", "files", "task.yaml"]


def test_anything_but_a_file_in_a_world_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "import os; print('ok', *sorted(os.listdir()), *sorted(os.listdir('sub')))"
    [task] = load_tasks(folder(tmp_path, "prompt: x\n", said))
    world = tmp_path / "world"
    (world / "sub").mkdir(parents=True)
    (world / "a.txt").write_text("hello")
    (world / "closed").write_text("closed")
    (world / "closed").chmod(0)
    (world / "nowhere").symlink_to("gone")
    (world / "sub" / "loop").symlink_to("..")
    os.mkfifo(world / "pipe")
    monkeypatch.chdir(world)  # a socket's name must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        [check] = task.check.run(world)  # type: ignore[attr-defined]
    closed = "closed " if os.geteuid() == 0 else ""  # nothing is closed to root
    assert check == (f"a.txt {closed}nowhere sub loop", True)


def test_a_checks_output_is_put_into_no_file(tmp_path: Path) -> None:
    said = (
        "import os, stat\n"
        "for out in (1, 2):\n"
        "    os.write(out, b'x' * 3_000_000)\n"
        "    print('\\nok' if stat.S_ISFIFO(os.fstat(out).st_mode) else '\\nnot ok', out)\n"
    )
    [task] = load_tasks(folder(tmp_path, "prompt: x\n", said))
    assert task.check.run(tmp_path) == [("1", True), ("2", True)]  # type: ignore[attr-defined]
