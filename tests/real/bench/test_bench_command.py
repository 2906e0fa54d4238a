"""The command, in this process: estimate, run, report, profile; custom tasks; error sentences."""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
from errno import ENOSPC
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from processes import wakeloop
from rows import STUDY

from wakeloop.bench import journal
from wakeloop.bench.runner import play_study
from wakeloop.cli.bench_study import confirm_start, select_study
from wakeloop.errors import BenchError
from wakeloop.settings import LoopSettings

SHEET = """\
prompt: Copy a.txt to b.txt.
steps:
  - label: copy
    calls:
      - [write_file, {path: b.txt, content: hello}]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


SMALL = ("bench", "--model", "weak:stop=0.3", "--task", "make-files:5", "--seeds", "2", "--workers", "1")
TWO = ("--agent", "plain", "--agent", "wakeloop")


def test_estimate_runs_nothing(tmp_path: Path) -> None:
    code, out, _ = wakeloop(*SMALL, *TWO, "--estimate")
    assert code == 0
    assert out.splitlines()[0].startswith("4 cells, with a model that never stops early")
    assert "26 requests, at most 600" in out  # 6 each by the plain agent, 7 by ours
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_estimate_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    code, out, err = wakeloop(*SMALL, *TWO, "--model", "openai:gpt-5-mini", "--estimate")
    assert (code, err) == (0, "")
    assert "\n  cost $" in out  # the public prices of this model
    assert " if the server has no cache\n" in out
    code, out, _ = wakeloop(*SMALL, *TWO, "--model", "nobody@http://127.0.0.1:1/v1", "--estimate")
    assert "(tokens of input: a cached one is a tenth, one of output eight; no --prices are known)" in out
    code, out, _ = wakeloop(*SMALL, *TWO, "--prices", "1,0.1,4", "--estimate")
    assert "tokens of input" not in out


@pytest.mark.parametrize(("answer", "starts"), [("y\n", True), ("\n", False), ("", False)])
def test_at_a_terminal_many_cells_are_asked_about(
    answer: str,
    starts: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    quick = select_study("quick", None, None)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    told = "96 cells. With --estimate this command says what they may cost."
    assert confirm_start(quick, tmp_path)  # nobody is there to ask
    assert capsys.readouterr().err == f"{told}\n"
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert confirm_start(quick.with_changes(tasks=["one-file"], seeds=1), tmp_path)
    assert confirm_start(quick, tmp_path) is starts
    assert capsys.readouterr().err == f"{told} Start? [y/N] "


def test_run_report_and_profile(tmp_path: Path) -> None:
    code, _, err = wakeloop(*SMALL, *TWO, "--seeds", "5", "--out", "mine", "--prices", "1,0.1,4")
    told = err.splitlines()
    assert (code, told[-6], told[-1]) == (
        *(0, "10 of 10 cells are in mine/cells.jsonl"),
        "Its tables: wakeloop bench report mine",
    )
    assert told[-2].startswith("wakeloop completes 100% for $0.0")
    assert told[-2].endswith(": too few runs to tell.")
    code, out, _ = wakeloop("bench", "report", "mine")
    assert code == 0
    assert "Prices per million tokens: input 1, cached 0.1, output 4." in out
    code, said, _ = wakeloop("bench", "report", "mine", "--page", "page.md")
    assert (code, said) == (0, "page.md\n")
    assert Path("page.md").read_text() == out
    code, out, _ = wakeloop("bench", "profile", "mine")
    assert (code, out.splitlines()[-1]) == (0, "Wrote wakeloop-profile.json.")
    assert out.startswith("weak:stop=0.3, any: on (completed: off ")
    assert "\nweak:stop=0.3, 5: on (completed: off " in out
    assert LoopSettings.for_model("weak:stop=0.3", 5) == LoopSettings()


def test_reaching_the_cost_limit_is_not_success() -> None:
    code, _, err = wakeloop(*SMALL, *TWO, "--out", "mine", "--max-cost", "1")
    assert code == 1
    assert re.match(r"1 of 4 cells, \d+ seconds? left, cost 1,980 tokens, 5,940 tokens left\n", err)
    assert "1 of 4 cells is in mine/cells.jsonl; the cost of 1 is reached" in err
    assert "No verdict on weak:stop=0.3 yet: no job was finished by every agent." in err
    assert "Run the same command again to continue" in err


def test_a_run_that_the_cost_limit_ends_has_a_partial_verdict() -> None:
    code, _, err = wakeloop(*SMALL, *TWO, "--out", "mine", "--max-cost", "2000")
    assert code == 1
    saved, verdict, hint = err.splitlines()[-3:]
    assert saved == "2 of 4 cells are in mine/cells.jsonl; the cost of 2000 is reached"
    assert verdict.startswith("Partial verdict on weak:stop=0.3, 1 run per agent: ")
    assert hint.startswith("Run the same command again to continue")


def test_a_full_disk_and_a_concurrent_run_are_one_sentence_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = (*SMALL, *TWO, "--out", "mine")
    mine = tmp_path / "mine" / "cells.jsonl"

    def fsync(file: int) -> None:
        of_the_run = mine.exists() and os.path.samestat(os.fstat(file), mine.stat())
        if of_the_run and mine.read_bytes().count(b"\n") > 3:  # the head, and two cells
            raise OSError(ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(journal.os, "fsync", fsync)
        code, out, err = wakeloop(*command)
    assert (code, out, err.splitlines()[-1]) == (
        *(1, ""),
        "wakeloop: The disk that holds 'mine/cells.jsonl' is full: free some space, then resume.",
    )
    rows = journal.read_journal(tmp_path / "mine" / "cells.jsonl")[1]
    with (tmp_path / "mine" / "cells.jsonl").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        code, out, err = wakeloop(*command)
    assert (code, out, err) == (
        *(2, ""),
        "wakeloop: Another run is writing mine/cells.jsonl: wait for it, or use another --out.\n",
    )
    assert wakeloop(*command)[0] == 0
    assert journal.read_journal(tmp_path / "mine" / "cells.jsonl")[1][: len(rows)] == rows


def test_custom_tasks(tmp_path: Path) -> None:
    task = tmp_path / "tasks" / "copy"
    (task / "files").mkdir(parents=True)
    (task / "files" / "a.txt").write_text("hello")
    (task / "task.yaml").write_text(SHEET)
    (task / "check.py").write_text(
        "from pathlib import Path; print('ok' if Path('b.txt').is_file() else 'not ok', 'b')"
    )
    code, _, err = wakeloop(
        "bench", "--model", "weak", "--task", "tasks", "--seeds", "1", "--workers", "1", *TWO, "--out", "mine"
    )
    assert code == 0, err
    rows = [json.loads(line) for line in (tmp_path / "mine" / "cells.jsonl").read_text().splitlines()[1:]]
    assert [(row["family"], row["kind"], row["completed"]) for row in rows] == [
        ("tasks/#copy", "own", True)
    ] * 2


def test_rows_of_another_plan_or_of_other_tasks_are_refused() -> None:
    Path("task").mkdir()
    Path("task", "task.yaml").write_text("prompt: Copy.\nparts: 0\ncheck: ['true']\n")
    study, out = STUDY.with_changes(tasks=("./task",), seeds=1), Path("run")
    play_study(study, out, workers=1)
    head, *rows = (out / "cells.jsonl").read_text().splitlines()
    older = head.replace(f'"wakeloop":"{version("wakeloop")}"', '"wakeloop":"0.0.9"')
    (out / "cells.jsonl").write_text("\n".join([older, *rows, ""]))
    told: list[str] = []
    assert len(play_study(study, out, workers=1, told=told.append).rows) == 2
    assert told == [f"run/cells.jsonl was begun with wakeloop 0.0.9, and this is {version('wakeloop')}."]

    Path("task", "task.yaml").write_text("prompt: Copy it.\nparts: 0\ncheck: ['true']\n")
    with pytest.raises(BenchError) as caught:
        play_study(study, out, workers=1)
    assert str(caught.value) == (
        "The tasks in ./task have changed since the run in run/cells.jsonl began. Use another --out."
    )
    (out / "cells.jsonl").write_text("\n".join([head, rows[0].replace("./task/#task", "gone"), ""]))
    with pytest.raises(BenchError) as caught:
        play_study(study, out, workers=1)
    assert str(caught.value) == (
        "run/cells.jsonl was begun with another plan, which has plain on gone:0. Use another --out."
    )


@pytest.mark.parametrize("out", ["run", "task", "task/run"])
def test_a_run_kept_among_its_tasks_is_resumed(out: str) -> None:
    Path("task").mkdir()
    Path("task", "task.yaml").write_text("prompt: Copy.\nparts: 0\ncheck: ['true']\n")
    study = STUDY.with_changes(tasks=(".",), seeds=1)
    assert len(play_study(study, Path(out), workers=1, max_cost=1).rows) == 1
    Path("notes.txt").write_text("no task")
    assert len(play_study(study, Path(out), workers=1).rows) == 2
    Path("task", "task.yaml").write_text("prompt: Copy it.\nparts: 0\ncheck: ['true']\n")
    with pytest.raises(BenchError, match=r"The tasks in \. have changed"):
        play_study(study, Path(out), workers=1)


def test_an_estimate_runs_nothing_of_a_custom_task(tmp_path: Path) -> None:
    task, mark = tmp_path / "tasks" / "copy", tmp_path / "mark"
    (task / "files").mkdir(parents=True)
    (task / "files" / "a.py").write_text(f"open({str(mark)!r}, 'w')")
    (task / "task.yaml").write_text(
        f"{SHEET}  - label: run\n    calls:\n      - [run_python, {{path: a.py}}]\ntools: programs\n"
    )
    (task / "check.py").write_text(f"open({str(mark)!r}, 'w'); open('b.txt')")
    command = ("bench", "--model", "weak", "--task", "tasks", "--seeds", "1", "--workers", "1")
    three = (*TWO, "--agent", "+ verify")
    code, out, _ = wakeloop(*command, *three, "--estimate")
    assert (code, out.splitlines()[1]) == (0, "  11 requests, at most 450")
    assert not mark.exists()
    assert wakeloop(*command, *three, "--out", "mine")[0] == 0
    assert mark.exists()
    rows = journal.read_journal(tmp_path / "mine" / "cells.jsonl")[1]
    assert [(row["completed"], row["requests"]) for row in rows] == [(True, 3), (True, 4), (True, 4)]


def test_a_task_without_steps_is_named_in_an_estimate(tmp_path: Path) -> None:
    task = tmp_path / "tasks" / "copy"
    task.mkdir(parents=True)
    (task / "task.yaml").write_text("prompt: Copy a.txt to b.txt.\ncheck: [test, -f, b.txt]\n")
    code, out, _ = wakeloop("bench", "--task", "tasks", "--seeds", "1", *TWO, "--estimate")
    assert (code, out.splitlines()[1]) == (0, "  2 requests, at most 300")
    assert out.splitlines()[-1] == "  a task of your own without steps counts as one request"
    assert "steps" not in wakeloop(*SMALL, *TWO, "--task", "question-sum", "--estimate")[1]


def test_a_run_of_one_agent_makes_no_profile(tmp_path: Path) -> None:
    wakeloop(*SMALL, "--agent", "plain", "--out", "mine")
    code, out, err = wakeloop("bench", "profile", "mine")
    assert (code, out) == (2, "")
    assert err.startswith(
        "wakeloop: mine has no results that compare lists: it needs rows of both `plain` and "
    )
    assert not (tmp_path / "wakeloop-profile.json").exists()


@pytest.mark.slow
def test_a_model_that_costs_nothing_is_reported(tmp_path: Path) -> None:
    wakeloop(*SMALL, *TWO, "--prices", "0,0,0", "--out", "mine")
    code, out, _ = wakeloop("bench", "report", "mine", "--plots", "plots")
    assert code == 0
    assert "Prices per million tokens: input 0, cached 0, output 0." in out


def test_a_task_whose_check_shows_nothing_is_refused_before_any_request(tmp_path: Path) -> None:
    task = tmp_path / "tasks" / "copy"
    task.mkdir(parents=True)
    (task / "task.yaml").write_text(f"{SHEET}check: ['true']\n")
    code, out, err = wakeloop(
        "bench", "--model", "weak", "--task", "tasks", "--seeds", "1", "--workers", "1", *TWO, "--out", "mine"
    )
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith(f"wakeloop: The checks of {task} all hold before any work, so they show nothing. ")
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("--study", "quik"), 2, "Unknown study 'quik'. Did you mean 'quick'?"),
        (("--model", "small@http://u:sk-abcdefghijklmnop@h/v1"), 2, "Leave the key out of the address"),
        (("--prices", "1,2"), 2, "--prices takes IN,CACHED,OUT per million tokens"),
        (("--prices", "1,nan,2"), 2, "the options: 'prices.cached' cannot be nan"),
        (
            ("--base-url", "http://127.0.0.1:1/v1"),
            2,
            "--base-url needs a model: name one with --model",
        ),
        (("--model", "m", "--base-url", "127.0.0.1:1"), 2, "An address must begin with http:// or https://"),
        (("report", "nothing"), 2, "nothing cannot be read"),
        (("profile", "nothing"), 2, "nothing cannot be read"),
    ],
)
def test_wrong_words_are_one_sentence(args: tuple[str, ...], code: int, says: str) -> None:
    found, out, err = wakeloop("bench", *args)
    assert (found, out) == (code, "")
    assert err.startswith(f"wakeloop: {says}")
    assert len(err.splitlines()) == 1


def test_plots_are_drawn_or_say_what_they_need(tmp_path: Path) -> None:
    wakeloop(*SMALL, *TWO, "--out", "mine")
    code, _, err = wakeloop("bench", "report", "mine", "--plots", "plots", "--page", "page.md")
    if find_spec("matplotlib") is None:
        assert (code, err) == (1, "wakeloop: Plots need matplotlib: pip install 'wakeloop[bench]'.\n")
        return
    assert [file.name for file in (tmp_path / "plots" / "quick").iterdir()] == ["completed.svg"]
    assert "![completed](plots/quick/completed.svg)" in Path("page.md").read_text()
    first = (tmp_path / "plots" / "quick" / "completed.svg").read_bytes()
    wakeloop("bench", "report", "mine", "--plots", "plots", "--page", "page.md")
    assert (tmp_path / "plots" / "quick" / "completed.svg").read_bytes() == first
