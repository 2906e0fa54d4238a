"""A run: resumed, within its cost, reported."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from rows import STUDY

from wakeloop.bench import agents, runner
from wakeloop.bench.cell import estimate_run
from wakeloop.bench.journal import Row
from wakeloop.bench.report import Result, render_page
from wakeloop.bench.runner import Progress, plan_study, play_study
from wakeloop.bench.study import Cell, Study
from wakeloop.errors import BenchError

SMALL = STUDY.with_changes(
    models=("weak:stop=0.3",), tasks=("make-files:5", "question-sum"), agents=("plain", "wakeloop")
)


def timeless(rows: list[Row]) -> list[Row]:
    return [row | {"seconds": 0} for row in rows]


def test_an_interrupted_run_resumes_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = play_study(SMALL, tmp_path / "whole", workers=1)
    assert (len(whole.rows), whole.whole, whole.why) == (8, 8, "")

    played: list[Cell] = []

    def play(cell: Cell, study: Study, **more: Any) -> Row:
        played.append(cell)
        return real(cell, study, **more)

    real = runner.play_cell
    monkeypatch.setattr(runner, "play_cell", play)
    cost = SMALL.prices.cost(whole.rows[0]) + 1  # reached by the second cell
    first = play_study(SMALL, tmp_path / "parts", workers=1, max_cost=cost)
    assert (len(first.rows), first.why) == (2, f"the cost of {cost:g} is reached")
    again = play_study(SMALL, tmp_path / "parts", workers=1, max_cost=cost)
    assert (len(again.rows), again.why) == (2, first.why)
    last = play_study(SMALL, tmp_path / "parts", workers=1)
    assert timeless(last.rows) == timeless(whole.rows)
    assert played == plan_study(SMALL)  # each once


def test_a_limit_that_is_not_a_number_allows_no_spending(tmp_path: Path) -> None:
    found = play_study(SMALL, tmp_path, workers=1, max_cost=float("nan"))
    assert (found.rows, found.why) == ([], "the cost of nan is reached")


@pytest.mark.parametrize("broken", [False, True])
def test_a_run_in_this_process_leaves_it_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    def play(*_cell: object, **_more: object) -> Row:
        held.append(logger.level)
        raise KeyboardInterrupt if broken else BenchError("gone")

    logger, held = logging.getLogger("langchain_core.callbacks"), list[int]()
    monkeypatch.setattr(runner, "play_cell", play)
    monkeypatch.setattr(logger, "level", logging.INFO)
    with suppress(KeyboardInterrupt):
        play_study(SMALL, tmp_path, workers=1)
    assert held == [logging.ERROR] * (1 if broken else 3)
    assert logger.level == logging.INFO


def test_an_outage_leaves_its_cell_for_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    down = {2}

    def play(cell: Cell, study: Study, **more: Any) -> Row:
        if plan_study(SMALL).index(cell) in down:
            raise BenchError("The model cannot be reached: gone")
        return real(cell, study, **more)

    real = runner.play_cell
    monkeypatch.setattr(runner, "play_cell", play)
    told: list[str] = []
    found = play_study(SMALL, tmp_path, workers=1, told=told.append)
    assert (len(found.rows), found.why) == (7, "")
    assert told == ["plain, question-sum:0, seed 1: The model cannot be reached: gone"]
    down.clear()
    assert len(play_study(SMALL, tmp_path, workers=1).rows) == 8


def test_three_outages_in_a_row_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def play(cell: Cell, study: Study, **more: Any) -> Row:
        raise BenchError("gone")

    monkeypatch.setattr(runner, "play_cell", play)
    told: list[str] = []
    found = play_study(SMALL, tmp_path, workers=1, told=told.append)
    assert (found.rows, found.why, len(told)) == ([], "3 cells in a row failed", 3)


def test_a_killed_worker_is_reported_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def pool(*_given: object) -> Iterator[Callable[[Cell], Future[Row]]]:
        def start(_cell: Cell) -> Future[Row]:
            broken: Future[Row] = Future()
            broken.set_exception(BrokenProcessPool("terminated abruptly"))
            return broken

        yield start

    monkeypatch.setattr(runner, "worker_pool", pool)
    found = play_study(SMALL, tmp_path, workers=2)
    assert (found.rows, found.why) == ([], "one of its processes was ended from outside")


def test_time_and_cost_are_shown_along_the_way(tmp_path: Path) -> None:
    shown: list[tuple[int, int, float]] = []

    def see(progress: Progress, ahead: object) -> None:
        left = progress.seconds_left(list(ahead))  # type: ignore[call-overload]
        shown.append((progress.finished, len(list(ahead)), left))  # type: ignore[call-overload]

    play_study(SMALL, tmp_path, workers=1, shown=see)
    assert [(finished, ahead) for finished, ahead, _ in shown] == [(n, 8 - n) for n in range(1, 9)]
    assert shown[0][2] > 0
    assert shown[-1][2] == 0


def test_an_estimate_plays_the_reliable_model() -> None:
    study = SMALL.with_changes(tasks=("make-files:5",))
    found = estimate_run(study, plan_study(study), workers=2)
    assert (found.cells, found.requests, found.most_requests) == (4, 2 * 6 + 2 * 7, 4 * 500)
    real = study.with_changes(models=("openai:small@http://127.0.0.1:1/v1",))
    cells = [cell._replace(model=real.models[0]) for cell in plan_study(study)]
    assert 13 * 3.0 <= estimate_run(real, cells, workers=2).seconds < 13 * 3.0 + 5


def test_an_agent_that_is_not_installed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "find_spec", lambda package: package == "wakeloop" or None)
    study = SMALL.with_changes(tasks=("make-files:5",), agents=("plain", "wakeloop", "TodoList"), seeds=1)
    told: list[str] = []
    assert len(play_study(study, tmp_path, workers=1, told=told.append).rows) == 2
    assert told == ["TodoList is left out: pip install langchain"]
    alone = study.with_changes(agents=("TodoList",), reference="TodoList", subject="TodoList")
    with pytest.raises(BenchError, match=r"^No agent of this study is installed: pip install langchain\.$"):
        play_study(alone, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_page_says_where_it_loses_first(tmp_path: Path) -> None:
    play_study(SMALL, tmp_path / "run", workers=1)
    result = Result.load(tmp_path / "run")
    text = render_page([result])
    heads = [line for line in text.splitlines() if line.startswith("#")]
    assert heads == [
        "# What was measured",
        "## one",
        "### Where `wakeloop` loses",
        "### Cost of a completed job, completed, requests",
        "### Against `plain`",
        "### Where `wakeloop` loses, model by model",
        "### Figures",
        "## How to read it",
        "## Who is who",
    ]
    assert f"study `{SMALL.hash}`, 8 cells)" in text
    assert SMALL.hypothesis in text


def test_a_page_does_not_depend_on_which_cell_was_finished_first(tmp_path: Path) -> None:
    play_study(SMALL, tmp_path, workers=1)
    text = render_page([Result.load(tmp_path)])
    path = tmp_path / "cells.jsonl"
    head, *rows = path.read_text().splitlines(keepends=True)
    path.write_text("".join([head, *reversed(rows)]))
    assert render_page([Result.load(tmp_path)]) == text


def test_a_page_of_an_unfinished_run_says_so(tmp_path: Path) -> None:
    play_study(SMALL, tmp_path, workers=1, max_cost=1)
    assert "1 cell, 7 still missing" in render_page([Result.load(tmp_path)])


def test_a_study_that_has_changed_since_is_refused(tmp_path: Path) -> None:
    play_study(SMALL, tmp_path, workers=1, max_cost=1)
    path = tmp_path / "cells.jsonl"
    head, rest = path.read_text().split("\n", 1)
    changed = json.loads(head)
    changed["study"]["hypothesis"] = "It was always clear."
    path.write_text(f"{json.dumps(changed)}\n{rest}")
    with pytest.raises(BenchError, match="its first line has been changed since the run began"):
        Result.load(tmp_path)
