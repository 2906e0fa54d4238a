"""Truth tables of the routers."""

from typing import Any, get_args, get_type_hints

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Send

from wakeloop.loop.ruling import Ruling
from wakeloop.routes import after_activate, after_call_model, after_guard, after_round, after_todos
from wakeloop.testing import calls, says


def ledger(**values: Any) -> Any:
    return {"todo_ledger": values}


@pytest.mark.parametrize(
    ("notes", "word"),
    [
        ({}, "something to answer"),
        ({"unasked": True}, "nothing to answer"),
        ({"unasked": True, "end": "wake_budget"}, "nothing to answer"),
        ({"refused": "No."}, "something to answer"),  # `call_model` raises it
    ],
)
def test_after_activate(notes: Any, word: str) -> None:
    assert after_activate(ledger(**notes)) == word


@pytest.mark.parametrize(
    ("notes", "word"),
    [
        ({"nag": False}, "continue"),
        ({"nag": True}, "reminder due"),
        ({"nag": False, "end": None}, "continue"),
        ({"nag": False, "end": "step_limit"}, "run ends"),
        ({"nag": True, "end": "malformed_calls"}, "run ends"),
        ({}, "run ends"),  # nobody ran the round
    ],
)
def test_after_a_round(notes: Any, word: str) -> None:
    assert after_round(notes) == word


@pytest.mark.parametrize("ruling", get_args(Ruling))
def test_after_the_guard(ruling: str) -> None:
    asks = dict.fromkeys(("correct", "explain", "report", "format", "retry", "ask", "audit"), "ask again")
    words = {"wake": "open, within budget", "steer": "ask again", **asks}
    assert after_guard(ledger(ruling=ruling)) == words.get(ruling, "stop")


def test_a_reply_without_calls_goes_to_the_guard() -> None:
    assert after_call_model({**ledger(), "messages": [says("x")]}) == ["finalization_guard"]


@pytest.mark.parametrize(
    ("notes", "messages"),
    [
        ({"nag": False}, []),  # the messages were removed by hand
        ({"nag": False}, [HumanMessage("go")]),
        ({"nag": False}, [says("x")]),
        ({}, [calls(("a", {}, "1"))]),  # calls, but no notes of a round
    ],
)
def test_a_round_that_was_edited_by_hand_goes_to_the_guard(notes: Any, messages: Any) -> None:
    assert after_call_model({**ledger(**notes), "messages": messages}) == ["finalization_guard"]


def test_each_external_call_is_sent_alone_and_todo_calls_together() -> None:
    reply = calls(("a", {"x": 1}, "1"), ("todo_list", {}, "2"), ("b", {}, "3"), ("todo_list", {}, "4"))
    state: Any = {
        **ledger(nag=False, todo_calls=["2", "4"], faults={"3": "Error: no"}),
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


def test_calls_next_to_a_list_wait_if_a_plan_may_need_approval() -> None:
    reply = calls(("a", {"x": 1}, "1"), ("todo_write", {"items": ["b"]}, "2"))
    state: Any = {**ledger(nag=False, todo_calls=["2"], plan="due"), "messages": [reply]}
    assert after_call_model(state) == ["validate_todos"]


@pytest.mark.parametrize(
    ("notes", "ways"),
    [
        ({"nag": False}, ["continue"]),
        ({"nag": True, "plan": "stands", "held": []}, ["reminder due"]),
        ({"nag": False, "plan": "judged", "verdicts": [[0, "1", ""]]}, ["plan or items to judge"]),
        ({"nag": False, "plan": "rejected"}, ["continue"]),
        ({"nag": False, "plan": "edited", "end": "step_limit"}, ["run ends"]),
    ],
)
def test_after_todo_calls(notes: Any, ways: list[str]) -> None:
    assert after_todos(ledger(**notes)) == ways


def test_after_an_approved_plan_the_waiting_calls_are_sent() -> None:
    made: Any = {"name": "a", "args": {}, "id": "1", "type": "tool_call"}
    [sent] = after_todos(ledger(nag=False, plan="stands", held=[made]))
    assert isinstance(sent, Send)
    assert (sent.node, sent.arg) == ("run_tools", made)


def test_todo_calls_alone_send_nothing() -> None:
    state: Any = {**ledger(nag=False, todo_calls=["1"]), "messages": [calls(("todo_list", {}, "1"))]}
    assert after_call_model(state) == ["validate_todos"]


@pytest.mark.parametrize("fork", [after_activate, after_round, after_guard])
def test_a_router_is_typed_with_a_bare_literal(fork: Any) -> None:
    assert str(get_type_hints(fork)["return"]).startswith("typing.Literal[")
