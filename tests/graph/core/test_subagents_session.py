"""Two agents in one superstep, and which saver a guard knows."""

from typing import Any

import pytest
from agents import todo
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from wakeloop import EditError, TodoState, build_todo_graph, create_todo_agent, update_todos
from wakeloop.platform.channels import NewestChannel
from wakeloop.stream import Session
from wakeloop.testing import ScriptedModel

THREAD: Any = {"configurable": {"thread_id": "t"}}


def parent(first: Any, second: Any, saver: Any = None) -> Any:
    graph = StateGraph(TodoState)
    graph.add_node("first", first).add_node("second", second)
    return graph.add_edge(START, "first").add_edge(START, "second").compile(checkpointer=saver)


def test_two_agents_in_one_superstep_share_a_session() -> None:
    told = {"todo_session": {"state": "idle", "reason": "stalled"}}, {"todo_session": {"state": "dormant"}}
    both = parent(lambda _: told[0], lambda _: told[1])
    assert both.invoke({"messages": [HumanMessage("go")]})["todo_session"] == {"state": "dormant"}


def test_a_session_is_absent_before_the_first_run() -> None:
    channel = NewestChannel(Session)
    assert not channel.is_available()
    assert channel.update([{"state": "idle"}, {"state": "dormant"}])
    assert channel.get() == {"state": "dormant"}
    assert not channel.update([])
    copied = channel.from_checkpoint(channel.checkpoint())
    assert (copied.get(), type(copied)) == ({"state": "dormant"}, NewestChannel)
    with pytest.raises(TypeError):
        NewestChannel()  # type: ignore[call-arg]


def guards(agent: Any) -> Any:
    """Return the saver that a compiled graph's guard looks at."""
    return agent.builder.nodes["finalization_guard"].runnable.saver


def test_each_compilation_has_a_guard_with_its_own_saver() -> None:
    graph, savers = build_todo_graph(ScriptedModel("hi")), (InMemorySaver(), InMemorySaver())
    agents = [graph.compile(checkpointer=saver) for saver in savers]
    assert [guards(agent) for agent in agents] == [*savers]
    assert guards(graph.compile()) is guards(graph.compile(checkpointer=True)) is None
    assert graph.nodes["finalization_guard"].runnable.saver is None


def test_a_snapshot_names_no_saver() -> None:
    agent = create_todo_agent(ScriptedModel("hi"), checkpointer=InMemorySaver())
    agent.invoke({"messages": [("user", "go")]}, THREAD)
    for snapshot in agent.get_state_history(THREAD):
        again = agent.get_state(snapshot.config)
        assert again.config["configurable"].keys() == {"thread_id", "checkpoint_ns", "checkpoint_id"}


def test_an_edit_of_a_graph_without_a_list_says_where_to_edit() -> None:
    graph = parent(lambda _: {}, lambda _: {}, InMemorySaver())
    graph.invoke({"messages": [("user", "go")], "todos": [todo(1, "a")]}, THREAD)
    with pytest.raises(
        EditError,
        match=r"the thread of 'LangGraph' cannot be edited as it is .* Send the list with the next input",
    ):
        update_todos(graph, THREAD, done=[1])
