"""Arguments, inputs, edits and readings in every form that works."""

from __future__ import annotations

from typing import Any
from unittest.mock import ANY

import pytest
from guessing import AT, BUILD, GO, UPDATE, hi
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Overwrite, interrupt
from pydantic import BaseModel

from wakeloop import (
    ArgumentError,
    EditError,
    InputError,
    SettingsError,
    TodoState,
    answer_of,
    build_todo_graph,
    create_todo_agent,
    session_of,
    update_todos,
)
from wakeloop.testing import ScriptedModel, calls, says


def write(*items: str) -> Any:
    return calls(("todo_write", {"items": list(items)}))


@tool
def look() -> str:
    """Look."""
    return "seen"


class Answer(BaseModel):
    """An answer."""

    number: int


# -- names of arguments ----------------------------------------------------------------------------------


# -- their values ----------------------------------------------------------------------------------------


def test_settings_as_a_mapping() -> None:
    agent = hi(write("a"), ".", ".", settings={"max_wake_cycles": 1, "guard_retries": 0})
    assert agent.invoke(GO, AT)["todo_session"]["budget"] == 1
    on = hi(calls(("todo__add", {"task": "a"})), ".", ".", settings={"preset": "loki", "auto_continue": True})
    assert on.invoke(GO, AT)["todo_session"]["reason"] == "repeated_reply"


def test_tools_alone_and_none() -> None:
    for tools in (look, [look], (look,), iter([look])):
        assert "look" in str(hi(tools=tools).builder.nodes["run_tools"].runnable.tools)
    assert hi(tools=None).invoke(GO, AT)["todo_session"]["reason"] == "answered"


def test_a_format_in_a_strategy() -> None:
    structured = pytest.importorskip("langchain.agents.structured_output")
    for kind in (structured.ToolStrategy, structured.ProviderStrategy):
        with pytest.raises(ArgumentError, match=f"must be the schema itself.+ got {kind.__name__}"):
            hi(response_format=kind(Answer))


# -- a run's input and config ----------------------------------------------------------------------------


def test_keys_that_others_send_next_to_ours_are_left_alone() -> None:
    out = hi().invoke({**GO, "copilotkit": {}, "tools": [], "context": []}, AT)
    assert out["todo_session"]["reason"] == "answered"

    class Parent(TodoState):
        todo: str
        message: str

    graph = (
        StateGraph(Parent).add_node("agent", create_todo_agent(ScriptedModel("Hi."))).add_edge(START, "agent")
    )
    assert answer_of(graph.compile().invoke({**GO, "todo": "x", "message": "y"})) == "Hi."


# -- edits by hand ---------------------------------------------------------------------------------------


def test_one_string_is_one_item_and_one_id_is_one() -> None:
    agent = hi()
    assert [one["content"] for one in update_todos(agent, AT, add="buymilk")] == ["buymilk"]
    todos = update_todos(agent, AT, add=["b", "c"])
    assert [one["status"] for one in update_todos(agent, AT, done=1)] == ["completed", "pending", "pending"]
    update_todos(agent, AT, add=[str(n) for n in range(4, 13)])
    assert [one["id"] for one in update_todos(agent, AT, start="12") if one["status"] == "in_progress"] == [
        12
    ]
    done = UPDATE(agent, AT, done=todos[1:], add={"content": "z"})
    assert [one["id"] for one in done if one["status"] == "completed"] == [1, 2, 3]
    assert done[-1]["content"] == "z"


def test_an_edit_by_another_graph() -> None:
    with pytest.raises(ArgumentError, match="compiled graph"):
        UPDATE(build_todo_graph(ScriptedModel()), AT, add="a")
    with pytest.raises(EditError, match="keeps no threads"):
        UPDATE(create_todo_agent(ScriptedModel()), AT, add="a")


# -- parents ---------------------------------------------------------------------------------------------


def ask() -> str:
    """Ask."""
    return str(interrupt("?"))


def parent_of(agent: Any, state: Any = TodoState) -> Any:
    graph = StateGraph(state).add_node("agent", agent).add_edge(START, "agent")
    return graph.compile(checkpointer=InMemorySaver())


def test_an_edit_on_a_parent_that_shares_the_list() -> None:
    model = ScriptedModel(write("a"), ".", calls(("todo_list", {})), ".")
    quiet = {"max_wake_cycles": 0, "guard_retries": 0}
    parent = parent_of(create_todo_agent(model, settings=quiet, checkpointer=True))
    parent.invoke(GO, AT)
    update_todos(parent, AT, add="b", done=1, goal="g")
    values = parent.get_state(AT).values
    assert [one["content"] for one in values["todos"]] == ["a", "b"]
    assert (values["todo_goal"], values["todo_session"]["list"]) == ("g", 2)
    parent.invoke(GO, AT)
    assert "[2] b" in model.requests[-1][-1].text  # the agent reads it, though it keeps its own thread
    assert update_todos(parent, AT, clear=True) == []


def test_an_edit_on_a_subgraph_that_keeps_its_thread() -> None:
    class Talk(BaseModel):
        messages: list[Any] = []

    quiet = {"max_wake_cycles": 0, "guard_retries": 0}
    agent = create_todo_agent(ScriptedModel(write("a"), "."), settings=quiet, checkpointer=True)
    parent = parent_of(agent, Talk)
    parent.invoke(GO, AT)
    below: Any = {"configurable": {**AT["configurable"], "checkpoint_ns": "agent"}}
    assert [one["content"] for one in update_todos(parent, below, add="b")] == ["a", "b"]
    assert session_of(parent.get_state(below)) == {
        "state": "idle", "reason": "disabled", "open": 2, "wakes": 0, "budget": 0, "list": 2, "items": 2,
        "completed": 0, "cancelled": 0, "blocked": 0, "spent": ANY,
    }  # fmt: skip
    with pytest.raises(EditError, match=r"'checkpoint_ns': 'NODE'.+ Such nodes of 'LangGraph': 'agent'"):
        update_todos(parent, AT, add="b")
    with pytest.raises(EditError, match=r"pass the graph around it, with .+checkpoint_ns"):
        update_todos(agent, AT, add="b")
    with pytest.raises(EditError, match="Such nodes of 'LangGraph': 'agent'"):
        UPDATE(parent, {"configurable": {"thread_id": "1", "checkpoint_ns": "agnt"}}, add="b")


def test_the_session_of_an_agent_in_a_parents_snapshot() -> None:
    class Talk(BaseModel):
        messages: list[Any] = []

    model = ScriptedModel(write("a", "b"), "thinking", calls(("ask", {})))
    parent = parent_of(create_todo_agent(model, [ask]), Talk)
    result = parent.invoke(GO, AT)
    truth = {
        "state": "waiting", "reason": "interrupted", "open": 2, "wakes": 1, "budget": 25, "list": 1,
        "items": 2, "completed": 0, "cancelled": 0, "blocked": 0, "on": "human", "spent": ANY,
    }  # fmt: skip
    assert session_of(parent.get_state(AT, subgraphs=True)) == truth
    assert answer_of(parent.get_state(AT, subgraphs=True)) == "thinking"
    mere = session_of(parent.get_state(AT))  # it does not contain the session, so no made-up numbers
    assert mere == {"state": "waiting", "reason": "interrupted", "on": "human"}
    assert session_of(result) == mere
    ended = parent_of(create_todo_agent(ScriptedModel(write("a"), *["said"] * 8)), Talk)
    told = ended.invoke(GO, AT)
    for given in (told, ended.get_state(AT)):  # one item is open there, and nothing here says so
        assert session_of(given) == {"state": "dormant", "reason": None}
        assert answer_of(given) == "said"


# -- readings --------------------------------------------------------------------------------------------


def test_readings_of_a_result_a_state_a_snapshot_and_the_sdks_dict() -> None:
    agent = hi(write("a"), "said", settings={"max_wake_cycles": 0, "guard_retries": 0})
    result = agent.invoke(GO, AT)
    snapshot = agent.get_state(AT)
    plain = [{"type": m.type, "content": m.content, "id": m.id} for m in result["messages"]]
    plain[2]["tool_call_id"] = result["messages"][2].tool_call_id
    sdk = {"values": {**snapshot.values, "messages": plain}, "next": [], "tasks": [], "metadata": {}}
    thread = {"thread_id": "1", "status": "idle", "values": sdk["values"]}
    for given in (result, snapshot.values, snapshot, sdk, thread):
        assert session_of(given) == snapshot.values["todo_session"]
        assert answer_of(given) == "said"
    assert answer_of(result["messages"]) == "said"
    for wrong in (None, agent, "1", 5):
        for read in (session_of, answer_of):
            with pytest.raises(ArgumentError, match=r"agent.get_state\(config\)"):
                read(wrong)


def test_a_run_that_ends_at_an_interrupt_says_nothing_misleading() -> None:
    agent = hi(write("a"), calls(("ask", {})), tools=[ask])
    result = agent.invoke(GO, AT)
    assert result["todo_session"] == {"state": "running", "reason": None}
    assert session_of(result) == {"state": "waiting", "reason": "interrupted", "open": 1, "on": "human"}
    whole = {**session_of(result), "wakes": 0, "budget": 25, "list": 1, "items": 1, "spent": ANY}
    whole |= {"completed": 0, "cancelled": 0, "blocked": 0}
    assert session_of(agent.get_state(AT)) == whole
    asked = [{"value": "?", "id": "1"}]
    state = agent.get_state(AT)
    tasks = [{"id": "t", "name": "run_tools", "interrupts": asked}]
    assert session_of({"values": state.values, "next": ["run_tools"], "tasks": tasks}) == whole


# -- a thread that is not named ---------------------------------------------------------------------------


def test_the_callers_thread_is_used() -> None:
    agent = create_todo_agent(ScriptedModel([says("hi")]), checkpointer=InMemorySaver())
    caller = RunnableLambda(agent.invoke)  # without a config of its own
    assert answer_of(caller.invoke(GO, AT)) == "hi"
    assert answer_of(agent.get_state(AT)) == "hi"


def test_tools_by_name() -> None:
    model = ScriptedModel(calls(("look", {})), "Done.")
    out = BUILD(model, {"look": look}).invoke(GO)
    assert [str(m.content) for m in out["messages"]] == ["go", "", "seen", "Done."]
    assert len(BUILD(ScriptedModel(), {"type": "web_search"}).builder.nodes["run_tools"].runnable.tools) == 0


@pytest.mark.parametrize("returned", ["x", [AIMessage("a")], 5])
def test_a_hook_that_does_not_return_a_mapping(returned: Any) -> None:
    agent = hi(pre_model_hook=lambda _state: returned)
    with pytest.raises(
        SettingsError, match=r"pre_model_hook must return a mapping, got .+ llm_input_messages"
    ):
        agent.invoke(GO, AT)


NO_MESSAGES = {
    "None": (None, "Item 1 "),
    "a number": (5, "Item 1 "),
    "None in a list": (["a", None], "Item 2 "),
    "another role": ([("usr", "x")], "Item 1 .+'usr'"),
    "no role": ([{"content": "x"}], "Item 1 "),
    "a number as text": ([("user", 5)], "Item 1 "),
    "a call without a name": (
        [{"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}],
        "Item 1 ",
    ),
    "a result of nothing": ([{"role": "tool", "content": "x"}], "Item 1 .+tool_call_id"),
    "a pair past the reducer": (Overwrite([("user", "x")]), "Overwrite.+HumanMessage"),
    "no list past the reducer": (Overwrite("x"), "Overwrite.+HumanMessage"),
    "a message past the reducer": (Overwrite(HumanMessage("x")), "Overwrite.+HumanMessage"),
}


@pytest.mark.parametrize(("given", "right"), NO_MESSAGES.values(), ids=NO_MESSAGES)
@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
async def test_invalid_messages_leave_the_thread_as_it_was(given: Any, right: str, door: str) -> None:
    """LangGraph commits an input before its reducer sees it: state and run would raise from then on."""
    agent = hi("Hello.", "Again.")
    agent.invoke(GO, AT)
    before = agent.get_state(AT)
    with pytest.raises(InputError, match=right) as told:
        await agent.ainvoke({"messages": given}, AT) if door == "ainvoke" else agent.invoke(
            {"messages": given}, AT
        )
    assert "\n" not in str(told.value)
    assert agent.get_state(AT) == before
    assert answer_of(agent.invoke(GO, AT)) == "Again."


def test_messages_that_bypass_the_reducer_replace_the_history() -> None:
    agent = hi("Hello.", "Again.", "Bye.")
    agent.invoke(GO, AT)
    agent.invoke({"messages": Overwrite([HumanMessage("anew")])}, AT)
    out = agent.invoke({"messages": [("user", "more")]}, AT)
    assert [message.text for message in out["messages"]] == ["anew", "Again.", "more", "Bye."]


def test_the_callers_own_keys_in_a_config_are_left_alone() -> None:
    config: Any = {"configurable": {"session_id": "s", "user": "u", **AT["configurable"]}}
    assert answer_of(hi().invoke(GO, config)) == "Hello."
    bound = hi().with_config(AT)
    assert answer_of(bound.invoke(GO, {"configurable": {"session_id": "s"}})) == "Hello."
    assert answer_of(BUILD(ScriptedModel("Hi.")).invoke(GO, {"configurable": {"session_id": "s"}})) == "Hi."


def test_reading_anything_else_is_refused() -> None:
    agent = hi()
    result = agent.invoke(GO, AT)
    history = list(agent.get_state_history(AT))
    for wrong in (AT, history, [{"type": "parked"}], [1], {"zzz": 1}):
        for read in (session_of, answer_of):
            with pytest.raises(ArgumentError, match=r"agent.get_state\(config\)"):
                read(wrong)
    assert session_of(result["todo_session"]) == result["todo_session"]
    with pytest.raises(ArgumentError, match=r"agent.get_state\(config\)"):
        session_of(result["messages"])  # messages say nothing about the session
    assert answer_of([{"type": "human", "content": "go"}, {"type": "ai", "content": "Hello."}]) == "Hello."
    assert session_of({})["state"] == "dormant"
    assert answer_of({}) == answer_of([]) == ""
