"""Families of programs: judged by running them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from bench_solver import hold_to_account, laid_out, play
from processes import is_gone

from wakeloop.bench.families import FAMILIES
from wakeloop.bench.family_builder import read_text, write_call
from wakeloop.bench.task import Call, answers_match, is_complete, program_tools

PROGRAMS = [name for name, family in FAMILIES.items() if family.make(0, 1).tools is program_tools]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("seed", "parts"), [(0, 1), (1, 5), (2, 5), (0, 20), (0, 60)])
def test_a_solver_gets_full_marks_and_a_do_nothing_none(
    name: str, seed: int, parts: int, tmp_path: Path
) -> None:
    hold_to_account(FAMILIES[name], FAMILIES[name].make(seed, parts), tmp_path / "w")


def test_another_correct_program_passes_and_a_wrong_one_does_not() -> None:
    cases = (("solve([3, 1])", "4"),)
    assert answers_match(
        "def solve(xs):\n    total = 0\n    for x in xs: total += x\n    return total", cases
    )
    assert not answers_match("def solve(xs):\n    return 0", cases)
    assert not answers_match("def solve(xs", cases)
    assert not answers_match("raise SystemExit(0)", cases)
    assert not answers_match("print('right')", cases)
    assert answers_match("print('hm', end='')\ndef solve(xs): return sum(xs)", cases)


def test_its_tests_fail_before_the_work_and_pass_after_it(tmp_path: Path) -> None:
    task = FAMILIES["mend-program"].make(1, 1)
    tools = laid_out(task, tmp_path / "w")
    test = {"path": next(path for path in task.files if path.startswith("tests/"))}
    assert "AssertionError" in tools["run_python"].invoke(test)
    assert play(tools, task.steps[0].calls) == []
    assert tools["run_python"].invoke(test) == "Exit code 0.\nok\n"
    assert play(tools, (Call("run_python", {"path": "none.py"}),)) == [
        "There is no 'none.py' in the folder; list_files shows what there is."
    ]


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("mend-program", lambda text, tests: by_heart(tests)),
        ("rename-function", lambda text, tests: f"{text}\nsecond = answer\n"),
        ("guard-program", lambda text, tests: text.replace("xs[0] *", "sum(xs) *")),
    ],
)
def test_unchanged_and_hidden_parts_are_checked(
    name: str, broken: Callable[[str, str], str], tmp_path: Path
) -> None:
    task = FAMILIES[name].make(1, 1)
    tools = laid_out(task, tmp_path / "w")
    [call] = task.steps[0].calls
    play(tools, (call,))
    assert is_complete(task.checks(tmp_path / "w", task.final))
    tests = next((text for path, text in task.files.items() if path.startswith("tests/")), "")
    play(tools, (write_call(call.args["path"], broken(call.args["content"], tests)),))
    assert not is_complete(task.checks(tmp_path / "w", task.final))


def by_heart(tests: str) -> str:
    """Return a program that answers only what the visible tests ask."""
    known = re.findall(r"assert solve\((.*)\) == (.*)", tests)
    return "".join(
        ["def solve(xs):\n", *(f"    if xs == {asked}: return {answer}\n" for asked, answer in known)]
    )


def test_a_programs_processes_are_gone_with_it(tmp_path: Path) -> None:
    tools = {tool.name: tool for tool in program_tools(tmp_path)}
    (tmp_path / "a.py").write_text(
        "import subprocess, sys\n"
        "left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(left.pid)\n"
    )
    said = tools["run_python"].invoke({"path": "a.py"})
    assert said.startswith("Exit code 0.\n")
    assert is_gone(int(said.split()[-1]))


def test_a_programs_output_is_put_into_no_file_and_its_end_is_shown(tmp_path: Path) -> None:
    tools = {tool.name: tool for tool in program_tools(tmp_path)}
    (tmp_path / "a.py").write_text(
        "import os, stat\nprint('x' * 3_000_000)\nprint(stat.S_ISFIFO(os.fstat(1).st_mode))\n"
    )
    assert tools["run_python"].invoke({"path": "a.py"}).endswith("x\nTrue\n")


@pytest.mark.timeout(10)
def test_a_pipe_is_not_a_file_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    assert read_text(tmp_path, "a.txt") is None
