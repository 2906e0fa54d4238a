"""Looking at threads: one graph for all of them, and copies of a database that may only be read."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from wakeloop import create_todo_agent
from wakeloop.cli import reader
from wakeloop.cli.recipe import Recipe
from wakeloop.cli.show import details
from wakeloop.cli.store import Place, writing
from wakeloop.cli.threads import overview
from wakeloop.testing import ScriptedModel, calls, says

NAMES = ["a", "b", "c"]


def filled(path: Path) -> Place:
    """A database with three threads."""
    place = Place(path, named=True)
    with writing(place) as store:
        for name in NAMES:
            model = ScriptedModel([calls(("todo_write", {"items": ["x"]})), says("later")])
            agent = create_todo_agent(model, checkpointer=store.saver).with_config(recursion_limit=6)
            agent.invoke({"messages": [("user", f"go {name}")]}, {"configurable": {"thread_id": name}})
            store.remember(name, Recipe(root=str(path.parent)), f"go {name}")
    return place


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a graph is built to be looked at."""
    times: list[int] = []
    build = reader.create_todo_agent

    def counted(*given: Any, **more: Any) -> Any:
        times.append(1)
        return build(*given, **more)

    monkeypatch.setattr(reader, "create_todo_agent", counted)
    return times


@pytest.mark.parametrize("everything", [True, False])
def test_a_list_of_threads_builds_one_graph(tmp_path: Path, built: list[int], everything: bool) -> None:
    place = filled(tmp_path / "threads.sqlite")
    assert len([*overview(place, everything=everything, json=False)]) == 1 + len(NAMES)
    assert len(built) == 1


def copied(place: Place, path: Path) -> Place:
    """A backup, as `VACUUM INTO` makes it: its journal is not the write-ahead log."""
    with closing(sqlite3.connect(place.path)) as connection:
        connection.execute("VACUUM INTO ?", [str(path)])
    return Place(path, named=True)


def test_a_backup_reads_as_the_original(tmp_path: Path) -> None:
    place = filled(tmp_path / "threads.sqlite")
    copy = copied(place, tmp_path / "copy.sqlite")
    before = copy.path.read_bytes()
    for looked in (
        lambda at: [*overview(at, everything=True, json=True)],
        lambda at: [*details(at, "a", history=True, json=False)],
    ):
        assert looked(copy) == looked(place)
    assert copy.path.read_bytes() == before  # it is read only: not even the mode of its journal changes


def test_a_backup_of_an_older_langgraphs_database_reads(tmp_path: Path) -> None:
    """Its `writes` have no `task_path`, which a saver adds where it may write."""
    place = filled(tmp_path / "threads.sqlite")
    whole = [*overview(place, everything=True, json=True)]
    with closing(sqlite3.connect(place.path)) as connection:
        connection.execute("ALTER TABLE writes DROP COLUMN task_path")
        connection.commit()
    copy = copied(place, tmp_path / "copy.sqlite")
    assert [*overview(copy, everything=True, json=True)] == whole
