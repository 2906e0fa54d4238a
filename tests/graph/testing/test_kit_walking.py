"""walk and awalk over small graphs."""

import asyncio
from operator import add
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

from wakeloop.testing import ScriptedModel, awalk, calls, says, walk

THREAD: Any = {"configurable": {"thread_id": "1"}}


class Log(TypedDict, total=False):
    """The nodes' writes."""

    log: Annotated[list[Any], add]


def writer(word: str) -> Any:
    def write(state: Any) -> dict[str, Any]:
        return {"log": [word]}

    return write


def work(job: Any) -> dict[str, Any]:
    if job == "ask":
        return {"log": [interrupt("which?")]}
    if isinstance(job, BaseException):
        raise job
    return {"log": [job]}


def silent(state: Any) -> None:
    """A node that writes nothing."""


def fan(*jobs: Any, saver: bool = True) -> Any:
    """A graph: plan; then one `work` for each job, `list` and `silent`; then join."""
    graph = StateGraph(Log)
    graph.add_node("plan", writer("plan"))
    graph.add_node("work", work)
    graph.add_node("list", writer("list"))
    graph.add_node("silent", silent)
    graph.add_node("join", writer("join"))
    graph.add_edge(START, "plan")
    graph.add_conditional_edges(
        "plan", lambda _: [*(Send("work", job) for job in jobs), "silent", "list"], ["work", "list", "silent"]
    )
    graph.add_edge(["list", "silent"], "join")
    return graph.compile(checkpointer=InMemorySaver() if saver else None)


def loop(model: ScriptedModel) -> Any:
    """A handmade loop of call_model and run_tools."""

    def call_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def run_tools(state: MessagesState) -> dict[str, Any]:
        made = state["messages"][-1].tool_calls  # type: ignore[union-attr]
        return {"messages": [{"role": "tool", "content": "ok", "tool_call_id": call["id"]} for call in made]}

    graph = StateGraph(MessagesState)
    graph.add_node("call_model", call_model)
    graph.add_node("run_tools", run_tools)
    graph.add_edge(START, "call_model")
    graph.add_conditional_edges(
        "call_model",
        lambda state: "run_tools" if state["messages"][-1].tool_calls else "__end__",
        ["run_tools", "__end__"],
    )
    graph.add_edge("run_tools", "call_model")
    return graph.compile()


def both(agent: Any, given: Any, config: Any = None, **kwargs: Any) -> list[str]:
    """Walk through both doors, which must agree; only for agents that keep nothing."""
    there = walk(agent, given, config, **kwargs)
    assert asyncio.run(awalk(agent, given, config, **kwargs)) == there
    return there


def test_a_loop_is_walked_node_by_node() -> None:
    script = [calls(("a", {}), ("b", {})), calls(("a", {})), says("done")]
    agent = loop(ScriptedModel(script * 2))
    assert both(agent, "go") == ["call_model", "run_tools", "call_model", "run_tools", "call_model"]


def test_a_string_is_one_user_message() -> None:
    model = ScriptedModel("a", "b")
    walk(loop(model), "go")
    walk(loop(model), {"messages": [("user", "x"), ("user", "y")]})
    contents = [[(type(message), message.content) for message in request] for request in model.requests]
    assert contents == [[(HumanMessage, "go")], [(HumanMessage, "x"), (HumanMessage, "y")]]


def test_one_superstep_in_alphabetical_order_once_each() -> None:
    assert both(fan(1, 2, 3, saver=False), {}) == ["plan", "list", "silent", "work", "join"]


def test_with_a_saver_and_keywords_for_the_stream() -> None:
    agent = fan(1)
    assert walk(agent, {}, THREAD, durability="exit") == ["plan", "list", "silent", "work", "join"]
    assert agent.get_state(THREAD).values["log"] == ["plan", "list", 1, "join"]


def test_an_interrupt_ends_the_walk_and_a_resume_lists_only_what_runs_again() -> None:
    agent = fan(1, "ask", 2)
    assert walk(agent, {}, THREAD) == ["plan", "list", "silent", "work"]
    assert walk(agent, Command(resume="this"), THREAD) == ["work", "join"]
    assert sorted(map(str, agent.get_state(THREAD).values["log"])) == [
        "1",
        "2",
        "join",
        "list",
        "plan",
        "this",
    ]


async def test_an_interrupt_through_the_other_door() -> None:
    agent = fan(1, "ask", 2)
    assert await awalk(agent, {}, THREAD) == ["plan", "list", "silent", "work"]
    assert await awalk(agent, Command(resume="this"), THREAD) == ["work", "join"]


def test_two_interrupts_answered_one_by_one() -> None:
    agent = fan("ask", "ask")
    walk(agent, {}, THREAD)
    first, second = agent.get_state(THREAD).interrupts
    assert walk(agent, Command(resume={first.id: "a"}), THREAD) == ["work"]
    assert walk(agent, Command(resume={second.id: "b"}), THREAD) == ["work", "join"]


def test_a_static_breakpoint_counts_no_node_that_did_not_run() -> None:
    agent = fan(1)
    assert walk(agent, {}, THREAD, interrupt_before=["work"]) == ["plan"]
    assert walk(agent, None, THREAD) == ["list", "silent", "work", "join"]


def test_nothing_to_do_is_an_empty_walk() -> None:
    agent = fan(1)
    walk(agent, {}, THREAD)
    assert walk(agent, None, THREAD) == []


@pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt()])
def test_an_exception_of_a_run_passes_through_with_the_walk(error: BaseException) -> None:
    visited: list[str] = []
    with pytest.raises(type(error)) as caught:
        walk(fan(1, error, saver=False), {}, visited=visited)
    assert caught.value is error
    assert visited == ["plan", "list", "silent", "work"]
    assert caught.value.__notes__[-1] == "walk: plan, list, silent, work"  # LangGraph adds its own note


async def test_an_exception_of_an_async_run_passes_through_with_the_walk() -> None:
    visited: list[str] = []
    error = ValueError("broken")
    with pytest.raises(ValueError, match="broken") as caught:
        await awalk(fan(1, error, saver=False), {}, visited=visited)
    assert caught.value is error
    assert visited == ["plan", "list", "silent", "work"]


def test_the_step_limit_loses_nothing() -> None:
    visited: list[str] = []
    agent = loop(ScriptedModel(calls(("a", {})) for _ in range(9)))
    with pytest.raises(GraphRecursionError):
        walk(agent, "go", {"recursion_limit": 3}, visited=visited)
    assert visited == ["call_model", "run_tools", "call_model"]


def test_a_run_that_raises_at_once_walked_nowhere() -> None:
    with pytest.raises(ValueError, match="thread_id") as caught:
        walk(fan(1), {})
    assert caught.value.__notes__ == ["walk: no node"]


def test_after_a_failure_only_what_failed_runs_again() -> None:
    failures = [ValueError("once")]

    def flaky(state: Any) -> dict[str, Any]:
        if failures:
            raise failures.pop()
        return {"log": ["flaky"]}

    graph = StateGraph(Log).add_node("flaky", flaky).add_node("good", writer("good"))
    agent = graph.add_edge(START, "flaky").add_edge(START, "good").compile(checkpointer=InMemorySaver())
    visited: list[str] = []
    with pytest.raises(ValueError, match="once"):
        walk(agent, {"log": []}, THREAD, visited=visited)
    assert visited == ["flaky", "good"]
    again = walk(agent, None, THREAD)
    assert again[0] == "flaky"
    assert sorted(agent.get_state(THREAD).values["log"]) == ["flaky", "good"]


def test_a_subgraph_is_one_node() -> None:
    outer = StateGraph(Log).add_node("inner", fan(1, saver=False)).add_node("after", writer("after"))
    agent = outer.add_edge(START, "inner").add_edge("inner", "after").compile()
    assert both(agent, {"log": []}) == ["inner", "after"]


def test_a_command_may_be_the_first_input() -> None:
    agent = fan(1)
    walk(agent, {}, THREAD)
    assert walk(agent, Command(goto="list", update={"log": ["x"]}), THREAD) == ["list"]
