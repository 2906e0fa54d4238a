"""The belts: what a test may touch follows from its folder, how many ways it goes from `--paths`.

`pure` compiles and runs no graph; `graph` opens no socket, no process and no database but one in memory;
`real` may do all of it. Where a test goes through combinations, of doors and savers above all, `--paths`
says how many:

- `one`: one of them, another for each test and each row of its table
- `four`: as few as let it meet every door and every saver (four of twelve), other ones for each test; the
  rows of a table share them
- `all`: all of them, with the bounds (rounds, threads, examples) at their largest
- `rest`: what `all` has and `four` has not, so that the two together run nothing twice
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from levels import LEVELS, Level

HERE = Path(__file__).parent
BELTS = ("pure", "graph", "real")
PATHS = {"rig", "kept", "bare", "quick", "way", "door", "streaming"}  # what is thinned wherever it stands
GROUPS = {"engine": {"sync", "async"}}  # of these one, and one of the others
BOUND = "bound"  # an argument of two values: the one that is enough, and the large one
SHELLS = {"shell", "world", "shared"}  # fixtures that start the command
STARTS = {"Shell", "World", "run_python", "start_python"}  # and what else does, in a test or its helper
ENOUGH = 16  # combinations of which the smallest covers are searched for


# -- how many ways ---------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--paths", choices=LEVELS, default="four", help="how many of its ways each test goes")


def pytest_configure(config: pytest.Config) -> None:
    Level.name = config.getoption("--paths")
    for belt in BELTS:
        config.addinivalue_line("markers", f"{belt}: a test in the folder {belt}")
    config.addinivalue_line(
        "markers", "covering(*arguments): of their combinations, few are enough that each value is met"
    )
    config.addinivalue_line(
        "markers", "rotating(*arguments): one of their combinations, another for each row"
    )
    config.addinivalue_line("markers", "large: in the full matrix alone")
    share = Level.share(settings.default.max_examples)  # type: ignore[union-attr]
    settings.register_profile("share", parent=settings.default, max_examples=share)
    settings.load_profile("share")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """More than cores, by half and one at least, where tests of the belt `real` run: they wait a lot."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if config.getoption("--paths") == "one" else cores + max(1, cores // 2)


Combination = tuple[Any, ...]
SEEN: Counter[str] = Counter()
REST: dict[int, Any] = {}


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Thin what a test is parametrized with, before there is an item of it."""
    yield
    calls: list[Any] = metafunc._calls
    given = calls[0].params if calls else {}
    turns = {name for mark in metafunc.definition.iter_markers("rotating") for name in mark.args}
    named = turns | {name for mark in metafunc.definition.iter_markers("covering") for name in mark.args}
    axes = [name for name in given if name in (named or PATHS | {*GROUPS})]
    if axes or BOUND in given:
        SEEN[metafunc.module.__name__] += 1
        few = chosen(calls, axes, SEEN[metafunc.module.__name__], one=bool(turns) or axes == [*GROUPS])
        metafunc._calls = [call for call in calls if goes(call, calls, few)]


def chosen(calls: Sequence[Any], axes: Sequence[str], turn: int, *, one: bool) -> set[int]:
    """A few of the calls of a test: one of each row of its table, and more where the rows are few."""
    groups: dict[Any, dict[Any, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for call in calls:
        group = tuple(call.params[name] in GROUPS[name] for name in axes if name in GROUPS)
        row = tuple((name, place) for name, place in call.indices.items() if name not in axes)
        if call.params.get(BOUND) == calls[0].params.get(BOUND):
            groups[group][row].append(call)
    few: set[int] = set()
    for rows in groups.values():
        for number, row in enumerate(rows.values()):
            places: Sequence[int] = [(turn + number) % len(row)] if axes else [0]
            if axes and not one and Level.name != "one":
                places = share(row, axes, turn, number, len(rows))
            few.update(id(row[place]) for place in places)
    return few


def share(row: Sequence[Any], axes: Sequence[str], turn: int, number: int, rows: int) -> Sequence[int]:
    """What a row of a table takes of a cover: those that stand next to each other make a whole one."""
    size = len(cover(row, axes, turn))
    return cover(row, axes, turn + number // size)[number % size :: rows]


def goes(call: Any, calls: Sequence[Any], few: set[int]) -> bool:
    """Whether this call is made; at the level `rest` all are, and what is left out is no item for long."""
    small, large = (calls[place].params.get(BOUND) for place in (0, -1))
    within = call.params.get(BOUND)
    if Level.whole() and within == large and (id(call) not in few or small != large):
        REST[id(call)] = call
    if Level.whole():
        return bool(within == large)
    return within == small and id(call) in few


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for the full matrix alone, or what is not in the rest of it."""
    out = [item for item in items if not stays(item)]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if stays(item)]
    if hasattr(config, "workerinput"):
        items.sort(key=patience, reverse=True)


def patience(item: pytest.Item) -> float:
    """The time that a test has where it asks for its own: the longest begin first, and none ends alone."""
    asked = item.get_closest_marker("timeout")
    return float(asked.args[0]) if asked and asked.args else 0.0


def stays(item: pytest.Item) -> bool:
    if Level.name != "rest":
        return Level.whole() or not item.get_closest_marker("large")
    tried = item.get_closest_marker("hypothesis") or item.get_closest_marker("large")
    row = getattr(item, "callspec", None)
    first = row is None or not any(row.indices.values())
    return bool(tried) or (first and is_forked(item)) or id(row) in REST


def is_forked(item: Any) -> bool:
    """Whether it starts Python, in new interpreters in the full matrix: one row of a test will do."""
    function = getattr(item, "function", None)
    used = names_in(function)
    helpers = getattr(function, "__globals__", {})
    used |= {name for helper in used for name in names_in(helpers.get(helper))}
    return bool(SHELLS & {*getattr(item, "fixturenames", ())} or STARTS & used)


def names_in(function: Any) -> set[str]:
    """What the code of a function names, with the functions and comprehensions in it."""
    if not inspect.isfunction(function):
        return set()
    names, codes = set[str](), [inspect.unwrap(function).__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [inner for inner in code.co_consts if inspect.iscode(inner)]
    return names


def cover(row: Sequence[Any], axes: Sequence[str], number: int) -> Sequence[int]:
    """The places of a few calls which have every value of every axis: another choice for each number."""
    values = tuple(tuple(part for name in axes for part in parts(name, call)) for call in row)
    if len(values) <= ENOUGH:
        found = covers(values)
        return found[number % len(found)]
    at = [[call.indices[name] for name in axes] for call in row]
    sizes = [len({index[axis] for index in at}) for axis in range(len(axes))]
    widest = sizes.index(max(sizes))
    return [
        place
        for place, index in enumerate(at)
        if all(
            (index[axis] + index[widest] + number) % size == 0
            for axis, size in enumerate(sizes)
            if axis != widest
        )
    ]


def parts(name: str, call: Any) -> Sequence[tuple[str, str]]:
    """What a value is made of: a pair of a door and a saver has to meet both, in any pair."""
    value = call.params[name]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.astuple(value)
    made = value if isinstance(value, tuple) else (value,)
    return [(f"{name} {place}", repr(part)) for place, part in enumerate(made)]


@cache
def covers(values: tuple[Combination, ...]) -> list[tuple[int, ...]]:
    """All choices, as small as can be, in which every part of every value occurs."""
    everything = {part for value in values for part in value}
    for size in range(1, len(values) + 1):
        found = [
            places
            for places in combinations(range(len(values)), size)
            if {part for place in places for part in values[place]} == everything
        ]
        if found:
            return found
    raise AssertionError("the whole is a cover")


# -- what a belt holds -----------------------------------------------------------------------------------


def belt_of(path: Path) -> str:
    """The belt of a file of tests, by its folder."""
    first = path.relative_to(HERE).parts[0] if path.is_relative_to(HERE) else ""
    return first if first in BELTS else "real"


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(belt_of(item.path))


class Guard:
    """What the test of this moment did although its belt does not hold it."""

    breaches: list[str] = []  # noqa: RUF012 - one for the process


REAL = {
    "socket.connect": "a socket is connected",
    "socket.bind": "a socket is bound",
    "subprocess.Popen": "a process is started",
    "os.fork": "a process is forked",
    "os.forkpty": "a process is forked",
    "os.posix_spawn": "a process is started",
    "os.system": "a process is started",
}


class BeltError(AssertionError):
    """A test does what its belt does not hold."""


def breach(what: str) -> None:
    Guard.breaches.append(what)
    raise BeltError(f"{what}, in a test of the belt {Level.belt}")


def watch(event: str, given: tuple[Any, ...], level: type[Level] = Level) -> None:
    """Hear of what the interpreter does; a hook of this kind outlives its module."""
    if level.belt == "real":
        return
    if event in REAL:
        breach(REAL[event])
    elif event == "sqlite3.connect" and str(given[0]) != ":memory:" and not level.whole():
        breach("a database of SQLite is opened as a file")


def watched(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method, which no test of the belt `pure` may call."""

    def call(*args: Any, **more: Any) -> Any:
        if Level.belt == "pure":
            breach(f"a graph: {method.__qualname__}")
        return method(*args, **more)

    return call


@contextmanager
def guarding(belt: str) -> Iterator[None]:
    """For as long as the block runs, what the belt does not hold fails."""
    before, Level.belt = Level.belt, belt
    try:
        yield
    finally:
        Level.belt = before


def pytest_sessionstart() -> None:
    sys.addaudithook(watch)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """The fixtures as well, those of a session too."""
    with guarding(belt_of(item.path)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """After its last test a worker ends the fixtures of the session, whatever belt that test was in."""
    with guarding("real" if nextitem is None else belt_of(item.path)):
        return (yield)


@pytest.fixture(autouse=True)
def belt(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The belt of a test: a breach fails it, also where somebody has caught the error."""
    if Level.belt == "pure":
        from langgraph.graph.state import StateGraph
        from langgraph.pregel import Pregel

        for owner, name in ((StateGraph, "compile"), (Pregel, "stream"), (Pregel, "astream")):
            monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
    Guard.breaches.clear()
    yield Level.belt
    assert Guard.breaches == []
