"""Todo agents under langgraph-supervisor and langgraph-swarm."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm
from shared_tools import ask

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel, calls, says, wire_faults

THREAD: Any = {"configurable": {"thread_id": "t"}}
WAKE = "(automatic) 1 of 1 i"


def close(number: int) -> Any:
    return "todo_update", {"id": number, "status": "done"}


def summarize(messages: Any) -> list[tuple[str, str]]:
    """Return types and beginnings of messages."""
    return [(m.type, m.text[: len(WAKE)]) for m in messages if m.type != "system"]


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")  # langgraph-supervisor's own
def test_a_supervised_agent_stays_awake_asks_and_hands_back() -> None:
    model = ScriptedModel(
        calls(("todo_write", {"items": ["a"]}), ("ask", {"question": "May I?"})),
        says("Soon."),
        calls(close(1)),
        says("It is done."),
        says("Once more."),
    )
    chief = ScriptedModel(calls(("transfer_to_scout", {})), "Fine.", calls(("transfer_to_scout", {})), "Bye.")
    scout = create_todo_agent(model, [ask], name="scout")
    graph = create_supervisor([scout], model=chief).compile(checkpointer=InMemorySaver())
    out = graph.invoke({"messages": [("user", "go")]}, THREAD)
    assert [question.value for question in out["__interrupt__"]] == ["May I?"]
    out = graph.invoke(Command(resume="yes"), THREAD)
    over, back = [("tool", "Successfully transfe")] * 2
    first = [("human", "go"), ("ai", ""), over, ("ai", "It is done."), ("ai", "Transferring back to"), back]
    assert summarize(out["messages"]) == [*first, ("ai", "Fine.")]
    assert summarize(model.requests[2])[-3:] == [("tool", "yes"), ("ai", "Soon."), ("human", WAKE)]
    out = graph.invoke({"messages": [("user", "more")]}, THREAD)
    assert summarize(model.requests[-1])[-3:] == [("human", "more"), ("ai", ""), over]
    assert summarize(out["messages"])[-1] == ("ai", "Bye.")
    assert wire_faults(model.requests) == []
    for scripted in (model, chief):
        scripted.assert_done()


def test_a_swarms_agents_hand_over_with_open_items_and_find_them_again() -> None:
    ada = ScriptedModel(
        calls(("todo_write", {"items": ["a", "b"]})),
        calls(close(1), ("transfer_to_bob", {})),
        says("Where was I?"),
        calls(close(2)),
        says("Ada is done."),
    )
    bob = ScriptedModel(
        calls(("todo_write", {"items": ["x"]})),
        says("Later."),
        calls(close(1)),
        says("Bob is done."),
        calls(("transfer_to_ada", {})),
    )
    agents = [
        create_todo_agent(model, [create_handoff_tool(agent_name=other)], name=name, checkpointer=True)
        for name, model, other in (("ada", ada, "bob"), ("bob", bob, "ada"))
    ]
    graph = create_swarm(agents, default_active_agent="ada").compile(checkpointer=InMemorySaver())
    out = graph.invoke({"messages": [("user", "go")]}, THREAD)
    assert (out["active_agent"], out["messages"][-1].text) == ("bob", "Bob is done.")
    assert summarize(bob.requests[2])[-1] == ("human", WAKE)
    out = graph.invoke({"messages": [("user", "and Ada?")]}, THREAD)
    assert (out["active_agent"], out["messages"][-1].text) == ("ada", "Ada is done.")
    assert ada.requests[3][-1].text.startswith("(automatic) Nobody has answered")  # since she asks
    assert wire_faults([*ada.requests, *bob.requests]) == []
    for scripted in (ada, bob):
        scripted.assert_done()
