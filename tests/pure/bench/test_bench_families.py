"""Every task family: a solver gets full marks, a do-nothing none, and each kind of damage is noticed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from bench_solver import hold_to_account, laid_out, play
from levels import Level

from wakeloop.bench.families import FAMILIES
from wakeloop.bench.family_builder import Expected, append_call, write_call
from wakeloop.bench.task import Call, Task, is_complete, program_tools

SEEDS = (0, 1, 2)
PROGRAMS = [name for name, family in FAMILIES.items() if family.make(0, 1).tools is program_tools]


def test_there_are_enough_families_of_every_kind() -> None:
    assert len(FAMILIES) == 42
    assert {family.kind for family in FAMILIES.values()} == {
        *("work", "found", "impossible", "already", "contradictory", "one", "question"),
    }
    work = [family for family in FAMILIES.values() if family.kind not in ("one", "question")]
    assert [family.name for family in work if family.lengths != (1, 5, 20, 60)] == ["outside-folder"]
    assert len(work) == 33
    assert all(family.about for family in FAMILIES.values())
    assert PROGRAMS == ["mend-program", "write-program", "rename-function", "guard-program"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in PROGRAMS])
def test_a_solver_gets_full_marks_and_a_do_nothing_none(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    family = FAMILIES[name]
    for parts in family.lengths:
        for seed in SEEDS if Level.whole() and parts < 20 else SEEDS[:1]:
            hold_to_account(family, family.make(seed, parts), tmp_path / f"{seed}-{parts}")


@pytest.mark.parametrize("name", FAMILIES)
def test_the_same_seed_draws_the_same_task_and_another_seed_a_different_one(name: str) -> None:
    family = FAMILIES[name]
    one, again, other = (family.make(seed, family.lengths[-1]) for seed in (3, 3, 4))
    assert (one.prompt, one.files, one.steps, one.spoils, one.final) == (
        *(again.prompt, again.files, again.steps, again.spoils, again.final),
    )
    assert name == "one-file" or (one.prompt, one.files) != (other.prompt, other.files)


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.kind == "impossible"])
def test_impossible_parts_are_refused_by_the_world_and_must_be_reported(name: str, tmp_path: Path) -> None:
    task = FAMILIES[name].make(1, 5)
    tools = laid_out(task, tmp_path / "w")
    refused = [bool(play(tools, step.calls)) for step in task.steps]
    untold = [check.name for check in task.checks(tmp_path / "w", "All done.") if not check.passed]
    assert (
        len(untold) == sum(refused) == {"missing-sources": 2, "outside-folder": 5, "missing-rates": 0}[name]
    )
    assert is_complete(task.checks(tmp_path / "w", task.final))


def first(task: Task, folder: str) -> str:
    """Return the first file of the task's world in this folder."""
    return next(path for path in task.files if path.startswith(folder))


BROKEN: dict[str, Callable[[Task], tuple[Call, ...]]] = {
    "follow-ups": lambda task: (
        write_call(
            first(task, "drawer/").replace("drawer/", "replies/").replace(".txt", "-old.txt"), "Done: it"
        ),
    ),
    "outside-folder": lambda task: (write_call("published/all.txt", "a copy"),),
    "find-conflicts": lambda task: tuple(
        write_call(path.replace("north/", "conflicts/"), text)
        for path, text in task.files.items()
        if task.files.get(path.replace("north/", "south/")) == text and "north/" in path
    ),
    "question-sum": lambda _task: (write_call("scratch.txt", ""),),
    "markdown-table": lambda task: tuple(
        write_call(args["path"], re.sub(r"[|-]", " ", args["content"]))
        for step in task.steps
        for _, args in step.calls
    ),
    "group-totals": lambda task: tuple(
        write_call(args["path"], "".join(args["content"].splitlines(keepends=True)[::-1]))
        for step in task.steps
        for _, args in step.calls
    ),
    "keep-ledger": lambda task: (
        write_call("ledger.csv", "".join(call.args["content"] for step in task.steps for call in step.calls)),
        append_call("ledger.csv", "name,amount\n"),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_violation_of_a_request_is_noticed(name: str, tmp_path: Path) -> None:
    """Everything is done, plus one thing that breaks the request."""
    task = FAMILIES[name].make(1, FAMILIES[name].lengths[min(1, len(FAMILIES[name].lengths) - 1)])
    tools = laid_out(task, tmp_path / "w")
    for step in task.steps:
        play(tools, step.calls)
    assert is_complete(task.checks(tmp_path / "w", task.final))
    assert play(tools, BROKEN[name](task)) == []
    assert not is_complete(task.checks(tmp_path / "w", task.final))


@pytest.mark.parametrize(
    ("made", "holds"),
    [
        ("a | b\n:--- | ---:\n1 | 2\n", True),  # no bars at the ends, but alignment marks
        ("|a|b|\n|-|-|\n|1|2|\n", True),
        ("| a | b |\n| 1 | 2 |\n", False),
        ("| a | b |\n|---|---|\n| 1 2 |\n", False),
        ("Here it is:\n| a | b |\n|---|---|\n| 1 | 2 |\n", False),
    ],
)
def test_a_table_is_the_same_however_it_is_drawn(made: str, holds: bool) -> None:
    assert Expected("| a | b |\n| --- | --- |\n| 1 | 2 |\n", "table").matches(made) is holds
