"""The belts: a test's folder decides what it may touch, and `--paths` how many paths it takes.

`pure` compiles and runs no graph; `graph` opens no socket, no process and no database except in memory;
`real` may do all of it. For tests that run through combinations, mostly of doors and savers, `--paths` says
how many are made:

- `one`: one, a different one for each test and each row of its table
- `four`: just enough to meet every door and every saver (four of twelve), different ones for each test; the
  rows of a table share them
- `all`: all of them, with the bounds (rounds, threads, examples) at their largest
- `rest`: what `all` has and `four` lacks, so that the two together run nothing twice
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
PATHS = {"rig", "kept", "bare", "quick", "way", "door", "streaming"}  # always thinned out
GROUPS = {"engine": {"sync", "async"}}  # one of these, and one of the others
BOUND = "bound"  # an argument with two values: a sufficient one and a large one
SHELLS = {"shell", "world", "shared"}  # fixtures that start the command
STARTS = {"Shell", "World", "run_python", "start_python"}  # other ways to start it, in a test or its helper
ENOUGH = 16  # the most combinations that are searched for the smallest covers


# -- how many paths --------------------------------------------------------------------------------------


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
    """Use half as many workers again as cores, at least one more, for tests of `real`: they wait a lot."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if config.getoption("--paths") == "one" else cores + max(1, cores // 2)


Combination = tuple[Any, ...]
SEEN: Counter[str] = Counter()
REST: dict[int, Any] = {}


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Thin out a test's parameters before its items are made."""
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
    """Choose a few of a test's calls: one per row of its table, or more if it has few rows."""
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
    """Return a row's part of a cover; adjacent rows make up a whole one."""
    size = len(cover(row, axes, turn))
    return cover(row, axes, turn + number // size)[number % size :: rows]


def goes(call: Any, calls: Sequence[Any], few: set[int]) -> bool:
    """Return whether this call is made; `rest` first makes all of them and then deselects some."""
    small, large = (calls[place].params.get(BOUND) for place in (0, -1))
    within = call.params.get(BOUND)
    if Level.whole() and within == large and (id(call) not in few or small != large):
        REST[id(call)] = call
    if Level.whole():
        return bool(within == large)
    return within == small and id(call) in few


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for the full matrix only, or not part of the rest."""
    out = [item for item in items if not stays(item)]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if stays(item)]
    if hasattr(config, "workerinput"):
        items.sort(key=patience, reverse=True)


def patience(item: pytest.Item) -> float:
    """Return the time limit that a test asks for:

    the longest start first, so that none ends up running alone.
    """
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
    """Return whether the test starts Python, which uses new interpreters in the full matrix:

    one row is enough.
    """
    function = getattr(item, "function", None)
    used = names_in(function)
    helpers = getattr(function, "__globals__", {})
    used |= {name for helper in used for name in names_in(helpers.get(helper))}
    return bool(SHELLS & {*getattr(item, "fixturenames", ())} or STARTS & used)


def names_in(function: Any) -> set[str]:
    """Return the names that a function's code uses, including its inner functions and comprehensions."""
    if not inspect.isfunction(function):
        return set()
    names, codes = set[str](), [inspect.unwrap(function).__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [inner for inner in code.co_consts if inspect.iscode(inner)]
    return names


def cover(row: Sequence[Any], axes: Sequence[str], number: int) -> Sequence[int]:
    """Return the positions of a few calls that cover every value of every axis; `number` varies them."""
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
    """Return the parts of a value: a door-saver pair must meet both, in any pair."""
    value = call.params[name]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.astuple(value)
    made = value if isinstance(value, tuple) else (value,)
    return [(f"{name} {place}", repr(part)) for place, part in enumerate(made)]


@cache
def covers(values: tuple[Combination, ...]) -> list[tuple[int, ...]]:
    """Return all smallest choices in which every part of every value occurs."""
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


# -- what a belt allows ----------------------------------------------------------------------------------


def belt_of(path: Path) -> str:
    """Return the belt of a test file, by its folder."""
    first = path.relative_to(HERE).parts[0] if path.is_relative_to(HERE) else ""
    return first if first in BELTS else "real"


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(belt_of(item.path))


class Guard:
    """Records what the current test did that its belt does not allow."""

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
    """A test did something that its belt does not allow."""


def breach(what: str) -> None:
    Guard.breaches.append(what)
    raise BeltError(f"{what}, in a test of the belt {Level.belt}")


def watch(event: str, given: tuple[Any, ...], level: type[Level] = Level) -> None:
    """Audit what the interpreter does; such a hook cannot be removed."""
    if level.belt == "real":
        return
    if event in REAL:
        breach(REAL[event])
    elif event == "sqlite3.connect" and str(given[0]) != ":memory:" and not level.whole():
        breach("a database of SQLite is opened as a file")


def watched(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method that no test of the belt `pure` may call."""

    def call(*args: Any, **more: Any) -> Any:
        if Level.belt == "pure":
            breach(f"a graph: {method.__qualname__}")
        return method(*args, **more)

    return call


@contextmanager
def guarding(belt: str) -> Iterator[None]:
    """Make anything that the belt does not allow fail while the block runs."""
    before, Level.belt = Level.belt, belt
    try:
        yield
    finally:
        Level.belt = before


def pytest_sessionstart() -> None:
    sys.addaudithook(watch)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Guard fixtures as well, including those of a session."""
    with guarding(belt_of(item.path)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """A worker's last test also tears down the session's fixtures, whatever belt that test was in."""
    with guarding("real" if nextitem is None else belt_of(item.path)):
        return (yield)


@pytest.fixture(autouse=True)
def belt(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Set the belt of a test: a breach fails it, even if somebody has caught the error."""
    if Level.belt == "pure":
        from langgraph.graph.state import StateGraph
        from langgraph.pregel import Pregel

        for owner, name in ((StateGraph, "compile"), (Pregel, "stream"), (Pregel, "astream")):
            monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
    Guard.breaches.clear()
    yield Level.belt
    assert Guard.breaches == []
