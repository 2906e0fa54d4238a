"""The belts enforce what they promise, and few paths meet every door and every saver."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from belts import BELTS, HERE, BeltError, Guard, belt_of, chosen, goes, guarding, patience, stays
from langgraph.graph import StateGraph
from levels import LEVELS, Level
from rig import BARE, KEPT, PATHS

from wakeloop import TodoState, create_todo_agent
from wakeloop.testing import ScriptedModel


@dataclass
class Call:
    """What pytest knows of one call of a test."""

    params: dict[str, Any]
    indices: dict[str, int] = field(default_factory=dict)


def calls_of(**axes: Any) -> list[Call]:
    """Return one call for each combination, in pytest's order."""
    made = [Call({})]
    for name, values in axes.items():
        made = [
            Call({**call.params, name: value}, {**call.indices, name: place})
            for call in made
            for place, value in enumerate(values)
        ]
    return made


def made_at(level: str, calls: list[Call], axes: list[str], turn: int, *, one: bool = False) -> list[Call]:
    """Return the calls that are made at a level."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Level, "name", level)
        few = chosen(calls, axes, turn, one=one)
        return [call for call in calls if goes(call, calls, few)]


# -- how many paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pairs", "least"), [(PATHS, 4), (KEPT, 4), (BARE, 4)])
def test_every_case_meets_every_door_and_every_saver_and_all_cases_every_pair(
    pairs: list[tuple[str, str]], least: int
) -> None:
    met = set()
    for turn in range(24):
        taken = [call.params["rig"] for call in made_at("four", calls_of(rig=pairs), ["rig"], turn)]
        assert len(taken) == least
        assert {door for door, _ in taken} == {door for door, _ in pairs}
        assert {saver for _, saver in taken} == {saver for _, saver in pairs}
        met.update(taken)
    assert met == set(pairs)


@pytest.mark.parametrize("rows", [2, 3, 4, 9])
def test_the_rows_of_a_table_share_the_doors_and_savers(rows: int) -> None:
    met = set()
    for turn in range(24):
        made = made_at("four", calls_of(row=range(rows), rig=PATHS), ["rig"], turn)
        assert len(made) == max(4, rows)
        assert {call.params["row"] for call in made} == set(range(rows))
        taken = [call.params["rig"] for call in made]
        assert {door for door, _ in taken} == {door for door, _ in PATHS}
        assert {saver for _, saver in taken} == {saver for _, saver in PATHS}
        met.update(taken)
    assert met == set(PATHS)


def test_one_path_is_another_one_for_each_case_and_row() -> None:
    calls = calls_of(row=range(12), rig=PATHS)
    taken = made_at("one", calls, ["rig"], 5)
    assert [call.params["row"] for call in taken] == list(range(12))
    assert {call.params["rig"] for call in taken} == set(PATHS)
    assert {made_at("one", calls_of(rig=PATHS), ["rig"], n)[0].params["rig"] for n in range(12)} == set(PATHS)


@pytest.mark.parametrize(("first", "second"), [(2, 4), (5, 3), (7, 2), (5, 4), (30, 2), (6, 6)])
def test_of_two_axes_each_value_is_met_once_if_possible(first: int, second: int) -> None:
    calls = calls_of(a=range(first), b=range(second))
    for turn in range(12):
        taken = made_at("four", calls, ["a", "b"], turn)
        assert len(taken) == max(first, second)
        assert {call.params["a"] for call in taken} == set(range(first))
        assert {call.params["b"] for call in taken} == set(range(second))


def test_with_a_rotating_axis_each_row_takes_another_value() -> None:
    taken = made_at("four", calls_of(row=range(4), saver="xy"), ["saver"], 1, one=True)
    assert [call.params["saver"] for call in taken] == ["y", "x", "y", "x"]


def test_of_the_hosts_one_runs_in_memory_and_one_on_an_engine() -> None:
    engines = ["sync", "async", "sqlite", "asynchronous sqlite", "postgres"]
    met = set()
    for turn in range(6):
        first, second = (
            call.params["engine"]
            for call in made_at("four", calls_of(engine=engines), ["engine"], turn, one=True)
        )
        assert first in engines[:2]
        assert second in engines[2:]
        met |= {first, second}
    assert met == set(engines)


def test_the_larger_bound_is_for_the_full_matrix() -> None:
    calls = calls_of(bound=[8, 64], rig=PATHS)
    sizes = {level: [c.params["bound"] for c in made_at(level, calls, ["rig"], 0)] for level in LEVELS}
    assert sizes == {"one": [8], "four": [8] * 4, "all": [64] * 12, "rest": [64] * 12}


@pytest.mark.parametrize(
    ("fixtures", "code", "row", "again"),
    [
        (["tmp_path", "shell"], "None", None, True),
        (["world"], "None", {"name": 0, "other": 0}, True),
        (["shared"], "None", {"name": 0, "other": 1}, False),
        ([], "closing(Shell())", None, True),
        ([], "[helper(number) for number in range(4)]", None, True),
        (["tmp_path", "db"], "wakeloop()", None, False),
    ],
)
def test_the_rest_starts_the_command_afresh_if_a_test_starts_it(
    monkeypatch: pytest.MonkeyPatch, fixtures: list[str], code: str, row: Any, again: bool
) -> None:
    monkeypatch.setattr(Level, "name", "rest")
    known: dict[str, Any] = {}
    exec(f"def helper(n): start_python()\ndef test(): {code}", known)
    item: Any = SimpleNamespace(
        fixturenames=fixtures,
        function=known["test"],
        callspec=row and SimpleNamespace(indices=row),
        get_closest_marker=lambda _: None,
    )
    assert stays(item) is again


@pytest.mark.timeout(30)
def test_tests_with_more_time_start_first(request: pytest.FixtureRequest) -> None:
    assert patience(request.node) == 30.0
    assert patience(SimpleNamespace(get_closest_marker=lambda _: None)) == 0.0  # type: ignore[arg-type]


# -- what a belt allows ------------------------------------------------------------------------------------


def test_a_belt_is_a_folder(belt: str, request: pytest.FixtureRequest) -> None:
    assert belt == "pure"
    assert [mark.name for mark in request.node.iter_markers() if mark.name in BELTS] == ["pure"]
    assert belt_of(HERE / "graph" / "core" / "test_loop.py") == "graph"
    assert {path.name for path in HERE.iterdir() if any(path.rglob("test_*.py"))} == {*BELTS, "live"}


def refused(act: Callable[[], object], belt: str, words: str) -> None:
    """Check that the belt refuses this, and clear its record, which would fail the test at its end."""
    with guarding(belt), pytest.raises(BeltError, match=words):
        act()
    assert len(Guard.breaches) == 1
    Guard.breaches.clear()


def test_pure_compiles_no_graph() -> None:
    refused(lambda: create_todo_agent(ScriptedModel([])), "pure", "a graph: StateGraph.compile")
    graph = StateGraph(TodoState).add_node("a", lambda state: {}).set_entry_point("a")
    refused(graph.compile, "pure", "a graph")


def test_pure_runs_no_graph() -> None:
    with guarding("graph"):
        graph = create_todo_agent(ScriptedModel(["hello"]))
    refused(lambda: graph.invoke({"messages": [("user", "go")]}), "pure", r"a graph: Pregel\.stream")


@pytest.mark.parametrize("belt_", ["pure", "graph"])
def test_no_process_no_socket_no_file_of_sqlite(belt_: str, tmp_path: Path) -> None:
    refused(lambda: subprocess.run([sys.executable, "-V"], check=True), belt_, "a process is started")
    refused(os.fork, belt_, "a process is forked")
    with socket.socket(socket.AF_UNIX) as one:
        refused(lambda: one.bind(str(tmp_path / "socket")), belt_, "a socket is bound")
        refused(lambda: one.connect(str(tmp_path / "socket")), belt_, "a socket is connected")
    sqlite3.connect(":memory:").close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Level, "name", "four")
        refused(lambda: sqlite3.connect(tmp_path / "threads.db"), belt_, "opened as a file")


def test_real_may_do_all_of_it(tmp_path: Path) -> None:
    with guarding("real"):
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        sqlite3.connect(tmp_path / "threads.db").close()
        create_todo_agent(ScriptedModel(["hello"])).invoke({"messages": [("user", "go")]})
    assert Guard.breaches == []
