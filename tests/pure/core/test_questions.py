"""Which answer belongs to which question, as plain values."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command, Interrupt, PregelTask, StateSnapshot

from wakeloop.sessions import choose_next_input, find_early_events, update_question_notes
from wakeloop.sessions.questions import ANY_QUESTION, answer_fault

GO: Any = {"kind": "human", "id": "go", "text": "go"}
NAMED: Any = {"kind": "human", "id": "named", "text": "to b", "correlation_id": "b"}
WRONG: Any = {"kind": "human", "id": "wrong", "text": "to c", "correlation_id": "c"}
BLANK: Any = {"kind": "human", "id": "blank", "text": " "}
PEER: Any = {"kind": "peer_message", "id": "peer", "text": "?", "sender": "p", "correlation_id": "c"}


def parked(*questions: str, running: bool = False) -> StateSnapshot:
    asked = tuple(Interrupt("?", id=question) for question in questions)
    tasks = (PregelTask("1", "run_tools", ("x",), None, asked),) if asked or running else ()
    return StateSnapshot({}, (), {"configurable": {}}, None, None, None, tasks, asked)


def chosen(snapshot: StateSnapshot, *events: Any, **more: Any) -> tuple[Any, list[str], list[str]]:
    """Return the resumed answers or the run, and the ids of held and refused events."""
    step = choose_next_input(snapshot, events, **more)
    given = step.input.resume if isinstance(step.input, Command) else step.input
    if isinstance(given, dict) and "todo_inbox" in given:
        given = [event["id"] for event in given["todo_inbox"]]
    assert step.run or not step.taken
    return given if step.run else "nothing", [e["id"] for e in step.held], [e["id"] for e, _ in step.refused]


NO = frozenset[tuple[str, str]]()


@pytest.mark.parametrize(
    ("events", "before", "said"),
    [
        ([GO], NO, ({"a": "go"}, [], [])),
        ([GO], None, ("nothing", ["go"], [])),  # the order is unknown, so only a name counts
        ([GO], {("go", "a")}, ({"b": "go"}, [], [])),
        ([GO], {("go", "a"), ("go", "b")}, ("nothing", ["go"], [])),
        ([GO, NAMED], {("go", "a"), ("go", "b")}, ({"b": "to b"}, ["go"], [])),
        ([NAMED], {("named", "b")}, ({"b": "to b"}, [], [])),  # a name needs no order
        ([NAMED], None, ({"b": "to b"}, [], [])),
        ([WRONG, GO], NO, ({"a": "go"}, [], ["wrong"])),
        ([WRONG], NO, ("nothing", [], ["wrong"])),
        ([BLANK, PEER], NO, ("nothing", ["blank", "peer"], [])),
        ([], NO, ("nothing", [], [])),
    ],
)
def test_at_two_questions(events: Any, before: Any, said: Any) -> None:
    order = None if before is None else frozenset(before)
    assert chosen(parked("a", "b"), *events, early=order) == said


def test_with_no_question_open_a_named_answer_is_refused_and_the_rest_is_input() -> None:
    assert chosen(parked(), GO, NAMED, PEER) == (["go", "peer"], [], ["named"])
    assert chosen(parked(), NAMED) == ("nothing", [], ["named"])


def test_a_run_under_way_continues_before_anything_is_judged() -> None:
    assert chosen(parked(running=True), GO, WRONG) == (None, ["go", "wrong"], [])


def test_a_question_keeps_the_number_it_was_first_noted_with() -> None:
    first = update_question_notes({}, ["a", "b"], 7)
    assert first == {"a": 7, "b": 7}
    assert update_question_notes(first, ["b", "c"], 9) == {"b": 7, "c": 9}
    assert update_question_notes(first, [], 9) == {}
    assert update_question_notes({ANY_QUESTION: 4}, ["a"], 9) == {"a": 4}  # damaged notes


def test_anything_with_a_questions_number_or_a_smaller_one_came_before_it() -> None:
    numbered = [(6, GO), (7, NAMED), (8, WRONG)]
    assert find_early_events({"a": 7, "b": 5}, numbered) == {("go", "a"), ("named", "a")}


def test_a_refusal_is_one_sentence() -> None:
    told = "The answer names question 'c', but the session "
    assert answer_fault(WRONG, []) == f"{told}asks nothing now. Leave the id out to send a message."
    assert answer_fault(WRONG, ["a", "b"]) == f"{told}asks a, b. Name one of those."
    assert answer_fault(WRONG, ["a", "b", "d", "e"]) == f"{told}asks a, b, d, …. Name one of those."
    assert answer_fault(GO, []) is answer_fault(PEER, []) is answer_fault(NAMED, ["b"]) is None
