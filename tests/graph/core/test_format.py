"""response_format: one more request at a settled end."""

from typing import Any, TypedDict

import pytest
from agents import END, START, TODO, WAKE, Make, done, kind, session, update, write
from langchain_core.tools import tool
from langgraph.types import Command
from pydantic import BaseModel

from wakeloop import answer_of
from wakeloop.testing import calls, says

AGAIN = ["finalization_guard", "call_model"]
GOOD = '{"city": "Oslo", "people": 7}'
VALUE = {"city": "Oslo", "people": 7}


class City(BaseModel):
    """A city."""

    city: str
    people: int


class CityDict(TypedDict):
    """A city."""

    city: str
    people: int


SCHEMA = {
    "title": "City",
    "description": "A city.",
    "type": "object",
    "properties": {"city": {"type": "string"}},
}


@pytest.mark.parametrize("format_", [City, CityDict, SCHEMA])
def test_a_settled_run_makes_one_more_request_with_the_format(format_: Any, thread: Make) -> None:
    agent = thread(write("a"), done(1), "bye", GOOD, response_format=format_)
    assert agent.walk("go") == [*START, *TODO, *TODO, *AGAIN, *END]
    assert agent.values["structured_response"] == VALUE
    assert [len(bound) for bound in agent.model.bound] == [3, 3, 3, 3]  # over a history with calls
    assert ["response_format" in options for options in agent.model.options] == [False, False, False, True]
    assert agent.kinds[-3:] == ["ai", "format", "format"]
    assert [m.type for m in agent.messages[-3:]] == ["ai", "human", "ai"]
    assert agent.messages[-1].text == GOOD
    assert agent.session == session("dormant", "settled", 0, budget=26)
    assert answer_of(agent.values) == "bye"


def made_with(people: str, city: str = "Rome") -> str:
    return f'{{"city": "{city}", "people": {people}}}'


def test_halves_of_surrogate_pairs_are_replaced_in_the_value(thread: Make) -> None:
    agent = thread("hi", made_with("1", r"a\ud800"), response_format=City)
    assert agent.run("go")["structured_response"] == {"city": "a\ufffd", "people": 1}


class Wide(BaseModel):
    """A city of any size."""

    city: str
    people: float | int


@pytest.mark.parametrize(
    ("people", "fault"),
    [
        ("1" + "0" * 30, "a number in the fields is too large; send it as a string"),
        ("NaN", "nan in the fields is not valid JSON; send it as a string"),
        ("1e400", "inf in the fields is not valid JSON; send it as a string"),
    ],
)
def test_a_value_that_no_checkpoint_or_client_accepts_is_asked_for_again(
    people: str, fault: str, thread: Make
) -> None:
    agent = thread("hi", made_with(people), made_with("1"), response_format=Wide)
    assert agent.run("go")["structured_response"] == {"city": "Rome", "people": 1}
    assert agent.kinds == ["human", "ai", "format", "format", "retry", "format"]
    assert fault in agent.messages[-2].text


def test_it_is_not_a_turn(thread: Make) -> None:
    agent = thread(write("a"), ".", done(1), ".", GOOD, response_format=City, change={"max_wake_cycles": 1})
    assert agent.walk("go") == [*START, *TODO, *WAKE, *TODO, *AGAIN, *END]
    assert (agent.ledger["wake_cycles"], agent.ledger["idle_wakes"]) == (1, 0)
    assert agent.session == session("dormant", "settled", 0, 1, 2)


@pytest.mark.parametrize(
    ("replies", "changes", "reason"),
    [
        ([write("a"), "."], {"max_wake_cycles": 0, "guard_retries": 0}, "disabled"),
        ([""] * 5, {}, "empty_reply"),
        ([calls(("peer", {}))] * 5, {}, "malformed_calls"),
        ([says("x", finish_reason="length")] * 5, {}, "truncated"),
    ],
)
def test_at_other_endings_the_value_is_none(replies: Any, changes: Any, reason: str, thread: Make) -> None:
    agent = thread(replies, response_format=City, change=changes)
    output = agent.run("go")
    assert output["todo_session"]["reason"] == reason
    assert output["structured_response"] is None
    assert not any("response_format" in options for options in agent.model.options)


def test_a_value_of_an_earlier_activation_is_not_shown_again(thread: Make) -> None:
    agent = thread("hi", GOOD, write("a"), ".", ".", response_format=City, change={"max_wake_cycles": 0})
    agent.run("go")
    assert agent.run("more")["structured_response"] is None


def test_each_settled_activation_asks_again(thread: Make) -> None:
    agent = thread("hi", GOOD, "hi", '{"city": "Rome", "people": 1}', response_format=City)
    agent.run("go")
    assert agent.run("more")["structured_response"] == {"city": "Rome", "people": 1}


def test_a_kick_on_a_settled_thread_requests_nothing(thread: Make) -> None:
    agent = thread("hi", GOOD, response_format=City)
    agent.run("go")
    assert agent.walk({}) == ["activate", "finalization_guard"]


def test_a_result_that_does_not_fit_is_asked_for_again(thread: Make) -> None:
    agent = thread("hi", "no json", '{"city": "Oslo"}', GOOD, response_format=City)
    assert agent.walk("go") == [*START, *AGAIN * 3, *END]
    assert agent.values["structured_response"] == VALUE
    assert [kind(m) for m in agent.messages if m.type == "human"] == ["human", "format", "retry", "retry"]
    assert "people" in agent.messages[-2].text


def test_after_a_correction_a_settled_end_is_formatted_too(thread: Make) -> None:
    agent = thread(
        write("a"),
        ".",
        update(1, "blocked", "why"),
        ".",
        GOOD,
        response_format=City,
        change={"max_wake_cycles": 0},
    )
    agent.run("go")
    assert agent.values["structured_response"] == VALUE


def test_a_waiting_session_is_not_formatted(thread: Make) -> None:
    @tool
    def ask() -> Command[Any]:
        """Ask a peer."""
        return Command(update={"waiting_on": ["q"]})

    agent = thread(calls(("ask", {})), "I wait", tools=[ask], response_format=City)
    agent.run("go")
    assert agent.session["reason"] == "waiting"


def test_a_model_that_raises_in_the_format_request_is_asked_again_at_a_resume(thread: Make) -> None:
    agent = thread("hi", OSError("no network"), GOOD, response_format=City)
    with pytest.raises(OSError, match="no network"):
        agent.run("go")
    assert agent.walk(None) == ["call_model", *END]
    assert agent.values["structured_response"] == VALUE
