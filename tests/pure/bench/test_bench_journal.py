"""The journal: what remains after a kill, and records that are made only once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rows import row

from wakeloop.bench.journal import Journal, read_journal
from wakeloop.bench.study import Cell
from wakeloop.errors import BenchError

HEAD = {"study": {"name": "one"}, "hash": "a1", "cells": 3}


def test_it_resumes_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "cells.jsonl"
    with Journal(path, HEAD) as journal:
        assert journal.rows == []
        journal.add(row(seed=1))
    with Journal(path, HEAD) as journal:
        assert journal.done == {Cell.of(row(seed=1))}
        journal.add(row(seed=2))
    assert read_journal(path) == (HEAD, [row(seed=1), row(seed=2)])


@pytest.mark.parametrize("kept", [1, 10, -2, -1])
def test_a_torn_last_line_is_dropped(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "cells.jsonl"
    with Journal(path, HEAD) as journal:
        journal.add(row(seed=1))
    whole = path.read_bytes()
    line = json.dumps(row(seed=2)).encode() + b"\n"
    path.write_bytes(whole + line[:kept])
    assert read_journal(path) == (HEAD, [row(seed=1)])
    with Journal(path, HEAD) as journal:
        assert journal.done == {Cell.of(row(seed=1))}
        assert path.read_bytes() == whole
        journal.add(row(seed=2))
    assert read_journal(path) == (HEAD, [row(seed=1), row(seed=2)])


def test_a_torn_first_line_is_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    path.write_bytes(json.dumps(HEAD).encode()[:9])
    with Journal(path, HEAD):
        assert read_journal(path) == (HEAD, [])


def test_a_cell_is_recorded_once(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    with Journal(path, HEAD) as journal:
        journal.add(row(seed=1))
        journal.add(row(seed=1, requests=9))
        assert journal.rows == [row(seed=1)]
    with path.open("ab") as file:  # as two concurrent runs would
        file.write(json.dumps(row(seed=1, requests=9)).encode() + b"\n")
    assert read_journal(path) == (HEAD, [row(seed=1)])


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    with Journal(path, HEAD) as journal:
        with pytest.raises(BenchError, match=r"Another run is writing .*cells\.jsonl"), Journal(path, HEAD):
            pass
        journal.add(row())
    assert read_journal(path) == (HEAD, [row()])


def test_another_study_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    with Journal(path, HEAD) as journal:
        journal.add(row())
    whole = path.read_bytes() + b'{"agent":"pla'
    path.write_bytes(whole)  # nor what a kill has left of a line
    with pytest.raises(BenchError, match="a study cannot change"), Journal(path, HEAD | {"hash": "b2"}):
        pass
    assert path.read_bytes() == whole
    with Journal(path, HEAD):
        pass  # the lock is released


@pytest.mark.parametrize("damaged", ["nonsense", "[]", "{}", '{"agent": "plain", "seed": 1}', "\0\0"])
def test_a_damaged_line_is_named(tmp_path: Path, damaged: str) -> None:
    path = tmp_path / "cells.jsonl"
    path.write_text(f"{json.dumps(HEAD)}\n{damaged}\n{json.dumps(row())}\n")
    with pytest.raises(BenchError, match=r"line 2: not a line of a run"):
        read_journal(path)


@pytest.mark.parametrize("text", [None, ""])
def test_no_run_is_refused_in_one_sentence(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "cells.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BenchError, match=r"cannot be read|has not begun"):
        read_journal(path)
