"""A run that is killed at any point resumes in another process with the same result."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
NODES = [
    *["activate", "call_model", "validate_todos", "call_model", "run_tools edit-x-1"],
    *["call_model", "finalization_guard", "wake", "call_model", "finalization_guard"],
    *["call_model", "validate_todos", "call_model", "run_tools edit-z-5", "nag"],
    *["call_model", "validate_todos", "call_model", "finalization_guard"],
]
CALLS = ["edit-x-1", "edit-y-1", "edit-z-5"]
CUT = {  # where a call has run and its result is not stored yet
    point: call
    for call in CALLS
    for point in (
        f"tool {call[5]}, after",
        f"writes of run_tools {call}, before",
        f"writes of run_tools {call}, uncommitted",
    )
}
ASKED = {  # where a reply was requested and is not stored yet
    point
    for n in range(1, 9)
    for point in (
        f"model {n}",
        f"writes of call_model {n}, before",
        f"writes of call_model {n}, uncommitted",
    )
}
UNHEARD = {"checkpoint -1, before", "checkpoint -1, uncommitted"}  # the message is not stored yet
HALF_HEARD = {  # stored as an input, but no step has read it
    "checkpoint -1, stored",
    *(f"writes of __start__ 1, {when}" for when in ("before", "uncommitted", "stored")),
    *(f"checkpoint 0, {when}" for when in ("before", "uncommitted")),
}
Crashes = Callable[..., dict[str, Any]]

# A kill takes half a second, so only one of `bound` points is taken: not a multiple of the three kinds of
# points that alternate (before, uncommitted, stored).


@pytest.fixture
def crashes(postgres_url: Callable[[], str]) -> Crashes:
    """Run `crashes.py` in a process without threads, because it forks, and return its findings."""

    def run(saver: str, durability: str, *more: str) -> dict[str, Any]:
        where = ["--postgres", postgres_url()] if saver.endswith("postgres") else []
        command = [
            str(HERE / "crashes.py"),
            "--json",
            "--saver",
            saver,
            "--durability",
            durability,
            *where,
            *more,
        ]
        done = subprocess.run(
            [sys.executable, *command],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return run


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest) -> Callable[[], str]:
    """The URL of a new database, for tests that need one."""
    return lambda: str(request.getfixturevalue("postgres"))


def holds_always(found: dict[str, Any]) -> None:
    """Assert what holds after every kill, with any durability."""
    whole = found["whole"]
    assert [todo["status"] for todo in whole["todos"]] == ["completed"] * 3
    assert (whole["requests"], whole["twice"], whole["faults"]) == (8, 0, [])
    for kill in found["kills"]:
        where = (kill["point"], kill["message"])
        assert (where, kill["faults"]) == (where, [])
        if not kill["message"]:  # only calls that had run without a stored result run again
            assert (where, kill["again"]) == (where, kill["unstored"])
        else:  # the graph runs no call again; if a reply is lost too, the model may ask for the same again
            known = set(kill["left"]["calls"])
            assert (where, known & set(kill["again"])) == (where, set())
            assert set(kill["again"]) <= set(kill["unstored"])


def nothing_is_lost(kills: list[dict[str, Any]]) -> None:
    """Assert what holds if each step is stored before the next: only unfinished work is repeated."""
    for kill in kills:
        point, message = kill["point"], kill["message"]
        assert (point, kill["lost"], kill["finished"]) == (point, 0, [])
        assert (point, kill["unstored"]) == (point, [CUT[point]] if point in CUT else [])
        assert (point, kill["again"]) == (point, [CUT[point]] if point in CUT and not message else [])
        if not message:
            assert (point, kill["asked_again"]) == (point, 1 if point in ASKED else 0)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.rotating("saver")
@pytest.mark.parametrize("saver", ["sqlite", "postgres"])
@pytest.mark.parametrize("bound", [13, 1])
def test_with_sync_no_step_is_lost_and_no_finished_call_runs_again(
    crashes: Crashes, saver: str, bound: int
) -> None:
    found = crashes(saver, "sync", "--in-turn", "--every", str(bound))
    holds_always(found)
    nothing_is_lost(found["kills"])
    points = {kill["point"] for kill in found["kills"]}
    assert len(points) == len(found["kills"]) == ceil(164 / bound)
    if bound > 1:
        return
    assert points >= {*CUT, *ASKED}
    assert points >= {f"step {n}: {node} begins" for n, node in enumerate(NODES, start=1)}
    assert points >= {
        f"checkpoint {n}, {when}" for n in range(-1, 20) for when in ("before", "uncommitted", "stored")
    }
    assert {kill["point"] for kill in found["kills"] if kill["left"]["step"] is None} == UNHEARD
    assert {kill["point"] for kill in found["kills"] if kill["left"]["step"] == -1} == HALF_HEARD


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.rotating("saver")
@pytest.mark.parametrize("saver", ["sqlite", "postgres"])
@pytest.mark.parametrize("bound", [13, 1])
def test_with_async_only_what_is_not_stored_is_repeated(crashes: Crashes, saver: str, bound: int) -> None:
    found = crashes(saver, "async", "--in-turn", "--every", str(bound))
    holds_always(found)
    assert len(found["kills"]) == ceil(164 / bound)
    for kill in found["kills"]:
        step, passed = kill["left"]["step"], kill["passed"]
        stored = [n for n in range(-1, 20) if f"checkpoint {n}, stored" in passed]
        sent = [n for n in range(-1, 20) if f"checkpoint {n}, uncommitted" in passed]
        least, most = max(stored, default=-2), max(sent, default=-2)
        assert least <= (-2 if step is None else step) <= most
    stuck = found["stuck"]  # nothing bounds how far a run gets ahead of its storage
    assert (stuck["left"]["step"], stuck["lost"]) == (10, 7)
    assert (stuck["finished"], stuck["asked_again"], stuck["faults"]) == (["edit-z-5"], 3, [])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.covering("saver", "durability")
@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("saver", ["async-sqlite", "async-postgres"])
@pytest.mark.parametrize("bound", [25, 8])
def test_asynchronous_runs_too(crashes: Crashes, saver: str, durability: str, bound: int) -> None:
    """Kill `astream` at every eighth point and resume with `ainvoke`, with the asynchronous savers."""
    found = crashes(saver, durability, "--in-turn", "--every", str(bound))
    holds_always(found)
    assert len(found["kills"]) == ceil(164 / bound)
    if durability == "sync":
        nothing_is_lost(found["kills"])
        again = sum(len(kill["again"]) for kill in found["kills"])
        asked = sum(kill["asked_again"] or 0 for kill in found["kills"])
        assert (again, asked) == ((1, 3) if bound == 8 else (0, 1))


@pytest.mark.timeout(600)
@pytest.mark.rotating("saver")
@pytest.mark.parametrize("saver", ["sqlite", "postgres"])
@pytest.mark.parametrize("bound", [11, 1])
def test_with_exit_a_killed_run_starts_again(crashes: Crashes, saver: str, bound: int) -> None:
    found = crashes(saver, "exit", "--in-turn", "--every", str(bound))
    holds_always(found)
    assert len(found["kills"]) == ceil(98 / bound)
    for kill in found["kills"]:
        step = kill["left"]["step"]
        if step == 19:  # it had ended
            assert "checkpoint 19, uncommitted" in kill["passed"]
            assert (kill["lost"], kill["again"]) == (0, [])
        else:  # nothing is there, or an empty checkpoint, as if the message had never come
            assert step in (None, -2)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.rotating("durability")
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize(
    ("form", "preset"),
    [
        ("layer", "langchain"),
        ("layer", "wakeloop"),
        ("layer", "lesson"),
        ("graph", "loki"),
        ("graph", "cubepi"),
    ],
)
@pytest.mark.parametrize("bound", [3, 8])
def test_other_forms_at_random_points(
    crashes: Crashes, form: str, preset: str, durability: str, bound: int
) -> None:
    """With the middleware and other presets, the list is the same and no finished call is repeated."""
    found = crashes(
        "sqlite", durability, "--in-turn", "--draw", str(bound), "--form", form, "--preset", preset
    )
    whole = found["whole"]
    assert [todo["status"] for todo in whole["todos"]] == ["completed"] * 3
    assert (whole["twice"], whole["faults"], len(found["kills"])) == (0, [], bound)
    for kill in found["kills"]:
        where, known = (kill["point"], kill["message"]), set(kill["left"]["calls"])
        assert (where, kill["faults"]) == (where, [])
        if not kill["message"]:
            assert (where, kill["again"]) == (where, kill["unstored"])
        else:
            assert (where, known & set(kill["again"])) == (where, set())
        if durability == "sync":
            assert (where, kill["lost"], kill["finished"]) == (where, 0, [])
