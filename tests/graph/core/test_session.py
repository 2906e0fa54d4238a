"""session_of, answer_of, events: the state of a thread and what reports it."""

from typing import Any

import pytest
from agents import Make, change, done, look, session, todo, update, write
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import InputError, answer_of, create_todo_agent, session_of
from wakeloop.testing import ScriptedModel, calls, says


def test_a_thread_that_has_not_started(thread: Make) -> None:
    assert thread().session == session("dormant", None, 0, 0, 0)


def test_every_ending_writes_its_session(thread: Make) -> None:
    agent = thread(write("a"), ".", ".", ".", "hi", change={"max_wake_cycles": 2, "guard_retries": 0})
    agent.run("go")
    assert agent.session == session("idle", "wake_budget", 1, 2, 2)
    agent.run({"messages": [("user", "x")], "todos": []})
    assert agent.session == session("dormant", "answered", 0, 0, 2)


def test_it_matches_a_list_that_the_program_has_changed(thread: Make) -> None:
    agent = thread(write("a", "b"), calls(change(1, "done"), change(2, "done")), "Done.")
    agent.run("go")
    seen = []
    for todos in ([todo(1, "a")], [todo(1, "a", "completed")], [todo(1, "a", "blocked")], []):
        agent.graph.update_state(agent.at(), {"todos": todos})
        seen.append([agent.session[key] for key in ("state", "reason", "open")])
    assert seen == [["idle", None, 1], *[["dormant", "settled", 0]] * 3]
    agent = thread(write("a"), *["No."] * 3, change={"max_wake_cycles": 1})
    agent.run("go")
    agent.graph.update_state(agent.at(), {"todos": []})
    assert [agent.session[key] for key in ("state", "reason", "open")] == ["dormant", "wake_budget", 0]


@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
async def test_an_ended_thread_that_continues_keeps_its_figures(door: str) -> None:
    model = ScriptedModel([write("a"), says("I stop"), done(1), says("bye")])
    agent = create_todo_agent(model, checkpointer=InMemorySaver())
    at: Any = {"configurable": {"thread_id": "t"}}
    agent.invoke({"messages": [("user", "go")]}, at)
    before = agent.get_state(at)
    out = agent.invoke(None, at) if door == "invoke" else await agent.ainvoke(None, at)
    assert (session_of(out)["reason"], session_of(out)["wakes"]) == ("settled", 1)
    assert (agent.get_state(at), len(model.requests)) == (before, 4)


# -- answers ---------------------------------------------------------------------------------------------


def test_the_answer_is_the_last_text_of_the_model_in_this_activation(thread: Make) -> None:
    agent = thread(
        calls(("look", {"path": "x"}), text="first"),
        "second",
        write("a"),
        calls(change(1, "done"), text="third"),
        "",
        tools=[look],
    )
    agent.run("go")
    assert answer_of(agent.snapshot) == answer_of(agent.values) == "second"
    assert answer_of(agent.run("more")) == "third"


@pytest.mark.parametrize(
    "state",
    [{}, {"messages": []}, {"messages": [HumanMessage("x")]}, {"messages": [AIMessage(""), AIMessage(" ")]}],
)
def test_without_a_text_the_answer_is_empty(state: Any) -> None:
    assert answer_of(state) == ""


def test_the_text_of_an_earlier_activation_is_not_an_answer(thread: Make) -> None:
    agent = thread("hi", OSError("no network"))
    agent.run("go")
    with pytest.raises(OSError, match="no network"):
        agent.run("more")
    assert answer_of(agent.values) == ""


def test_wakes_and_corrections_belong_to_one_activation(thread: Make) -> None:
    agent = thread(write("a"), "said", *["", ""] * 6)  # five wakes and a correction, each asked twice
    agent.run("go")
    assert answer_of(agent.values) == "said"


# -- events ----------------------------------------------------------------------------------------------


def test_the_events_of_the_guard(thread: Make) -> None:
    agent = thread(write("a"), ".", ".", "why", change={"max_wake_cycles": 0, "on_guard_exhausted": "block"})
    told = agent.events("go")
    assert told[2:] == [
        {"type": "guard", "action": "correct", "retry": 1, "retries": 1, "open": 1, "reason": "disabled"},
        {"type": "guard", "action": "explain", "retry": 1, "retries": 1, "open": 1, "reason": "disabled"},
        {"type": "parked", "session": session("idle", "guard_blocked", 1, 0, 0)},
    ]


def test_the_events_of_a_verifier(thread: Make) -> None:
    answers = iter(["no", None])
    agent = thread(write("a"), done(1), done(1), "bye", verify=lambda item, state: next(answers))
    told = [e for e in agent.events("go") if e["type"] == "verify"]
    assert told == [
        {"type": "verify", "id": 1, "content": "a", "accepted": False, "reason": "no", "refusals": 1},
        {"type": "verify", "id": 1, "content": "a", "accepted": True, "reason": None, "refusals": 1},
    ]


def test_changes_name_the_ids_even_of_removed_items(thread: Make) -> None:
    agent = thread(
        write("a", "b"),
        calls(change(2, "done"), ("todo_write", {"items": ["c"]})),
        ".",
        "hi",
        change={"max_wake_cycles": 0, "guard_retries": 0},
    )
    told = [e for e in agent.events("go") if e["type"] == "todos"]
    assert [e["changed"] for e in told] == [[1, 2], [2, 3]]
    assert told[1]["todos"] == [todo(1, "a"), todo(2, "b", "completed"), todo(3, "c")]
    told = [
        e
        for e in agent.events({"messages": [("user", "x")], "todos": [todo(1, "a"), {"content": "d"}]})
        if e["type"] == "todos"
    ]
    assert [sorted(e["changed"]) for e in told] == [[2, 3, 4]]


def test_a_write_that_changes_nothing_causes_no_event(thread: Make) -> None:
    agent = thread(write("a"), update(1, "open"), update(7, "done"), calls(("todo_list", {})), done(1), "bye")
    assert [e["changed"] for e in agent.events("go") if e["type"] == "todos"] == [[1], [1]]


@pytest.mark.parametrize(
    ("given", "sources"),
    [
        ({}, ["kick"]),
        ({"messages": [("user", "x")]}, ["human"]),
        ({"todo_inbox": [{"kind": "cron", "id": "1", "text": "tick"}]}, ["cron"]),
        (
            {
                "messages": [("user", "x")],
                "todo_inbox": [
                    {"kind": "subagent_done", "id": "1", "text": "r"},
                    {"kind": "human", "id": "2", "text": "y"},
                ],
            },
            ["human", "subagent_done"],
        ),
    ],
)
def test_what_woke_an_activation(given: Any, sources: list[str], thread: Make) -> None:
    agent = thread(write("a"), ".", ".", change={"max_wake_cycles": 0, "guard_retries": 0})
    agent.run("go")
    told = agent.events(given)
    assert told[0] == {"type": "activated", "open": 1, "budget": 0, "sources": sources}


def test_a_refused_input_causes_no_event(thread: Make) -> None:
    agent = thread()
    told: list[Any] = []
    stream = agent.graph.stream(
        {"todos": [{"content": "a", "status": "x"}]}, agent.at(), stream_mode="custom"
    )
    with pytest.raises(InputError, match="status"):
        told.extend(stream)
    assert told == []
