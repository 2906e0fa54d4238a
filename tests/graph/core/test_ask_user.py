"""The tool `ask_user`."""

from typing import Any

import pytest
from agents import Make
from langgraph.types import Command

from wakeloop.testing import calls, says
from wakeloop.tools import ask_user

QUESTION = "Which files shall I delete?"


def asked(thread: Make, answer: Any, **arguments: Any) -> Any:
    """Return a thread that has asked and got the answer."""
    agent = thread(calls(("ask_user", {"question": QUESTION, **arguments})), says("Done."), tools=[ask_user])
    agent.run("Go.")
    assert (agent.session["state"], agent.session["on"]) == ("waiting", "human")
    agent.run(Command(resume=answer))
    return agent


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("The old ones.", "The old ones."),
        ("yes", "yes"),
        ({"decisions": [{"type": "respond", "message": "None."}]}, "None."),
    ],
)
def test_any_words_are_the_answer(thread: Make, answer: Any, read: str) -> None:
    assert asked(thread, answer).results() == [("success", read)]


@pytest.mark.parametrize(
    ("answer", "read"),
    [("2", "all"), (" 1 ", "old"), ("3", "3"), ("0", "0"), ("old", "old"), ("Both.", "Both.")],
)
def test_a_choice_may_be_given_by_its_number(thread: Make, answer: str, read: str) -> None:
    assert asked(thread, answer, choices=["old", "all"]).results() == [("success", read)]


def test_what_the_person_sees(thread: Make) -> None:
    agent = thread(calls(("ask_user", {"question": QUESTION, "choices": ["old", "all"]})), tools=[ask_user])
    agent.run("Go.")
    [interrupt] = agent.snapshot.interrupts
    assert interrupt.value == {
        "action_requests": [
            {
                "name": "ask_user",
                "args": {"question": QUESTION, "choices": ["old", "all"]},
                "description": f"{QUESTION}\n  1. old\n  2. all",
            }
        ],
        "review_configs": [{"action_name": "ask_user", "allowed_decisions": ["respond"]}],
        "on": "human",
    }


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_an_empty_question_is_not_asked(thread: Make, mode: Any) -> None:
    both = calls(("ask_user", {"question": " "}), ("ask_user", {"question": QUESTION}))
    agent = thread(both, says("Done."), tools=[ask_user], interrupt_mode=mode)
    agent.run("Go.")
    assert len(agent.snapshot.interrupts) == 1
    agent.run(Command(resume="None."))
    assert agent.results() == [("error", "Error: question must not be empty"), ("success", "None.")]
