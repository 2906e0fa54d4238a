"""Task folders of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from solving import laid_out, play

from wakeloop.bench.folders import load
from wakeloop.bench.task import Check, damage, is_complete, share_of
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
    [task] = load(folder(tmp_path))
    assert (task.family, task.parts, task.prompt) == ("copy", 1, "Copy a.txt to b.txt and say where it is.")
    tools = laid_out(task, tmp_path / "world")
    asleep = task.checks(tmp_path / "world", "")
    assert asleep == [Check("a.txt", True, kept=True), Check("b.txt", False), Check("says b.txt", False)]
    assert share_of(asleep) == 0
    assert [play(tools, step.calls) for step in task.steps] == [[]]
    done = task.checks(tmp_path / "world", task.final)
    assert is_complete(done)
    assert play(tools, task.spoils) == []
    assert damage(done, task.checks(tmp_path / "world", task.final)) == ["a.txt"]


def test_a_folder_of_folders_is_tasks_in_order_and_an_exit_code_is_a_check(tmp_path: Path) -> None:
    folder(tmp_path, "prompt: b\ncheck: ['false']\n", None, "b")
    folder(tmp_path, "prompt: a\ncheck: ['true']\ntools: programs\n", None, "a")
    tasks = load(tmp_path)
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
def test_an_exit_code_counts_where_no_line_explains_it(
    tmp_path: Path, said: str, found: list[tuple[str, bool]]
) -> None:
    [task] = load(folder(tmp_path, "prompt: x\n", said))
    assert [(check.name, check.passed) for check in task.check(tmp_path)] == found


@pytest.mark.parametrize(
    ("sheet", "check", "told"),
    [
        ("promt: x\n", CHECK, "task.yaml: prompt: Field required"),
        (
            "prompt: x\npart: 3\n",
            CHECK,
            "line 2: part: Extra inputs are not permitted; did you mean 'parts'?",
        ),
        ("prompt: x\nparts: many\n", CHECK, "line 2: parts: Input should be a valid integer"),
        ("prompt: x\ncheck: []\n", None, "line 2: check: List should have at least 1 item"),
        ("prompt: x\n", None, "has no check: put a check.py beside task.yaml, or a command under `check`."),
    ],
)
def test_a_wrong_folder_gets_one_sentence(tmp_path: Path, sheet: str, check: str | None, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(folder(tmp_path, sheet, check))
    assert told in str(caught.value)


def test_no_task_and_a_check_that_cannot_be_run_get_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"holds no task: put a task\.yaml into it"):
        load(tmp_path)
    [task] = load(folder(tmp_path, "prompt: x\ncheck: [no-such-command]\n", None))
    with pytest.raises(SettingsError, match=r"The check of .*copy could not be run"):
        task.check(tmp_path)
