"""Cells: every agent that runs here, and its row."""

from __future__ import annotations

import tempfile
import time
from errno import ENOSPC
from pathlib import Path
from threading import Event
from threading import enumerate as enumerate_threads
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from pydantic import SecretStr, ValidationError
from rows import STUDY

from wakeloop.bench.agents import AGENTS
from wakeloop.bench.cell import play_cell
from wakeloop.bench.journal import Row
from wakeloop.bench.meter import THREAD_NAME, RequestMeter
from wakeloop.bench.study import Cell, Study
from wakeloop.bench.task import Task
from wakeloop.errors import BenchError
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.tools.folder import ConfinedFolder

PEERS = ("create_agent", "TodoList", "deepagents")
HERE = [name for name, agent in AGENTS.items() if agent.exists and not name.startswith(PEERS)]
FORCING = {"wakeloop", "langchain", "+ wake", "+ nag", "+ guard", "+ idle rounds", "+ verify", "+ audit"}
FORCING |= {"on_question=wake", "on_question=park"}  # it stops without asking
FORCING |= {"+ verify round", "+ verify round, errs", "+ verify round, errs, twice", "+ goal", "middleware"}
WRITE = ("write_file", {"path": "notes/amber.txt", "content": "Note amber."})


def cell(agent: str, model: str = "weak", family: str = "make-files", parts: int = 5, seed: int = 1) -> Cell:
    return Cell(agent, model, family, parts, seed, 0)


def play_row(agent: str, *replies: Any, study: Study = STUDY, **values: Any) -> Row:
    """Play a cell with a scripted model."""

    def make(_name: str, _task: Task, _seed: int) -> ScriptedModel:
        return ScriptedModel(list(replies))

    return play_cell(cell(agent, **values), study, make)


ERRS = [name for name in HERE if "errs" in name]  # a verdict may be wrong, so the counts depend on the seed


@pytest.mark.slow
@pytest.mark.parametrize("agent", [name for name in HERE if name not in ("list given", *ERRS)])
def test_a_reliable_model_completes_the_job_with_any_agent(agent: str) -> None:
    row = play_cell(cell(agent), STUDY)
    asks = int(agent.removeprefix("asked ")) if agent.startswith("asked") else 0
    without_a_list = agent in ("plain", "told 5") or asks > 0
    assert (row["completed"], row["share"], row["end"], row["claims"]) == (True, 1.0, "done", True)
    assert (row["calls"], row["failed"], row["damage"], row["wakes"]) == (5, 0, 0, asks)
    assert row["listed"] == (0 if without_a_list else 5)
    # their prompts ask for two replies per item
    two = agent in ("agentparley", "loki", "lesson", "cubepi", "cubepi-strict")
    assert row["requests"] == (6 + asks if without_a_list or agent == "+ verify round" else 12 if two else 7)


@pytest.mark.slow
@pytest.mark.parametrize("agent", [name for name in HERE if name != "list given"])
def test_a_model_that_always_stops_is_recognised(agent: str) -> None:
    row = play_cell(cell(agent, "weak:stop=1"), STUDY)
    if agent in FORCING:  # each forced call does a step
        ending = "goal_met" if agent == "+ goal" else "settled"
        assert (row["completed"], row["end"], row["reason"]) == (True, "done", ending)
        return
    with_list = agent != "plain" and not agent.startswith("asked")
    assert not row["completed"]
    assert row["end"] == ("open" if with_list else "done")
    if agent == "agentparley":
        assert (row["wakes"], row["reason"]) == (25, "wake_budget")


def test_the_same_cell_is_the_same_row() -> None:
    one, two = (play_cell(cell("wakeloop", "weak:stop=0.3"), STUDY) for _ in range(2))
    assert one | {"seconds": 0} == two | {"seconds": 0}
    assert one["requests"] != play_cell(cell("wakeloop", "weak:stop=0.3", seed=2), STUDY)["requests"]


@pytest.mark.parametrize(("agent", "damage"), [("plain", 0), ("asked 1", 2), ("wakeloop", 0)])
def test_damage_is_what_was_broken_after_everything_was_done(agent: str, damage: int) -> None:
    row = play_cell(cell(agent, "weak:spoil=1"), STUDY)
    assert (row["damage"], row["completed"]) == (damage, damage == 0)


def test_a_failed_call_is_counted() -> None:
    row = play_cell(cell("plain", "weak:cannot=2,on_failure=fakes"), STUDY)
    assert (row["calls"], row["failed"], row["completed"], row["claims"]) == (5, 2, False, True)


def test_a_question_needs_no_list_and_no_second_request() -> None:
    row = play_cell(cell("wakeloop", family="question-sum", parts=0), STUDY)
    assert (row["completed"], row["requests"], row["listed"], row["calls"]) == (True, 1, 0, 0)


def test_results_are_padded() -> None:
    short, long = (play_cell(cell("plain")._replace(results=size), STUDY) for size in (0, 300))
    assert long["requests"] == short["requests"] == 6
    assert long["input"] - short["input"] > (1 + 2 + 3 + 4 + 5) * 280
    assert long["completed"]


def test_consecutive_replies_without_a_call_are_counted() -> None:
    row = play_row("asked 1", says("Later."), calls(WRITE), says("Later."), says("Done."))
    assert (row["requests"], row["wakes"], row["calls"]) == (4, 2, 1)


# -- ceilings, errors, outages ----------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["plain", "asked 5", "wakeloop"])
def test_the_ceiling_is_the_same_for_all(agent: str) -> None:
    row = play_row(agent, *[calls(WRITE)] * 7, study=STUDY.with_changes(max_requests=7))
    assert (row["end"], row["reason"], row["requests"], row["calls"]) == ("ceiling", "7 requests", 7, 7)


def test_steps_are_a_ceiling_too() -> None:
    row = play_row("wakeloop", *[calls(WRITE)] * 20, study=STUDY.with_changes(recursion_limit=12))
    assert (row["end"], row["reason"], row["requests"]) == ("open", "step_limit", 4)


@pytest.mark.parametrize("agent", ["plain", "wakeloop"])
@pytest.mark.parametrize("status", [None, 401, 429, 503])
def test_an_outage_is_not_a_result(agent: str, status: int | None) -> None:
    error = ConnectionError("no sk-0123456789abcdef at https://u:abcdef@h")
    if status:
        error.status_code = status  # type: ignore[attr-defined]
    with pytest.raises(BenchError, match="The model cannot be reached: ConnectionError") as caught:
        play_row(agent, calls(WRITE), error)
    assert "abcdef" not in str(caught.value)


@pytest.mark.parametrize("agent", ["plain", "wakeloop"])
def test_an_endless_request_is_an_outage_and_a_late_reply_does_nothing(
    agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(RequestMeter, "waiting", 181.0)
    silent = Event()

    def late(_request: object) -> AIMessage:
        assert silent.wait(30)
        return calls(WRITE)

    model = ScriptedModel([late, calls(WRITE), says("Done.")])
    with pytest.raises(BenchError) as caught:
        play_cell(cell(agent), STUDY, lambda *_: model)
    assert str(caught.value) == (
        "The model did not answer within 180 seconds; --timeout sets how long to wait for a request."
    )
    silent.set()
    for thread in enumerate_threads():
        if thread.name == THREAD_NAME:
            thread.join(30)
            assert not thread.is_alive()
    assert (len(model.requests), list(tmp_path.iterdir())) == (1, [])  # no request is paid for after its time


def test_a_requests_time_covers_it_from_beginning_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    meter, one, two = RequestMeter(9, lambda _said: None), uuid4(), uuid4()
    for run, at in ((one, 1.0), (two, 3.0)):
        now[0] = at
        meter.on_chat_model_start({}, [[]], run_id=run)
    now[0] = 10.0
    waited = [meter.waiting]
    meter.on_llm_error(KeyboardInterrupt(), run_id=one)
    waited.append(meter.waiting)
    meter.on_llm_end(LLMResult(generations=[[ChatGeneration(message=says("Done."))]]), run_id=two)
    assert [*waited, meter.waiting] == [9.0, 7.0, 0.0]


@pytest.mark.parametrize("agent", ["plain", "wakeloop"])
def test_a_full_disk_is_not_the_agents_fault(agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_args: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(ConfinedFolder, "write", write)
    with pytest.raises(OSError, match="No space left"):
        play_row(agent, calls(WRITE), says("Done."))


@pytest.mark.parametrize("agent", ["plain", "wakeloop"])
def test_a_request_that_the_server_refuses_is_counted(agent: str) -> None:
    error = ValueError("too long")
    error.status_code = 400  # type: ignore[attr-defined]
    row = play_row(agent, calls(WRITE), error)
    assert (row["end"], row["completed"], row["requests"], row["calls"]) == ("error", False, 2, 1)
    assert row["reason"] == "ValueError: too long"


@pytest.mark.parametrize("agent", ["plain", "wakeloop"])
def test_no_row_holds_a_key_that_a_server_repeats(agent: str) -> None:
    class Keyed(ScriptedModel):
        """A model with a key, as a client has one."""

        api_key: SecretStr = SecretStr("hidden-key-of-mine")

    error = ValueError("The key hidden-key-of-mine may not do this.")
    error.status_code = 422  # type: ignore[attr-defined]
    row = play_cell(cell(agent), STUDY, lambda *_: Keyed([calls(WRITE), error]))
    assert row["reason"] == "ValueError: The key … may not do this."


@pytest.mark.parametrize("agent", ["plain", "wakeloop"])
def test_a_refused_first_request_says_nothing_about_the_agent(agent: str) -> None:
    error = ValueError("small does not support tools")
    error.status_code = 400  # type: ignore[attr-defined]
    with pytest.raises(BenchError) as caught:
        play_row(agent, error)
    assert (
        str(caught.value) == "The model refuses the first request: ValueError: small does not support tools"
    )


@pytest.mark.parametrize(("agent", "end", "requests"), [("plain", "error", 2), ("wakeloop", "done", 3)])
def test_invalid_calls_in_a_reply_are_the_models_fault(agent: str, end: str, requests: int) -> None:
    """The client raises; this package asks again."""
    with pytest.raises(ValidationError) as caught:
        AIMessage("", tool_calls=[{"name": "write_file", "args": ["a"], "id": "1"}])
    row = play_row(agent, calls(WRITE), caught.value, says("Done."))
    assert (row["end"], row["requests"], row["calls"]) == (end, requests, 1)


@pytest.mark.parametrize(("agent", "end", "requests"), [("plain", "error", 2), ("wakeloop", "done", 3)])
@pytest.mark.parametrize(
    "said",
    ["Error code: 500 - Failed to parse tool call arguments as JSON: x", "error parsing tool call: raw='{'"],
)
def test_a_call_that_the_server_cannot_read_is_the_models_fault(
    agent: str, end: str, requests: int, said: str
) -> None:
    """As llama.cpp and Ollama answer it; this package asks again."""
    error = ValueError(said)
    error.status_code = 500  # type: ignore[attr-defined]
    row = play_row(agent, calls(WRITE), error, says("Done."))
    assert (row["end"], row["requests"], row["calls"]) == (end, requests, 1)
    assert (row["reason"] == f"ValueError: {said}") is (end == "error")


def test_the_plain_loop_answers_whatever_a_model_calls() -> None:
    row = play_row(
        "plain",
        calls(("no_such_tool", {})),
        calls(("write_file", {"path": "../outside.txt", "content": "x"})),
        calls(("write_file", {"nonsense": 1})),
        says("Done."),
    )
    assert (row["end"], row["requests"], row["calls"], row["failed"]) == ("done", 4, 1, 1)


def test_usage_is_the_servers_or_else_estimated_from_the_size() -> None:
    told = {
        "input_tokens": 900,
        "output_tokens": 7,
        "total_tokens": 907,
        "input_token_details": {"cache_read": 64},
    }
    row = play_row("plain", says("Done.").model_copy(update={"usage_metadata": told}))
    assert (row["input"], row["cached"], row["output"], row["estimated"]) == (900, 64, 7, False)
    row = play_row("plain", calls(WRITE), says("Done."))
    assert row["estimated"]
    assert row["input"] > row["cached"] > 0
