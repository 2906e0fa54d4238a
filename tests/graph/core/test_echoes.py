"""A state that is sent back: an older list is an echo; one without a number replaces."""

from __future__ import annotations

from typing import Any

import pytest
from agents import Make, done, session, settings, todo, write
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from wakeloop import InputError, TodoState, create_todo_agent, join_session, session_of, update_todos
from wakeloop.testing import ScriptedModel, calls

SHARED = ("messages", "todos", "todo_goal", "todo_session")


def edit(agent: Any, **changes: Any) -> None:
    """Edit the list by hand."""
    update_todos(agent.graph, agent.at(), **changes)


def sent_back(output: Any, text: str) -> dict[str, Any]:
    """Return what a client sends that keeps the state: all of it, plus one message."""
    state = {key: output[key] for key in SHARED}
    return {**state, "messages": [*state["messages"], ("user", text)]}


def test_every_write_of_the_list_raises_its_number(thread: Make) -> None:
    agent = thread(write("a", "b"), done(1), ".", "hi", change={"max_wake_cycles": 0, "guard_retries": 0})
    assert agent.run("go")["todo_session"] == session("idle", "disabled", 1, 0, 0, writes=2)
    edit(agent, add=["c"])
    assert agent.session["list"] == 3
    edit(agent, goal="only the goal")
    assert agent.session["list"] == 3
    agent.run({"messages": [("user", "x")], "todos": []})
    assert agent.session == session("dormant", "answered", 0, 0, 0, writes=4)


def test_an_older_list_changes_nothing_and_an_event_says_so(thread: Make) -> None:
    agent = thread(write("a"), ".", done(1), "bye", "hi", change={"max_wake_cycles": 0, "guard_retries": 0})
    first = agent.run({"messages": [("user", "go")], "todo_goal": "g"})
    assert first["todo_session"]["list"] == 1
    agent.run({"messages": [("user", "on")], "todo_goal": "h"})
    told = agent.events(sent_back(first, "thanks"))
    assert [event["type"] for event in told] == ["echo", "activated", "parked"]
    assert told[0] == {"type": "echo", "list": 2, "given": 1}
    assert agent.values["todos"] == [todo(1, "a", "completed")]
    assert (agent.values["todo_goal"], agent.asked) == ("h", 5)
    assert agent.session == session("dormant", "answered", 0, 0, 0, writes=2)
    assert agent.messages[-2].text == "thanks"


def test_the_newest_list_sent_back_changes_nothing_and_is_no_echo(thread: Make) -> None:
    agent = thread(write("a"), done(1), "bye", "hi")
    told = agent.events(sent_back(agent.run("go"), "thanks"))
    assert [event["type"] for event in told] == ["activated", "parked"]
    assert agent.session == session("dormant", "answered", 0, writes=2)


def test_a_person_reopens_an_item_without_a_number_or_with_the_newest(thread: Make) -> None:
    agent = thread(write("a"), done(1), "bye", done(1), "bye", done(1), "bye")
    output = agent.run("go")
    agent.run({"messages": [("user", "again")], "todos": [todo(1, "a")]})
    assert agent.session == session("dormant", "settled", 0, budget=26, writes=4)
    newest = {**agent.values["todo_session"]}
    agent.run({"messages": [("user", "again")], "todos": [todo(1, "a")], "todo_session": newest})
    assert (agent.session["list"], agent.asked) == (6, 7)
    assert output["todo_session"]["list"] == 2


def test_a_session_from_mid_run_is_older_than_anything_written(thread: Make) -> None:
    def ask() -> str:
        """Ask."""
        return str(interrupt("?"))

    agent = thread(write("a"), calls(("ask", {})), done(1), "bye", "hi", tools=[ask])
    parked = agent.run("go")
    assert parked["todo_session"] == {"state": "running", "reason": None}
    agent.run(Command(resume="yes"))
    told = agent.events(sent_back(parked, "thanks"))
    assert told[0] == {"type": "echo", "list": 2, "given": 0}
    assert agent.values["todos"] == [todo(1, "a", "completed")]


def test_an_echo_with_an_invalid_list_is_still_an_echo(thread: Make) -> None:
    agent = thread(write("a"), done(1), "bye", "hi")
    agent.run("go")
    told = agent.events({"messages": [("user", "x")], "todos": "old", "todo_session": {"list": 1}})
    assert told[0]["type"] == "echo"
    assert agent.values["todos"] == [todo(1, "a", "completed")]


@pytest.mark.parametrize("given", [5, [{"list": 1}], {"list": "1"}, {"list": True}, {"list": -1}])
def test_an_invalid_session_is_refused_and_nothing_changes(given: Any, thread: Make) -> None:
    agent = thread(write("a"), done(1), "bye", "hi")
    agent.run("go")
    before = {key: agent.values[key] for key in SHARED[1:]}
    with pytest.raises(InputError, match="todo_session"):
        agent.run({"messages": [("user", "x")], "todos": [], "todo_session": given})
    assert {key: agent.values[key] for key in SHARED[1:]} == before
    assert agent.run("y")["todo_session"] == session("dormant", "answered", 0, writes=2)


def test_a_forged_session_decides_nothing(thread: Make) -> None:
    agent = thread("hi")
    forged = {"state": "waiting", "reason": "x", "open": 9, "wakes": 9, "budget": 9, "on": "human"}
    assert agent.run({"messages": [("user", "go")], "todo_session": forged})["todo_session"] == session(
        "dormant", "answered", 0, writes=0
    )


def test_a_thread_started_from_anothers_state_continues_its_numbers(thread: Make) -> None:
    agent = thread(write("a"), done(1), "bye", "hi")
    output = agent.run("go")
    agent.thread_id = "elsewhere"
    again = agent.run(sent_back(output, "thanks"))
    assert again["todos"] == [todo(1, "a", "completed")]
    assert again["todo_session"]["list"] == 3


def test_an_old_thread_without_a_number_reads_as_0(thread: Make) -> None:
    quiet = {"max_wake_cycles": 0, "guard_retries": 0}
    agent = thread(write("a"), done(1), "bye", "hi", change=quiet)
    agent.run("go")
    notes = {key: value for key, value in agent.ledger.items() if key not in ("writes", "budget")}
    stored = {key: value for key, value in agent.values["todo_session"].items() if key != "list"}
    old = {"todo_ledger": notes, "todo_session": stored}
    agent.graph.update_state(agent.at(), old, as_node="finalization_guard")
    assert agent.session["list"] == 0
    agent.run({"messages": [("user", "x")], "todos": [todo(1, "b")], "todo_session": stored})
    assert [item["content"] for item in agent.values["todos"]] == ["b"]
    assert agent.session["list"] == 1


# -- two agents on one list ------------------------------------------------------------------------------


def test_agents_that_share_a_list_accept_each_others_writes() -> None:
    """Each keeps its thread; neither takes the other's newer list for an echo."""
    one = ScriptedModel(write("a", "b"), done(1), ".", ".", done(2), "bye")
    two = ScriptedModel(".", ".", ".")
    quiet = {"max_wake_cycles": 0, "guard_retries": 0}
    graph = StateGraph(TodoState)
    graph.add_node("one", create_todo_agent(one, settings=settings(**quiet), checkpointer=True))
    graph.add_node("two", create_todo_agent(two, settings=settings(**quiet), checkpointer=True))
    graph.add_edge(START, "one").add_edge("one", "two")
    parent = graph.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    first = parent.invoke({"messages": [("user", "go")]}, config)
    assert first["todo_session"] == session("idle", "disabled", 1, 0, 0, writes=3)
    update_todos(parent, config, add=["c"])
    second = parent.invoke({"messages": [("user", "on")]}, config)
    assert [item["content"] for item in second["todos"]] == ["a", "b", "c"]


def test_in_parallel_the_newest_number_is_kept() -> None:
    left: Any = {"state": "idle", "list": 7}
    right: Any = {"state": "dormant", "list": 6}
    assert join_session(left, right) == {"state": "dormant", "list": 7}
    assert session_of({"todos": [], "todo_session": join_session(left, right)})["list"] == 7
