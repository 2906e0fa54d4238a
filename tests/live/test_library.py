"""A real server through the library: protocol, bounds and endings, never the quality of a plan."""

import asyncio
from typing import Any, get_args

import openai
import pytest
from conftest import MODEL, own_server
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import create_todo_agent, preset, session_of
from wakeloop.cli.agent import ask_server_window
from wakeloop.errors import WakeloopError
from wakeloop.stream import EndReason
from wakeloop.testing import prompt_faults, wire_faults
from wakeloop.todos.items import is_open

pytestmark = pytest.mark.loopback

LIMIT = 15  # (15 - 3) / 2 requests
THREAD: Any = {"configurable": {"thread_id": "thread"}, "recursion_limit": LIMIT}
TODOS = (
    "Plan two steps to tidy a room with todo_write, then look at the room.",
    "Now the kitchen, in one step.",
)
DOORS = ["invoke", "stream", "ainvoke", "astream"]


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"{place} is tidy"


def through(door: str, agent: Any, given: Any) -> dict[str, Any]:
    """Return the state at the end of a run; the streams ask for tokens, so that the server streams too."""
    if door == "invoke":
        return agent.invoke(given, THREAD)
    if door == "ainvoke":
        return asyncio.run(agent.ainvoke(given, THREAD))
    modes = ["values", "messages", "custom"]
    if door == "stream":
        chunks = list(agent.stream(given, THREAD, stream_mode=modes))
    else:

        async def collected() -> list[Any]:
            return [chunk async for chunk in agent.astream(given, THREAD, stream_mode=modes)]

        chunks = asyncio.run(collected())
    return [payload for mode, payload in chunks if mode == "values"][-1]


def kinds(messages: list[BaseMessage]) -> list[str]:
    return [m.additional_kwargs["wakeloop"]["kind"] for m in messages if "wakeloop" in m.additional_kwargs]


def run(door: str, agent: Any, settings: Any, relay: Any, given: Any) -> dict[str, Any]:
    """Run one activation, and check everything that the rules promise whatever the model replies."""
    before, asked = len(agent.get_state(THREAD).values.get("messages", ())), len(relay.bodies)
    try:
        state = through(door, agent, given)
    # as when the context is full: named, and the thread is intact
    except (WakeloopError, openai.OpenAIError):
        state = agent.get_state(THREAD).values
        assert state["todo_session"]["state"] == "running"
        assert len(relay.bodies) > asked
    else:
        session = state["todo_session"]
        count = sum(is_open(todo) for todo in state["todos"])
        assert session["reason"] in get_args(EndReason) or session["reason"] in get_args(
            get_args(EndReason)[0]
        )
        assert session["state"] == ("idle" if count else "dormant")
        assert session["open"] == count
        assert session == dict(session_of(agent.get_state(THREAD)))
        written = kinds(state["messages"][before:])
        assert written.count("wake") == session["wakes"] <= settings.max_wake_cycles
        assert written.count("guard") <= settings.guard_retries
    assert len(relay.bodies) - asked <= (LIMIT - 3) / 2
    assert wire_faults(relay.requests) == []
    assert prompt_faults(relay.requests) == []
    return state


def tool_names(relay: Any) -> set[str]:
    """Return the tools that the model called, as later requests show them to the server."""
    return {
        call["name"]
        for request in relay.requests
        for message in request
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }


@pytest.mark.parametrize("door", DOORS)
def test_every_door_takes_two_messages(door: str, model: Any, relay: Any) -> None:
    settings = preset("wakeloop").model_copy(update={"max_wake_cycles": 2})
    agent = create_todo_agent(model(), [look], settings=settings, checkpointer=InMemorySaver())
    for text in TODOS:
        run(door, agent, settings, relay, {"messages": [("user", text)]})
    assert [bool(body.get("stream")) for body in relay.bodies] == [door in ("stream", "astream")] * len(
        relay.bodies
    )
    texts = [m.content for m in relay.requests[-1] if m.type == "human"]
    assert [text for text in texts if text in TODOS] == list(TODOS)


@own_server
def test_the_small_model_calls_tools(model: Any, relay: Any) -> None:
    settings = preset("wakeloop")
    agent = create_todo_agent(model(), [look], settings=settings, checkpointer=InMemorySaver())
    state = run("invoke", agent, settings, relay, {"messages": [("user", TODOS[0])]})
    assert tool_names(relay) <= {"todo_write", "todo_update", "todo_list", "look"}
    replies = [m for m in state["messages"] if isinstance(m, AIMessage) and m.tool_calls]
    assert {m.response_metadata["finish_reason"] for m in replies} == {"tool_calls"}


@pytest.mark.parametrize("name", ["loki", "lesson", "cubepi-strict"])
def test_every_dialect(name: str, model: Any, relay: Any) -> None:
    settings = preset(name).model_copy(update={"auto_continue": True, "max_wake_cycles": 1})
    agent = create_todo_agent(model(), [look], settings=settings, checkpointer=InMemorySaver())
    for text in TODOS:
        run("invoke", agent, settings, relay, {"messages": [("user", text)]})


@pytest.mark.parametrize("door", ["invoke", "astream"])
def test_a_model_that_has_to_call_a_tool(door: str, model: Any, relay: Any) -> None:
    """Each reply is a call, or was cut before it became one."""
    settings = preset("wakeloop")
    agent = create_todo_agent(model(required=True), [look], settings=settings, checkpointer=InMemorySaver())
    state = run(door, agent, settings, relay, {"messages": [("user", TODOS[0])]})
    assert {body["tool_choice"] for body in relay.bodies} == {"required"}
    assert state["todo_session"]["reason"] in ("step_limit", "truncated", None)


def test_open_items_wake_it_within_the_budget(model: Any, relay: Any) -> None:
    settings = preset("wakeloop").model_copy(update={"max_wake_cycles": 2, "reply_retries": 0})
    agent = create_todo_agent(model(bare=True), [look], settings=settings, checkpointer=InMemorySaver())
    todos = [{"content": "sweep", "status": "pending"}, {"content": "dust", "status": "pending"}]
    run("invoke", agent, settings, relay, {"messages": [("user", "Say yes.")], "todos": todos})
    run("invoke", agent, settings, relay, {"messages": [("user", "Say no.")]})


@own_server
def test_the_server_names_its_window(server: str) -> None:
    from llama import CONTEXT

    assert ask_server_window(server, MODEL, "") == CONTEXT


def look_around(rooms: int) -> list[Any]:
    """Return a history of calls whose results are long."""
    messages: list[Any] = [("user", "Look at every room.")]
    for number in range(rooms):
        call = {"name": "look", "args": {"place": f"room {number}"}, "id": f"call{number}"}
        messages.append(AIMessage("", tool_calls=[call]))
        messages.append(ToolMessage("tidy " * 300, tool_call_id=f"call{number}", name="look"))
    return messages


@own_server
def test_a_thread_that_is_too_long_is_refused_in_the_servers_words_and_healed(model: Any, relay: Any) -> None:
    from llama import CONTEXT

    saver = InMemorySaver()
    agent = create_todo_agent(model(), [look], settings={"max_context": 0}, checkpointer=saver)
    with pytest.raises(openai.BadRequestError, match=f"exceeds the available context size .{CONTEXT} tokens"):
        agent.invoke({"messages": look_around(12)}, THREAD)
    assert agent.get_state(THREAD).values["todo_session"]["state"] == "running"
    healed = create_todo_agent(model(), [look], checkpointer=saver)
    healed.invoke(None, {**THREAD, "recursion_limit": 8})
    values = healed.get_state(THREAD).values
    assert relay.statuses[:3] == [400, 400, 200]
    assert values["todo_ledger"]["window"][1] <= CONTEXT
    assert sum(message.text.startswith("cleared: 1,500 characters") for message in relay.requests[2]) >= 8
    assert len([m for m in values["messages"] if m.type == "tool" and len(m.text) >= 1_500]) == 12
    assert wire_faults(relay.requests) == []


@own_server
def test_words_that_do_not_fit_end_the_run(model: Any, relay: Any) -> None:
    agent = create_todo_agent(model(), checkpointer=InMemorySaver())
    session = session_of(agent.invoke({"messages": [("user", "tea " * 8_000)]}, THREAD))
    assert (session["reason"], relay.statuses) == ("context_full", [400, 400, 400])
    assert wire_faults(relay.requests) == []
