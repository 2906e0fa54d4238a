"""Truth tables of the forks."""

from typing import Any, get_type_hints

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Send

from wakeloop.routes import after_activate, after_call_model, after_guard, after_round
from wakeloop.testing import calls, says


def ledger(**values: Any) -> Any:
    return {"todo_ledger": values}


@pytest.mark.parametrize("step", ["call_model", "finalization_guard"])
def test_after_activate(step: str) -> None:
    assert after_activate(ledger(next=step)) == step


@pytest.mark.parametrize("step", ["nag", "call_model", "finalization_guard"])
def test_after_a_round_goes_where_the_reply_said(step: str) -> None:
    assert after_round(ledger(next="round", after=step)) == step


@pytest.mark.parametrize("step", ["wake", "call_model", "__end__"])
def test_after_the_guard(step: str) -> None:
    assert after_guard(ledger(next=step)) == step


def test_a_text_goes_to_the_guard() -> None:
    assert after_call_model({**ledger(next="finalization_guard"), "messages": [says("x")]}) == [
        "finalization_guard"
    ]


def test_each_external_call_is_sent_alone_and_todo_calls_together() -> None:
    reply = calls(("a", {"x": 1}, "1"), ("todo_list", {}, "2"), ("b", {}, "3"), ("todo_list", {}, "4"))
    state: Any = {
        **ledger(next="round", todo_calls=["2", "4"], faults={"3": "Error: no"}),
        "messages": [HumanMessage("go"), reply],
    }
    first, second, third = after_call_model(state)
    assert isinstance(first, Send)
    assert isinstance(second, Send)
    assert (first.node, first.arg) == (
        "run_tools",
        {"name": "a", "args": {"x": 1}, "id": "1", "type": "tool_call"},
    )
    assert (second.node, second.arg["id"], second.arg["fault"]) == ("run_tools", "3", "Error: no")
    assert third == "validate_todos"


def test_todo_calls_alone_send_nothing() -> None:
    state: Any = {**ledger(next="round", todo_calls=["1"]), "messages": [calls(("todo_list", {}, "1"))]}
    assert after_call_model(state) == ["validate_todos"]


@pytest.mark.parametrize("fork", [after_activate, after_round, after_guard])
def test_a_fork_is_typed_with_a_bare_literal(fork: Any) -> None:
    assert str(get_type_hints(fork)["return"]).startswith("typing.Literal[")
