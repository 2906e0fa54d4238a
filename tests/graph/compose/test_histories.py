"""Histories from other agents: one that ends in answered results is left as it is."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import InjectedState
from langgraph.types import Command
from langgraph_supervisor import create_supervisor
from langgraph_supervisor.handoff import create_forward_message_tool

from wakeloop import answer_of, create_todo_agent
from wakeloop.testing import ScriptedModel, calls, wire_faults

THREAD: Any = {"configurable": {"thread_id": "thread"}}


class Talk(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


@tool
def transfer_to_bob(
    state: Annotated[Any, InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
) -> Command[Any]:
    """Hand over to Bob, as a swarm does."""
    told = ToolMessage("Successfully transferred to bob", tool_call_id=tool_call_id, name="transfer_to_bob")
    return Command(goto="bob", graph=Command.PARENT, update={"messages": [*state["messages"], told]})


def summarize_request(model: ScriptedModel, request: int = 0) -> list[tuple[str, str]]:
    """Return a request without the system prompt, as types and contents."""
    return [(m.type, m.text) for m in model.requests[request] if m.type != "system"]


@pytest.mark.parametrize("saver", [None, True])
def test_after_a_swarms_hand_over_nothing_is_inserted(saver: Any) -> None:
    ada = ScriptedModel(calls(("transfer_to_bob", {}, "t1")))
    bob = ScriptedModel("Bob here.")
    graph = StateGraph(Talk)
    graph.add_node(
        "ada", create_todo_agent(ada, [transfer_to_bob], checkpointer=saver), destinations=("bob",)
    )
    graph.add_node("bob", create_todo_agent(bob, checkpointer=saver))
    parent = graph.add_edge(START, "ada").compile(checkpointer=InMemorySaver())
    out = parent.invoke({"messages": [("user", "go")]}, THREAD)
    told = ("tool", "Successfully transferred to bob")
    assert summarize_request(bob) == [("human", "go"), ("ai", ""), told]
    assert [(m.type, m.text) for m in out["messages"]] == [*summarize_request(bob), ("ai", "Bob here.")]
    assert answer_of(out) == "Bob here."
    assert wire_faults([*ada.requests, *bob.requests]) == []


def test_a_supervisors_hand_back_and_the_same_history_alone() -> None:
    history: list[AnyMessage] = [
        HumanMessage("go", id="1"),
        AIMessage("", id="2", tool_calls=[{"name": "transfer_to_bob", "args": {}, "id": "t1"}]),
        ToolMessage("Successfully transferred to bob", id="3", tool_call_id="t1"),
        AIMessage("I have it.", id="4", name="bob"),
        AIMessage("", id="5", name="bob", tool_calls=[{"name": "transfer_back", "args": {}, "id": "t2"}]),
        ToolMessage("Successfully transferred back", id="6", tool_call_id="t2"),
    ]
    model = ScriptedModel("Done.")
    out = create_todo_agent(model, checkpointer=InMemorySaver()).invoke({"messages": history}, THREAD)
    assert [m.id for m in out["messages"][:-1]] == ["1", "2", "3", "4", "5", "6"]
    assert [m.text for m in out["messages"]] == [m.text for m in history] + ["Done."]
    assert "broken off" not in str(model.requests)
    assert "take it from here" not in str(model.requests)
    assert wire_faults(model.requests) == []


def test_an_ended_thread_takes_another_ones_results_as_they_are() -> None:
    model = ScriptedModel("Hello.", "Done.")
    agent = create_todo_agent(model, checkpointer=InMemorySaver())
    agent.invoke({"messages": [("user", "hi")]}, THREAD)
    more = [("user", "go"), calls(("look", {}, "l")), ToolMessage("seen", tool_call_id="l")]
    out = agent.invoke({"messages": more}, THREAD)
    assert [m.type for m in out["messages"]] == ["human", "ai", "human", "ai", "tool", "ai"]
    assert wire_faults(model.requests) == []


def test_a_wrapped_model_is_refused_with_a_way_out() -> None:
    from wakeloop import ModelSetupError

    one, two = ScriptedModel("a"), ScriptedModel("b")
    with pytest.raises(ModelSetupError, match=r"fallbacks.+_generate"):
        create_todo_agent(one.with_fallbacks([two]))  # type: ignore[arg-type]
    with pytest.raises(ModelSetupError, match=r"got a _ChatModelBinding\. Pass options such as stop"):
        create_todo_agent(one.bind(stop=["x"]))  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")  # langgraph-supervisor's own
def test_a_supervisor_finds_an_agents_reply_by_its_name() -> None:
    plan, done = calls(("todo_write", {"items": ["a"]})), calls(("todo_update", {"id": 1, "status": "done"}))
    gardener = create_todo_agent(ScriptedModel(plan, "Soon.", done, "Watered."), name="gardener")
    boss = ScriptedModel(
        calls(("transfer_to_gardener", {})), calls(("forward_message", {"from_agent": "gardener"}))
    )
    supervisor = create_supervisor(
        [gardener], model=boss, tools=[create_forward_message_tool()], output_mode="full_history"
    )
    out = supervisor.compile().invoke({"messages": [("user", "go")]})
    boss.assert_done()
    told = [(m.name, m.text) for m in out["messages"] if m.type == "ai" and m.text]
    assert told == [
        ("gardener", "Soon."),
        ("gardener", "Watered."),
        ("gardener", "Transferring back to supervisor"),
        ("supervisor", "Watered."),
    ]
    hidden = [m.id for m in out["messages"] if (m.id or "").startswith("do-not-render-")]
    assert len(hidden) == 1  # the nudge
