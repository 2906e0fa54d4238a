"""A thread on hold: nothing but a person's message or a release moves it (rule 26)."""

from typing import Any

import pytest
from agents import Make, done, write
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import StateSnapshot

from wakeloop import (
    ArgumentError,
    EditError,
    InputError,
    create_todo_agent,
    hold_thread,
    release_thread,
)
from wakeloop.sessions import choose_next_input
from wakeloop.testing import ScriptedModel, calls
from wakeloop.tools import ask_user

PARKED = {"max_wake_cycles": 0, "guard_retries": 0}


def held(thread: Make, *replies: Any) -> Any:
    """Return a thread on hold with one item open."""
    agent = thread(write("a"), "Later.", *replies, change=PARKED)
    agent.run("Go.")
    assert hold_thread(agent.graph, agent.at())
    assert not hold_thread(agent.graph, agent.at())
    session = agent.session
    assert (session["state"], session["reason"], session["on"]) == ("waiting", "waiting", "hold")
    return agent


@pytest.mark.parametrize("given", [{}, {"todo_inbox": [{"kind": "kick"}]}], ids=["empty", "kick"])
def test_a_kick_does_not_move_it(thread: Make, given: dict[str, Any]) -> None:
    agent = held(thread)
    agent.run(given)
    assert (agent.asked, agent.session["on"]) == (2, "hold")


@pytest.mark.parametrize("kind", ["cron", "peer_message", "subagent_done"])
def test_whoever_sends_it_an_event_learns_of_the_hold(thread: Make, kind: str) -> None:
    agent = held(thread)
    with pytest.raises(InputError, match="on hold"):
        agent.run({"todo_inbox": [{"kind": kind, "text": "Now."}]})
    assert agent.asked == 2


def test_a_persons_message_moves_it(thread: Make) -> None:
    agent = held(thread, done(1), "Done.")
    agent.run("Continue.")
    assert (agent.session["reason"], agent.values["waiting_on"]) == ("settled", [])


def test_a_release_leaves_it_as_it_was(thread: Make) -> None:
    agent = held(thread, done(1), "Done.")
    assert release_thread(agent.graph, agent.at())
    assert not release_thread(agent.graph, agent.at())
    assert (agent.session["state"], agent.session["reason"]) == ("idle", "disabled")
    assert "on" not in agent.session
    agent.run({})
    assert agent.session["reason"] == "settled"


def test_a_question_waits_during_a_hold(thread: Make) -> None:
    agent = thread(write("a"), "Shall I?", change={"on_question": "park"})
    agent.run("Go.")
    hold_thread(agent.graph, agent.at())
    assert (agent.session["on"], agent.session["question"]) == ("hold", "Shall I?")
    release_thread(agent.graph, agent.at())
    assert (agent.session["on"], agent.session["question"]) == ("human", "Shall I?")


def test_a_new_thread_can_be_held(thread: Make) -> None:
    agent = thread("Hi.")
    hold_thread(agent.graph, agent.at())
    agent.run({})
    assert agent.asked == 0
    agent.run({"messages": [HumanMessage("Hello.")]})
    assert agent.session["reason"] == "answered"


def test_a_thread_that_waits_at_an_interrupt_is_not_held(thread: Make) -> None:
    agent = thread(calls(("ask_user", {"question": "Shall I?"})), tools=[ask_user])
    agent.run("Go.")
    with pytest.raises(EditError, match="Resume it first, then hold it"):
        hold_thread(agent.graph, agent.at())


@pytest.mark.parametrize("move", [hold_thread, release_thread])
def test_what_cannot_be_held_or_released(move: Any) -> None:
    config: Any = {"configurable": {"thread_id": "1"}}
    kept = create_todo_agent(ScriptedModel("Hi."), checkpointer=InMemorySaver())
    nameless: list[Any] = [None, {}, {"configurable": {}}, "1"]
    for wrong in nameless:
        with pytest.raises(ArgumentError, match="No thread is named"):
            move(kept, wrong)
    with pytest.raises(ArgumentError, match="must be a compiled graph"):
        move(None, config)
    with pytest.raises(EditError, match="keeps no threads"):
        move(create_todo_agent(ScriptedModel("Hi.")), config)


def test_a_host_queues_everything_but_a_persons_words() -> None:
    values = {"waiting_on": [{"id": "hold", "on": "hold", "reason": None}]}
    on_hold = StateSnapshot(values, (), {}, None, None, None, (), ())
    kick: Any = {"kind": "kick", "id": "k"}
    peer: Any = {"kind": "peer_message", "id": "p", "text": "?", "sender": "bob"}
    person: Any = {"kind": "human", "id": "h", "text": "Go on."}
    nothing = choose_next_input(on_hold, [kick, peer])
    assert (nothing.run, nothing.held) == (False, (kick, peer))
    step = choose_next_input(on_hold, [kick, person, peer])
    assert (step.run, step.taken, step.held) == (True, (person,), (kick, peer))
