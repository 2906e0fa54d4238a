"""Peers: the same model, tools and meter as every other agent."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from rows import STUDY

from wakeloop.bench.agents import MOST_RESTARTS
from wakeloop.bench.cell import play_cell
from wakeloop.bench.journal import Row
from wakeloop.bench.study import Cell
from wakeloop.bench.task import Task
from wakeloop.errors import BenchError
from wakeloop.testing import ScriptedModel, calls, says

WRITE = ("write_file", {"path": "notes/amber.txt", "content": "Note amber."})
OPEN = ("write_todos", {"todos": [{"content": "amber", "status": "pending"}]})
CLOSED = ("write_todos", {"todos": [{"content": "amber", "status": "completed"}]})


def play(name: str, *replies: AIMessage | type[Exception], **changes: Any) -> tuple[Row, ScriptedModel]:
    """Play a cell with an agent and a scripted model, which is returned too."""
    model = ScriptedModel(list(replies))

    def make(_name: str, _task: Task, _seed: int) -> ScriptedModel:
        return model

    return play_cell(Cell(name, "weak", "make-files", 1, 1, 0), STUDY.with_changes(**changes), make), model


@pytest.mark.slow
def test_an_agent_without_a_list() -> None:
    row, model = play("create_agent", calls(WRITE), says("Done."))
    assert (row["end"], row["requests"], row["calls"], row["failed"], row["listed"]) == ("done", 2, 1, 0, 0)
    assert {tool["function"]["name"] for tool in model.tools} >= {"read_file", "write_file", "move_file"}
    assert "write_todos" not in {tool["function"]["name"] for tool in model.tools}
    assert [message.type for message in model.requests[1]] == ["human", "ai", "tool"]
    assert row["input"] > row["cached"] > 0


def test_a_refused_call_is_a_result_that_the_model_reads() -> None:
    row, model = play("create_agent", calls(("write_file", {"path": "../x", "content": ""})), says("Done."))
    assert (row["calls"], row["failed"], row["end"]) == (1, 1, "done")
    assert model.requests[1][-1].status == "error"


def test_a_list_with_open_items_is_a_signal() -> None:
    row, _ = play("TodoList", calls(OPEN), says("All done."))
    assert (row["end"], row["listed"], row["wakes"], row["claims"]) == ("open", 1, 0, True)


def test_the_loop_around_it_restarts_it_while_items_are_open() -> None:
    row, model = play(
        "TodoList, looped",
        calls(OPEN),
        says("Later."),
        calls(WRITE),
        says("Later."),
        calls(CLOSED),
        says("Done."),
    )
    assert (row["end"], row["wakes"], row["requests"], row["calls"]) == ("done", 2, 6, 1)
    assert model.requests[2][-1].text.startswith("Go on")


@pytest.mark.slow
def test_a_rubric_is_graded_by_the_same_model() -> None:
    def graded(passed: bool) -> AIMessage:
        verdict = {"name": "Every part is done.", "passed": passed} | ({} if passed else {"gap": "amber"})
        result = "satisfied" if passed else "needs_revision"
        return calls(("GraderResponse", {"result": result, "explanation": "Seen.", "criteria": [verdict]}))

    row, model = play(
        "deepagents + rubric",
        says("Done."),
        graded(False),
        calls(WRITE),
        says("Done."),
        graded(True),
    )
    assert (row["end"], row["reason"], row["wakes"], row["requests"]) == ("done", "satisfied", 1, 5)
    assert "GraderResponse" in {tool["function"]["name"] for tool in model.bound[1]}


def test_it_is_not_restarted_forever() -> None:
    row, _ = play("TodoList, looped", calls(OPEN), *[says("Later.")] * (1 + MOST_RESTARTS))
    assert (row["end"], row["wakes"], row["requests"]) == ("open", MOST_RESTARTS, 2 + MOST_RESTARTS)


def test_ceilings_are_the_same() -> None:
    row, _ = play("create_agent", *[calls(WRITE)] * 3, max_requests=3)
    assert (row["end"], row["reason"], row["requests"], row["calls"]) == ("ceiling", "3 requests", 3, 3)
    row, _ = play("create_agent", *[calls(WRITE)] * 9, recursion_limit=10)
    assert (row["end"], row["requests"]) == ("ceiling", 5)


def test_an_outage_reaches_through() -> None:
    with pytest.raises(BenchError, match="The model cannot be reached: ConnectionError"):
        play("create_agent", calls(WRITE), ConnectionError)


@pytest.mark.slow
def test_an_outage_that_an_agent_swallows_is_not_a_result() -> None:
    with pytest.raises(BenchError, match="The model cannot be reached: ConnectionError"):
        play("deepagents + rubric", says("Done."), ConnectionError)
