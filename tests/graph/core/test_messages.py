"""Messages that the graph writes, rules 11 and 13: marks, repairs, the static prompt, the inbox."""

from typing import Annotated, Any
from unittest.mock import ANY

import pytest
from agents import END, START, TODO, UNASKED, WAKE, WORK, Make, done, look, looks, session, update, write
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.types import Command

from wakeloop import answer_of
from wakeloop.testing import calls, says

MARK = "wakeloop"


def forged(kind_: str, type_: Any = HumanMessage, text: str = "words", **more: Any) -> Any:
    return type_(text, additional_kwargs={MARK: {"kind": kind_}, "other": 1}, **more)


OLD = [
    forged("wake"),
    forged("repair", AIMessage),
    forged("wake"),
    calls(("look", {}, "1")),
    forged("nag", ToolMessage, tool_call_id="1"),
    forged("format", AIMessage),
    forged("guard"),
]


# -- marks -----------------------------------------------------------------------------------------------


def test_forged_marks_before_the_last_message_are_removed_too(thread: Make) -> None:
    agent = thread("hi", "hi")
    agent.run("go")
    agent.run({"messages": [*OLD, HumanMessage("x")]})
    assert not any(MARK in m.additional_kwargs for m in agent.messages)


def test_a_history_passed_to_another_agent_keeps_the_marks_of_a_graphs_messages(thread: Make) -> None:
    agent = thread("hi")
    agent.run({"messages": [*OLD, HumanMessage("x")]})
    assert agent.kinds == ["wake", "repair", "wake", "ai", "nag", "format", "human", "human", "ai"]


def test_the_graphs_own_marks_are_kept_whatever_breaks(thread: Make) -> None:
    agent = thread(
        write("a"),
        ".",
        OSError("1"),
        OSError("2"),
        "hi",
        "hi",
        change={"max_wake_cycles": 1, "guard_retries": 0, **UNASKED},
    )
    for given in ("go", {}):
        with pytest.raises(OSError, match=r"\d"):
            agent.run(given)
    agent.run("more")
    assert agent.kinds == ["human", "ai", "tool", "ai", "wake", "human", "ai", "wake", "ai"]


@pytest.mark.parametrize(
    ("given", "name"),
    [({}, "activate"), ({"todo_inbox": [{"kind": "cron", "id": "c", "text": "tick"}]}, "event")],
)
def test_an_activations_messages_keep_their_mark_when_the_model_raises(
    given: Any, name: str, thread: Make
) -> None:
    change = {"max_wake_cycles": 0, "guard_retries": 0, **UNASKED}
    agent = thread(write("a"), ".", OSError("no network"), OSError("no network"), "hi", change=change)
    agent.run("go")
    for one in (given, "more"):
        with pytest.raises(OSError, match="no network"):
            agent.run(one)
    agent.run("and more")
    assert agent.kinds == ["human", "ai", "tool", "ai", name, "human", "human", "ai"]


def test_every_message_has_its_own_id(thread: Make) -> None:
    agent = thread(
        write("a"),
        says("x", id="same"),
        calls(("look", {"path": "x"}, "same")),
        says("y", id="same"),
        done(1),
        "bye",
        tools=[look],
    )
    agent.run("go")
    ids = [m.id for m in agent.messages]
    assert all(ids)
    assert len(set(ids)) == len(ids)


# -- repairs (rule 13) -----------------------------------------------------------------------------------


def test_after_a_break_a_kick_continues(thread: Make) -> None:
    agent = thread(write("a"), OSError("no network"), done(1), "bye")
    with pytest.raises(OSError, match="no network"):
        agent.run("go")
    assert agent.walk({}) == [*START, *TODO, *END]
    assert agent.kinds == ["human", "ai", "tool", "repair", "activate", "ai", "tool", "ai"]


# -- the static prompt (rule 11) -------------------------------------------------------------------------


def systems(agent: Any) -> set[str]:
    return {str(request[0].content) for request in agent.model.requests}


def test_the_system_prompt_is_the_callers_then_the_dialects(thread: Make) -> None:
    agent = thread(write("a"), ".", done(1), "bye", "hi", system_prompt="You are X.")
    agent.run("go")
    agent.run("more")
    (prompt,) = systems(agent)
    assert prompt.startswith("You are X.\n\n")
    assert "Plan several steps" in prompt
    assert all([m.type for m in request].count("system") == 1 for request in agent.model.requests)


def test_without_instructions_the_prompt_is_only_the_callers(thread: Make) -> None:
    agent = thread(
        "hi", system_prompt=SystemMessage("You are X."), change={"inject_todo_instructions": False}
    )
    agent.run("go")
    assert systems(agent) == {"You are X."}


def test_with_neither_there_is_no_system_message(thread: Make) -> None:
    agent = thread("hi", checked=False, change={"inject_todo_instructions": False})
    agent.run("go")
    assert [m.type for m in agent.model.requests[0]] == ["human"]


def test_system_messages_of_the_history_join_once(thread: Make) -> None:
    agent = thread("hi", "hi", "hi", system_prompt="mine")
    for _ in range(2):
        agent.run({"messages": [SystemMessage("theirs"), SystemMessage("mine"), HumanMessage("go")]})
    agent.run({"messages": [SystemMessage("news"), HumanMessage("go")]})
    (prompt,) = systems(agent)
    assert prompt.startswith("mine\n\ntheirs\n\nPlan several steps")
    assert [m.text for m in agent.model.requests[-1][1:]] == ["go", "hi", "go", "hi", "news", "go"]


def test_switching_the_instructions_starts_a_new_prefix_once_at_the_next_activation(thread: Make) -> None:
    agent = thread(write("a"), ".", done(1), ".", looks("x"), "hi", "hi", tools=[look], checked=False)
    agent.run("go")
    agent.run({"messages": [("user", "more")], "todo_settings": {"inject_todo_instructions": False}})
    agent.run("more")
    heads = [request[0].type for request in agent.model.requests]
    assert heads == ["system"] * 4 + ["human"] * 3


def test_per_turn_data_never_goes_into_the_prompt(thread: Make) -> None:
    agent = thread(
        write("secret-item"), ".", update(1, "blocked", "secret-reason"), ".", change={"nag_after": 1}
    )
    agent.run({"messages": [("user", "secret-words")], "todo_goal": "secret-goal"})
    (prompt,) = systems(agent)
    assert "secret" not in prompt


# -- the inbox -------------------------------------------------------------------------------------------


def event(kind_: str, text: str = "", **more: Any) -> dict[str, Any]:
    return {"kind": kind_, "id": f"{kind_}-1", "text": text, **more}


def test_a_humans_event_is_a_plain_message_and_the_others_are_one_marked_message(thread: Make) -> None:
    agent = thread("hi")
    inbox = [event("cron", "tick"), event("human", "please"), event("peer_message", "hello", sender="bob")]
    agent.run({"todo_inbox": inbox})
    assert agent.kinds == ["human", "event", "ai"]
    human, marked, _ = agent.messages
    assert (human.text, human.additional_kwargs) == ("please", {})
    assert "tick" in marked.text
    assert "hello" in marked.text
    assert "bob" in marked.text
    assert agent.values["todo_inbox"] == []


def test_an_event_seen_before_is_ignored(thread: Make) -> None:
    agent = thread("hi")
    agent.run({"todo_inbox": [event("human", "please"), event("human", "please")]})
    assert agent.walk({"todo_inbox": [event("human", "please")]}) == ["activate", "finalization_guard"]
    assert agent.kinds == ["human", "ai"]


def parked(thread: Make, *replies: Any, **options: Any) -> Any:
    """Return a thread that waits for a peer."""

    @tool
    def ask(key: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Ask a peer."""
        told = ToolMessage("asked", tool_call_id=key)
        return Command(update={"waiting_on": [{"id": "q", "on": "peer"}], "messages": [told]})

    agent = thread(calls(("ask", {})), "I wait", *replies, tools=[ask], **options)
    agent.run("go")
    assert agent.session == {**session("waiting", "waiting", 0), "on": "peer", "until": ANY}
    return agent


@pytest.mark.parametrize(
    "given", [{}, {"todo_inbox": [event("cron", "tick")]}, {"todo_inbox": [event("subagent_done", "r")]}]
)
def test_during_a_wait_only_messages_of_persons_and_peers_are_answered(given: Any, thread: Make) -> None:
    agent = parked(thread)
    assert agent.walk(given) == ["activate", "finalization_guard"]
    assert agent.session["state"] == "waiting"
    texts = [m.text for m in agent.messages]
    assert any("tick" in text or text.endswith("] r") for text in texts) is bool(given)


@pytest.mark.parametrize(
    "given",
    [
        {"messages": [("user", "hey")]},
        {"todo_inbox": [event("peer_message", "hey")]},
        {"todo_inbox": [event("human", "hey")]},
    ],
)
def test_during_a_wait_a_person_or_peer_is_answered_and_then_it_parks(given: Any, thread: Make) -> None:
    agent = parked(thread, "yes?")
    assert agent.walk(given) == [*START, *END]
    assert agent.session == {**session("waiting", "waiting", 0), "on": "peer", "until": ANY}


def test_waiting_comes_before_open_items(thread: Make) -> None:
    agent = parked(thread, write("a"), "still waiting")
    assert agent.walk("hey") == [*START, *TODO, *END]
    assert agent.session == {**session("waiting", "waiting", 1), "on": "peer", "until": ANY}


# -- a subagent's result continues the activation --------------------------------------------------------


def result(number: int) -> dict[str, Any]:
    return {"todo_inbox": [{"kind": "subagent_done", "id": f"s{number}", "text": f"result {number}"}]}


def test_a_subagents_result_spends_one_cycle_and_resets_nothing(thread: Make) -> None:
    agent = thread(
        write("a"),
        ".",
        ".",
        "thanks",
        "thanks",
        change={"max_wake_cycles": 3, "max_idle_wakes": 1, "guard_retries": 0},
    )
    assert agent.walk("go") == [*START, *TODO, *WAKE, *END]
    assert agent.session == session("idle", "stalled", 1, 1, 3)
    assert agent.walk(result(1)) == [*START, *END]
    assert agent.session == session("idle", "stalled", 1, 2, 3)
    assert agent.ledger["idle_wakes"] == 2
    assert agent.walk(result(2)) == [*START, *END]
    assert agent.session == session("idle", "wake_budget", 1, 3, 3)


def test_with_a_spent_budget_it_becomes_an_unanswered_message(thread: Make) -> None:
    agent = thread(write("a"), ".", ".", change={"max_wake_cycles": 1, "guard_retries": 0})
    agent.run("go")
    asked = agent.asked
    assert agent.walk(result(1)) == ["activate", "finalization_guard"]
    assert agent.asked == asked
    assert agent.kinds[-1] == "event"
    assert agent.session == session("idle", "wake_budget", 1, 1, 1)
    assert answer_of(agent.values) == "."


def test_progress_is_judged_on_the_whole_activation(thread: Make) -> None:
    nothing_new = [update(1, "open"), done(1), looks("x"), "."]
    agent = thread(
        *[write("a", "b"), looks("x"), ".", done(1), ".", ".", "."],
        *nothing_new,
        tools=[look],
        change={"max_idle_wakes": 2, "guard_retries": 0},
    )
    assert agent.walk("go") == [*START, *TODO, *WORK, *WAKE, *TODO, *WAKE, *WAKE, *END]
    agent.run(result(1))
    assert agent.ledger["idle_wakes"] == 3


def test_an_answer_belongs_to_the_activation_that_a_result_continues(thread: Make) -> None:
    agent = thread("I started a helper", "")
    agent.run("go")
    agent.run(result(1))
    assert agent.session == session("dormant", "answered", 0, 1)
    assert answer_of(agent.values) == "I started a helper"


def test_a_person_together_with_a_result_starts_an_activation(thread: Make) -> None:
    change = {"max_wake_cycles": 1, "guard_retries": 0, **UNASKED}
    agent = thread(write("a"), ".", ".", ".", ".", change=change)
    agent.run("go")
    assert agent.walk({**result(1), "messages": [("user", "and?")]}) == [*START, *WAKE, *END]
    assert agent.session == session("idle", "wake_budget", 1, 1, 1)
