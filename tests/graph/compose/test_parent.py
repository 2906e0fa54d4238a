"""The agent as a node of a larger graph."""

import operator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypedDict
from unittest.mock import ANY

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel
from rig import close, write
from shared_tools import ask

from wakeloop import (
    Todo,
    answer_of,
    create_todo_agent,
    join_goal,
    join_session,
    join_todos,
    preset,
    session_of,
)
from wakeloop.testing import ScriptedModel, calls, prompt_faults, says, wire_faults

THREAD: Any = {"configurable": {"thread_id": "thread"}}
ONE_WAKE = preset("wakeloop").model_copy(
    update={"max_wake_cycles": 1, "earn_wakes": 0, "guard_retries": 0, "max_idle_wakes": 0}
)


def test_a_node_passes_a_state_with_a_key_that_is_also_a_setting() -> None:
    class Priced(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]
        prices: dict[str, int]

    agent = create_todo_agent(ScriptedModel("Hi."))
    graph = StateGraph(Priced)
    graph.add_node("agent", lambda state: {"messages": agent.invoke(state)["messages"]})
    graph.add_edge(START, "agent")
    out = graph.compile().invoke({"messages": [("user", "Go.")], "prices": {"tea": 3}})
    assert (out["messages"][-1].text, out["prices"]) == ("Hi.", {"tea": 3})


class Talk(TypedDict):
    """A parent that shares only the conversation."""

    messages: Annotated[list[AnyMessage], add_messages]


class Shared(Talk):
    """A parent that shares the list, the goal and the session, as parallel agents need it."""

    todos: Annotated[list[Todo], join_todos]
    todo_goal: Annotated[str, join_goal]
    todo_session: Annotated[dict[str, Any] | None, join_session]


class Listed(Talk):
    """A parent that shares the list in a plain channel."""

    todos: list[Todo]


def go(text: str = "go") -> dict[str, Any]:
    return {"messages": [("user", text)]}


def build_parent(child: Any, schema: Any, saver: Any = None) -> Any:
    return StateGraph(schema).add_node("child", child).add_edge(START, "child").compile(checkpointer=saver)


def brief(messages: list[Any]) -> list[str]:
    """Return roles and the beginnings of messages."""
    return [f"{m.type}: {str(m.content)[:16]}" for m in messages]


def whole(out: dict[str, Any]) -> None:
    ids = [message.id for message in out["messages"]]
    assert len(ids) == len(set(ids))


# -- C29: what a child keeps from one run of its parent to the next --------------------------------------

KEEPS = {
    # the parent's schema, the child's checkpointer: requests in three runs, the list that the third run left
    "talk-none": (Talk, None, (4, 1, 1)),
    "talk-true": (Talk, True, (4, 2, 2)),
    "talk-false": (Talk, False, (4, 1, 1)),
    "listed-none": (Listed, None, (4, 2, 2)),
    "listed-true": (Listed, True, (4, 2, 2)),
    "listed-false": (Listed, False, (4, 2, 2)),
    "shared-none": (Shared, None, (4, 2, 2)),
    "shared-true": (Shared, True, (4, 2, 2)),
    "shared-false": (Shared, False, (4, 2, 2)),
}


@pytest.mark.parametrize(("schema", "saver", "requests"), KEEPS.values(), ids=KEEPS)
def test_c29_three_runs_of_a_parent(schema: Any, saver: Any, requests: tuple[int, ...]) -> None:
    """If the list is kept, one item is still open, so each further run wakes once."""
    texts = ["one", "one again", "two", "three"] if requests[1] == 1 else ["1", "2", "3", "4", "5", "6"]
    model = ScriptedModel(write("a", "b"), close(1), *texts)
    child = create_todo_agent(model, settings=ONE_WAKE, checkpointer=saver)
    parent = build_parent(child, schema, InMemorySaver())
    seen = 0
    for number, text in enumerate(("first", "second", "third")):
        out = parent.invoke(go(text), THREAD)
        assert len(model.requests) - seen == requests[number]
        seen = len(model.requests)
        whole(out)
        if "todos" in out:
            assert [todo["status"] for todo in out["todos"]] == ["completed", "pending"]
    model.assert_done()
    assert wire_faults(model.requests) == []
    assert prompt_faults(model.requests) == []
    people = [m.content for m in out["messages"] if isinstance(m, HumanMessage) and not m.additional_kwargs]
    assert people == ["first", "second", "third"]


@pytest.mark.parametrize("saver", [None, True])
@pytest.mark.parametrize("schema", [Talk, Listed, Shared])
def test_c29_an_interrupt_is_resumed(schema: Any, saver: Any) -> None:
    model = ScriptedModel(write("a"), calls(("ask", {"question": "?"}, "q")), close(1), "Done.")
    parent = build_parent(create_todo_agent(model, [ask], checkpointer=saver), schema, InMemorySaver())
    parent.invoke(go(), THREAD)
    assert len(model.requests) == 2
    assert parent.get_state(THREAD).interrupts
    out = parent.invoke(Command(resume="yes"), THREAD)
    model.assert_done()
    assert [m.content for m in out["messages"] if getattr(m, "tool_call_id", None) == "q"] == ["yes"]
    assert answer_of(out) == "Done."
    assert wire_faults(model.requests) == []


@pytest.mark.parametrize("schema", [Talk, Listed, Shared])
def test_c29_none_and_a_plain_message_lose_the_interrupted_run(schema: Any) -> None:
    model = ScriptedModel(write("a"), calls(("ask", {"question": "?"})), "Hello.")
    parent = build_parent(create_todo_agent(model, [ask]), schema, InMemorySaver())
    parent.invoke(go("first"), THREAD)
    out = parent.invoke(go("second"), THREAD)
    model.assert_done()
    assert brief(out["messages"]) == ["human: first", "human: second", "ai: Hello."]
    assert not out.get("todos")
    assert wire_faults(model.requests) == []


@pytest.mark.parametrize("schema", [Talk, Listed, Shared])
def test_c29_true_and_a_plain_message_keep_it(schema: Any) -> None:
    model = ScriptedModel(
        write("a"), calls(("ask", {"question": "?"}, "q")), close(1), "As you like.", "Third."
    )
    parent = build_parent(create_todo_agent(model, [ask], checkpointer=True), schema, InMemorySaver())
    parent.invoke(go("first"), THREAD)
    out = parent.invoke(go("second"), THREAD)
    request = model.requests[2]
    # after the words comes what is still open, or that a parent with its own list has none of it
    kinds = ["system", "human", "ai", "tool", "ai", "tool", "ai", "human", "human"]
    assert [m.type for m in request] == kinds
    assert request[-2].content == "second"
    assert answer_of(out) == "As you like."
    out = parent.invoke(go("third"), THREAD)
    model.assert_done()
    assert answer_of(out) == "Third."
    whole(out)
    assert wire_faults(model.requests) == []


# -- messages --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["bare", "kept"])
def test_a_parents_history_comes_in_and_goes_out_once(saver: Any) -> None:
    model = ScriptedModel(write("a"), "stop", close(1), "Done.")
    child = create_todo_agent(model, system_prompt="House rules.")
    graph = StateGraph(Talk)
    graph.add_node("before", lambda state: {"messages": [AIMessage("I am the first agent.")]})
    graph.add_node("child", child)
    graph.add_node("after", lambda state: {"messages": [AIMessage("I am the last.")]})
    graph.add_edge(START, "before").add_edge("before", "child").add_edge("child", "after").add_edge(
        "after", END
    )
    out = graph.compile(checkpointer=saver).invoke(go(), THREAD)
    model.assert_done()
    whole(out)
    assert wire_faults(model.requests) == []
    assert prompt_faults(model.requests) == []
    assert [m.type for m in model.requests[0]] == ["system", "human", "ai", "human"]
    assert model.requests[0][-1].additional_kwargs["wakeloop"] == {"kind": "activate"}
    assert [m.content for m in out["messages"] if m.type == "ai" and m.content] == [
        "I am the first agent.",
        "stop",
        "Done.",
        "I am the last.",
    ]


# -- two agents in one superstep -------------------------------------------------------------------------


def pair(first: Any, second: Any, saver: Any = None) -> Any:
    graph = StateGraph(Shared).add_node("first", first).add_node("second", second)
    return graph.add_edge(START, "first").add_edge(START, "second").compile(checkpointer=saver)


@pytest.mark.parametrize("saver", [None, True])
def test_two_agents_in_one_superstep(saver: Any) -> None:
    one = ScriptedModel(write("a1", "a2"), close(1), "stop", close(2), "First is done.", "one more")
    two = ScriptedModel(write("b1"), "Second stops.", "Second stops.", *["still"] * 2)
    first = create_todo_agent(one, name="first", checkpointer=saver)
    second = create_todo_agent(two, name="second", settings=ONE_WAKE, checkpointer=saver)
    parent = pair(first, second, InMemorySaver())
    out = parent.invoke({**go(), "todo_goal": "all"}, THREAD)
    whole(out)
    texts = [todo["content"] for todo in out["todos"]]
    assert sorted(texts) == ["a1", "a2", "b1"]
    assert {t["content"]: t["status"] for t in out["todos"]} == {
        "a1": "completed",
        "a2": "completed",
        "b1": "pending",
    }
    assert len({todo["id"] for todo in out["todos"]}) == 3
    assert out["todo_goal"] == "all"
    assert out["todo_session"]["reason"] in ("settled", "wake_budget")
    assert "First is done." in [m.content for m in out["messages"]]
    assert "Second stops." in [m.content for m in out["messages"]]
    assert wire_faults([*one.requests, *two.requests]) == []


def test_two_agents_ask_at_once() -> None:
    one = ScriptedModel(calls(("ask", {"question": "one?"})), "First.")
    two = ScriptedModel(calls(("ask", {"question": "two?"})), "Second.")
    parent = pair(create_todo_agent(one, [ask]), create_todo_agent(two, [ask]), InMemorySaver())
    parent.invoke(go(), THREAD)
    asked = {i.id: i.value for i in parent.get_state(THREAD).interrupts}
    assert sorted(asked.values()) == ["one?", "two?"]
    out = parent.invoke(Command(resume={key: f"to {value}" for key, value in asked.items()}), THREAD)
    one.assert_done()
    two.assert_done()
    assert sorted(m.content for m in out["messages"] if m.type == "tool") == ["to one?", "to two?"]


# -- the parent's own interrupt --------------------------------------------------------------------------


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("saver", [None, True])
def test_a_parent_with_its_own_interrupt(saver: Any, before: bool) -> None:
    model = ScriptedModel(write("a"), "stop", close(1), "Done.")
    child = create_todo_agent(model, checkpointer=saver)

    def approve(state: Talk) -> dict[str, Any]:
        return {"messages": [("user", f"approved: {interrupt('ok?')}")]}

    graph = StateGraph(Talk).add_node("child", child).add_node("approve", approve)
    order = ["approve", "child"] if before else ["child", "approve"]
    graph.add_edge(START, order[0]).add_edge(order[0], order[1])
    parent = graph.compile(checkpointer=InMemorySaver())
    parent.invoke(go(), THREAD)
    assert len(model.requests) == (0 if before else 4)
    assert session_of(parent.get_state(THREAD))["reason"] == "interrupted"
    out = parent.invoke(Command(resume="yes"), THREAD)
    model.assert_done()
    assert "approved: yes" in [m.content for m in out["messages"]]
    whole(out)
    assert wire_faults(model.requests) == []


# -- handing over ----------------------------------------------------------------------------------------


class Desk(Shared):
    """A parent with a channel for the work handed over."""

    told: Annotated[list[str], operator.add]


@tool
def hand_over(to: str) -> Any:
    """Hand the work over to a colleague."""
    return Command(goto=to, graph=Command.PARENT, update={"told": [f"to {to}"]})


@tool
def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
@pytest.mark.parametrize("saver", [None, True])
async def test_handing_over(saver: Any, door: str) -> None:
    model = ScriptedModel(
        write("a", "b"),
        calls(
            ("look", {}, "l"),
            ("hand_over", {"to": "second"}, "h"),
            ("todo_update", {"id": 1, "status": "done"}, "u"),
        ),
    )
    other = ScriptedModel(close(2), "Second is done.")
    graph = StateGraph(Desk)
    graph.add_node(
        "first", create_todo_agent(model, [hand_over, look], checkpointer=saver), destinations=("second",)
    )
    graph.add_node("second", create_todo_agent(other, checkpointer=saver))
    parent = graph.add_edge(START, "first").compile(checkpointer=InMemorySaver())
    out = parent.invoke(go(), THREAD) if door == "invoke" else await parent.ainvoke(go(), THREAD)
    model.assert_done()
    other.assert_done()
    whole(out)
    assert out["told"] == ["to second"]
    results = {m.tool_call_id: m.content for m in out["messages"] if isinstance(m, ToolMessage)}
    assert results["l"] == "seen"
    assert "h" in results
    assert results["u"] == "[1] done, 1 open."
    assert [todo["status"] for todo in out["todos"]] == ["completed", "completed"]
    assert out["todo_session"]["reason"] == "settled"
    assert answer_of(out) == "Second is done."
    request = other.requests[0]
    assert [m.type for m in request] == [
        "system",
        "human",
        "ai",
        "tool",
        "ai",
        "tool",
        "tool",
        "tool",
    ]
    assert wire_faults([*model.requests, *other.requests]) == []


@pytest.mark.parametrize("saver", [None, True])
def test_handing_over_and_coming_back(saver: Any) -> None:
    """The next run of a child that handed over begins like any other, with the list."""
    model = ScriptedModel(write("a"), calls(("hand_over", {"to": "desk"}, "h")), close(1), "Back.")
    graph = StateGraph(Desk)
    graph.add_node("first", create_todo_agent(model, [hand_over], checkpointer=saver), destinations=("desk",))
    graph.add_node("desk", lambda state: {"messages": [AIMessage("The desk has it.")]})
    parent = graph.add_edge(START, "first").compile(checkpointer=InMemorySaver())
    parent.invoke(go("first"), THREAD)
    out = parent.invoke(go("second"), THREAD)
    model.assert_done()
    whole(out)
    assert out["told"] == ["to desk"]
    assert answer_of(out) == "Back."
    assert out["todo_session"]["reason"] == "settled"
    assert wire_faults(model.requests) == []


@tool
def scatter() -> Any:
    """Hand over to two at once."""
    return Command(goto=[Send("desk", {"told": ["x"]}), Send("desk", {"told": ["y"]})], graph=Command.PARENT)


def test_handing_over_by_send() -> None:
    model = ScriptedModel(calls(("scatter", {})))
    graph = StateGraph(Desk)
    graph.add_node("first", create_todo_agent(model, [scatter]), destinations=("desk",))
    graph.add_node("desk", lambda state: {"told": [f"got {state['told'][0]}"]})
    out = graph.add_edge(START, "first").compile().invoke(go())
    assert sorted(out["told"]) == ["got x", "got y"]


def test_without_a_parent_there_is_nobody_to_hand_over_to() -> None:
    model = ScriptedModel(calls(("hand_over", {"to": "second"})), says("Then I do it."))
    out = create_todo_agent(model, [hand_over]).invoke(go())
    model.assert_done()
    assert out["messages"][2].status == "error"
    assert answer_of(out) == "Then I do it."


def test_two_hand_overs_in_one_round_both_count() -> None:
    model = ScriptedModel(calls(("hand_over", {"to": "desk"}), ("hand_over", {"to": "office"})))
    graph = StateGraph(Desk)
    graph.add_node("first", create_todo_agent(model, [hand_over]), destinations=("desk", "office"))
    graph.add_node("desk", lambda state: {"told": ["desk"]}).add_node(
        "office", lambda state: {"told": ["office"]}
    )
    out = graph.add_edge(START, "first").compile().invoke(go())
    assert {"desk", "office"} <= set(out["told"])
    assert len([m for m in out["messages"] if m.type == "tool"]) == 2


# -- called from a node, called from a tool --------------------------------------------------------------


def test_called_inside_a_node_of_the_parent() -> None:
    model = ScriptedModel(write("a"), calls(("ask", {"question": "?"}, "q")), close(1), "Done.")
    agent = create_todo_agent(model, [ask])

    def node(state: Talk) -> dict[str, Any]:
        return {"messages": agent.invoke({"messages": state["messages"]})["messages"][-1:]}

    parent = (
        StateGraph(Talk).add_node("node", node).add_edge(START, "node").compile(checkpointer=InMemorySaver())
    )
    parent.invoke(go(), THREAD)
    assert [i.value for i in parent.get_state(THREAD).interrupts] == ["?"]
    out = parent.invoke(Command(resume="yes"), THREAD)
    model.assert_done()
    assert brief(out["messages"]) == ["human: go", "ai: Done."]
    assert [m.content for m in model.requests[2] if getattr(m, "tool_call_id", None) == "q"] == ["yes"]


def test_an_agent_as_the_tool_of_another() -> None:
    """Each has its own list and budget; a question comes out, its answer goes in."""
    inner_model = ScriptedModel(
        write("inner"), "stop", calls(("ask", {"question": "inside?"}, "q")), close(1), "Inner is done."
    )
    inner = create_todo_agent(inner_model, [ask], name="inner")

    @tool
    def helper(task: str) -> str:
        """Let a helper do it."""
        return answer_of(inner.invoke(go(task)))

    model = ScriptedModel(
        write("outer"), calls(("helper", {"task": "t"}, "h"), ("look", {}, "l")), close(1), "Outer is done."
    )
    agent = create_todo_agent(model, [helper, look], checkpointer=InMemorySaver())
    agent.invoke(go(), THREAD)
    assert [i.value for i in agent.get_state(THREAD).interrupts] == ["inside?"]
    out = agent.invoke(Command(resume="yes"), THREAD)
    model.assert_done()
    inner_model.assert_done()
    assert {m.tool_call_id: m.content for m in out["messages"] if m.type == "tool"}["h"] == "Inner is done."
    assert [todo["content"] for todo in out["todos"]] == ["outer"]
    assert out["todo_session"] == {
        "state": "dormant",
        "reason": "settled",
        "open": 0,
        "wakes": 0,
        "budget": 26,
        "list": 2,
        "items": 1,
        "completed": 1,
        "cancelled": 0,
        "blocked": 0,
        "spent": ANY,
    }
    assert wire_faults([*model.requests, *inner_model.requests]) == []


def test_an_agent_in_a_tool_cannot_hand_over_for_the_other() -> None:
    inner = create_todo_agent(ScriptedModel(calls(("hand_over", {"to": "desk"}))), [hand_over], name="inner")

    @tool
    def helper(task: str) -> str:
        """Let a helper do it."""
        return answer_of(inner.invoke(go(task)))

    model = ScriptedModel(calls(("helper", {"task": "t"})), "Then not.")
    out = create_todo_agent(model, [helper], checkpointer=InMemorySaver()).invoke(go(), THREAD)
    assert [m.status for m in out["messages"] if m.type == "tool"] == ["error"]
    assert answer_of(out) == "Then not."


class State(StrEnum):
    """The statuses, as a program may name them."""

    OPEN = "pending"
    DONE = "completed"


class Task(BaseModel):
    """An item, as a parent may declare it."""

    content: str
    status: State = State.OPEN
    id: int | None = None


@dataclass
class Note:
    """The same."""

    content: str
    status: State = State.OPEN
    id: int | None = None


class Typed(BaseModel):
    """A parent whose items have their own class."""

    messages: Annotated[list[AnyMessage], add_messages]
    todos: Annotated[list[Task], join_todos]


@pytest.mark.parametrize("item", [Task(content="a"), Note("a"), {"content": "a", "status": State.OPEN}])
@pytest.mark.parametrize("schema", [Shared, Typed])
def test_items_of_a_parents_own_class(schema: Any, item: Any) -> None:
    if schema is Typed and isinstance(item, Note):
        item = vars(item)
    model = ScriptedModel(write("b"), close(1, 2), "Both done.", write("c"), close(3), "Done.")
    parent = build_parent(create_todo_agent(model), schema)
    out = parent.invoke({**go(), "todos": [item]})
    out = parent.invoke({**out, "messages": [*out["messages"], ("user", "more")]})
    assert out["todos"] == [
        {"id": number, "content": text, "status": "completed"} for number, text in enumerate("abc", 1)
    ]
    assert {type(todo["status"]) for todo in out["todos"]} == {str}
    model.assert_done()
