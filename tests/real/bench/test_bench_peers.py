"""Peers in a process of their own: the same model, tools and meter as every other agent."""

from __future__ import annotations

import time
from importlib.metadata import version
from pathlib import Path
from subprocess import CompletedProcess
from threading import Event, Thread
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from rows import STUDY

from wakeloop.bench import agents, peers
from wakeloop.bench.agents import MOST_RESTARTS, _peer_agent
from wakeloop.bench.cell import play_cell
from wakeloop.bench.journal import Row
from wakeloop.bench.meter import RequestMeter
from wakeloop.bench.peers import DEEPAGENTS, Peer, end_processes
from wakeloop.bench.plan import Cell
from wakeloop.bench.task import Task
from wakeloop.errors import BenchError
from wakeloop.testing import ScriptedModel, calls, says

HERE = Peer((f"langchain=={version('langchain')}",))
WRITE = ("write_file", {"path": "notes/amber.txt", "content": "Note amber."})
OPEN = ("write_todos", {"todos": [{"content": "amber", "status": "pending"}]})
CLOSED = ("write_todos", {"todos": [{"content": "amber", "status": "completed"}]})


@pytest.fixture(autouse=True, scope="module")
def ended() -> Any:
    """One process for all tests: it takes seconds to start."""
    yield
    end_processes()


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Plays a cell with one of the peer's agents and a scripted model, which is returned too."""

    def playing(
        name: str, *replies: AIMessage, peer: Peer = HERE, **changes: Any
    ) -> tuple[Row, ScriptedModel]:
        monkeypatch.setattr(agents, "AGENTS", {"peer": _peer_agent(peer, name, "a peer")})
        model = ScriptedModel(list(replies))

        def make(_name: str, _task: Task, _seed: int) -> ScriptedModel:
            return model

        return play_cell(
            Cell("peer", "weak", "make-files", 1, 1, 0), STUDY.with_changes(**changes), make
        ), model

    return playing


@pytest.mark.slow
def test_an_agent_without_a_list(played: Any) -> None:
    row, model = played("create_agent", calls(WRITE), says("Done."))
    assert (row["end"], row["requests"], row["calls"], row["failed"], row["listed"]) == ("done", 2, 1, 0, 0)
    assert {tool["function"]["name"] for tool in model.tools} >= {"read_file", "write_file", "move_file"}
    assert "write_todos" not in {tool["function"]["name"] for tool in model.tools}
    assert [message.type for message in model.requests[1]] == ["human", "ai", "tool"]
    assert row["input"] > row["cached"] > 0


def test_a_refused_call_is_a_result_that_the_model_reads(played: Any) -> None:
    row, model = played("create_agent", calls(("write_file", {"path": "../x", "content": ""})), says("Done."))
    assert (row["calls"], row["failed"], row["end"]) == (1, 1, "done")
    assert model.requests[1][-1].status == "error"


def test_a_list_with_open_items_is_a_signal(played: Any) -> None:
    row, _ = played("todos", calls(OPEN), says("All done."))
    assert (row["end"], row["listed"], row["wakes"], row["claims"]) == ("open", 1, 0, True)


def test_the_loop_around_it_begins_it_again_while_items_are_open(played: Any) -> None:
    row, model = played(
        "looped", calls(OPEN), says("Later."), calls(WRITE), says("Later."), calls(CLOSED), says("Done.")
    )
    assert (row["end"], row["wakes"], row["requests"], row["calls"]) == ("done", 2, 6, 1)
    assert model.requests[2][-1].text.startswith("Go on")


@pytest.mark.slow
def test_a_rubric_is_graded_by_the_same_model(played: Any) -> None:
    def graded(passed: bool) -> AIMessage:
        verdict = {"name": "Every part is done.", "passed": passed} | ({} if passed else {"gap": "amber"})
        result = "satisfied" if passed else "needs_revision"
        return calls(("GraderResponse", {"result": result, "explanation": "Seen.", "criteria": [verdict]}))

    row, model = played(
        "deep rubric",
        says("Done."),
        graded(False),
        calls(WRITE),
        says("Done."),
        graded(True),
        peer=DEEPAGENTS,
    )
    assert (row["end"], row["reason"], row["wakes"], row["requests"]) == ("done", "satisfied", 1, 5)
    assert "GraderResponse" in {tool["function"]["name"] for tool in model.bound[1]}


def test_and_not_for_ever(played: Any) -> None:
    row, _ = played("looped", calls(OPEN), *[says("Later.")] * (1 + MOST_RESTARTS))
    assert (row["end"], row["wakes"], row["requests"]) == ("open", MOST_RESTARTS, 2 + MOST_RESTARTS)


def test_ceilings_are_the_same(played: Any) -> None:
    row, _ = played("create_agent", *[calls(WRITE)] * 3, max_requests=3)
    assert (row["end"], row["reason"], row["requests"], row["calls"]) == ("ceiling", "3 requests", 3, 3)
    row, _ = played("create_agent", *[calls(WRITE)] * 9, recursion_limit=10)
    assert (row["end"], row["requests"]) == ("ceiling", 5)


def test_an_outage_reaches_through_and_the_process_plays_on(played: Any) -> None:
    with pytest.raises(BenchError, match="The model cannot be reached: ConnectionError: gone"):
        played("create_agent", calls(WRITE), ConnectionError("gone"))
    row, _ = played("create_agent", says("Done."))
    assert row["end"] == "done"


@pytest.mark.slow
def test_a_silent_model_ends_the_process_that_waits_for_it_and_another_is_started(
    played: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent, waiting = Event(), peers.process_of(HERE).process

    def late(_request: object) -> AIMessage:
        assert silent.wait(30)
        return says("Done.")

    with monkeypatch.context() as patched:
        patched.setattr(RequestMeter, "waiting", 181.0)
        with pytest.raises(BenchError, match="The model did not answer within 180 seconds"):
            played("create_agent", late)
    silent.set()
    assert waiting.poll() is not None
    row, _ = played("create_agent", says("Done."))
    assert row["end"] == "done"


@pytest.mark.slow
def test_a_process_that_dies_is_a_sentence_and_another_is_started(
    played: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "dead.py"
    program.write_text("import sys; print('{}', flush=True); sys.stdin.readline(); sys.exit('out of luck')")
    end_processes()
    with monkeypatch.context() as patched:
        patched.setattr(peers, "PROGRAM", program)
        with pytest.raises(BenchError, match="A peer's process ended: out of luck"):
            played("create_agent", says("Done."))
    row, _ = played("create_agent", says("Done."))
    assert row["end"] == "done"


def test_two_runs_at_once_make_one_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peer, made, told = Peer(("langchain==0.0.0",)), [], []

    def create(folder: Path, **_options: Any) -> None:
        made.append(folder)
        folder.mkdir(parents=True)
        time.sleep(0.2)  # the other comes meanwhile

    monkeypatch.setattr(peers.venv, "create", create)
    monkeypatch.setattr(peers.subprocess, "run", lambda *_args, **_options: CompletedProcess((), 0))
    runs = [Thread(target=peer.prepare, args=(tmp_path, told.append)) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert (len(made), len(told)) == (1, 1)


def test_an_environment_is_made_where_the_versions_are_not_here(tmp_path: Path) -> None:
    other = Peer(("langchain==0.0.0",))
    assert HERE.is_here
    assert not other.is_here
    assert other.python(tmp_path).is_relative_to(tmp_path)
    assert not HERE.python(tmp_path).is_relative_to(tmp_path)
    assert other.python(tmp_path) != DEEPAGENTS.python(tmp_path)
