"""What streams, batches and running loops show."""

import asyncio
import time
from typing import Any
from unittest.mock import ANY

import pytest
from clocks import Clock, by, timeless
from langchain_core.messages import AIMessage, AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from rig import close, write
from shared_tools import look

from wakeloop import TodoState, answer_of, create_todo_agent, preset
from wakeloop.testing import ScriptedModel, calls, wire_faults

THREAD: Any = {"configurable": {"thread_id": "thread"}}
GO: Any = {"messages": [("user", "go")]}


def scripted(**options: Any) -> tuple[ScriptedModel, Any]:
    """A run with a wake, a reminder and a correction in it."""
    model = ScriptedModel(
        write("a", "b"),
        calls(("look", {"place": "x"}), ("look", {"place": "y"})),
        close(1),
        "I stop here.",
        *["Nothing more to do."] * 2,
        close(2),
        "All done now.",
    )
    settings = preset("wakeloop").model_copy(update={"nag_after": 1, "max_idle_wakes": 2})
    return model, create_todo_agent(model, [look], settings=settings, **options)


def streamed(door: str, agent: Any, **options: Any) -> list[Any]:
    """Return everything that a stream yields, through either door."""
    if door == "stream":
        return list(agent.stream(GO, THREAD, **options))

    async def collected() -> list[Any]:
        return [chunk async for chunk in agent.astream(GO, THREAD, **options)]

    return asyncio.run(collected())


DOORS = ["stream", "astream"]
NODES = [
    "activate",
    "call_model",
    "validate_todos",
    "call_model",
    "run_tools",
    "run_tools",
    "nag",
    "call_model",
    "validate_todos",
    "call_model",
    "finalization_guard",
    "wake",
    "call_model",
    "finalization_guard",
    "wake",
    "call_model",
    "finalization_guard",
    "call_model",
    "validate_todos",
    "call_model",
    "finalization_guard",
]


@pytest.mark.parametrize("door", DOORS)
def test_updates_name_the_nodes(door: str) -> None:
    model, agent = scripted()
    assert [name for chunk in streamed(door, agent, stream_mode="updates") for name in chunk] == NODES
    model.assert_done()


@pytest.mark.parametrize("door", DOORS)
def test_values_end_with_what_invoke_returns(door: str) -> None:
    _, agent = scripted()
    _, other = scripted()
    for graph in (agent, other):
        by(Clock(), graph)
    chunks, out = streamed(door, agent, stream_mode="values"), other.invoke(GO)
    last = chunks[-1]
    assert (
        last.keys() >= out.keys()
    )  # a stream of values shows every channel, whatever the output schema says
    assert last["todos"] == out["todos"]
    assert last["todo_session"] == out["todo_session"]
    assert [(m.type, m.content) for m in last["messages"]] == [(m.type, m.content) for m in out["messages"]]
    assert all(isinstance(chunk["todos"], list) for chunk in chunks)
    assert set(out) == {"messages", "todos", "todo_goal", "todo_session"}


@pytest.mark.parametrize("door", DOORS)
def test_messages_stream_in_chunks_and_add_up(door: str) -> None:
    _, agent = scripted(checkpointer=InMemorySaver())
    pieces: dict[str, AIMessageChunk] = {}
    for message, metadata in streamed(door, agent, stream_mode="messages"):
        if isinstance(message, AIMessageChunk):
            assert metadata["langgraph_node"] == "call_model"
            pieces[message.id or ""] = pieces[message.id or ""] + message if message.id in pieces else message
    stored = [m for m in agent.get_state(THREAD).values["messages"] if isinstance(m, AIMessage)]
    assert len(pieces) == len(stored) == 8
    for message in stored:
        whole = pieces[message.id or ""]
        assert whole.content == message.content
        assert [c["args"] for c in whole.tool_calls] == [c["args"] for c in message.tool_calls]


@pytest.mark.parametrize("door", DOORS)
def test_messages_show_every_message_once(door: str) -> None:
    """Whole messages of the graph and of tools come once; a reminder comes as a new version."""
    _, agent = scripted(checkpointer=InMemorySaver())
    seen = [m for m, _ in streamed(door, agent, stream_mode="messages") if not isinstance(m, AIMessageChunk)]
    ids = [m.id for m in seen]
    stored = agent.get_state(THREAD).values["messages"]
    injected = [m.id for m in stored if m.type == "human" and m.additional_kwargs]
    assert len(injected) == 3
    assert all(ids.count(key) == 1 for key in injected)
    assert {m.id for m in stored if m.type == "tool"} <= set(ids)


EVENTS: list[dict[str, Any]] = [
    {"type": "activated", "sources": ["human"], "open": 0, "budget": 25},
    {"type": "todos", "changed": [1, 2]},
    {"type": "nag", "rounds": 1, "open": 2},
    {"type": "todos", "changed": [1]},
    {"type": "wake", "cycle": 1, "budget": 26, "open": 1, "reasons": ["todos"]},
    {"type": "wake", "cycle": 2, "budget": 26, "open": 1, "reasons": ["todos"]},
    {"type": "guard", "action": "correct", "retry": 1, "retries": 1, "open": 1, "reason": "stalled"},
    {"type": "todos", "changed": [2]},
    {
        "type": "parked",
        "session": {
            "state": "dormant",
            "reason": "settled",
            "open": 0,
            "wakes": 2,
            "budget": 27,
            "list": 3,
            "items": 2,
            "completed": 2,
            "cancelled": 0,
            "blocked": 0,
            "spent": ANY,
        },
    },
]


@pytest.mark.parametrize("door", DOORS)
def test_custom_events(door: str) -> None:
    _, agent = scripted()
    events = streamed(door, agent, stream_mode="custom")
    spent = [e["spent"]["requests"] for e in events if e["type"] == "spent"]
    assert spent == [1, 2, 3, 4, 5, 6, 7, 8]
    events = timeless(e for e in events if e["type"] != "spent")
    lists = [[todo["status"] for todo in e.pop("todos")] for e in events if e["type"] == "todos"]
    assert events == EVENTS
    assert lists == [["pending", "pending"], ["completed", "pending"], ["completed", "completed"]]


@pytest.mark.parametrize("door", DOORS)
def test_every_event_has_its_time_and_each_request_its_duration(door: str) -> None:
    _, agent = scripted()
    clock = by(Clock(), agent)
    began = time.time()
    events = streamed(door, agent, stream_mode="custom")
    at = [event["at"] for event in events]
    assert at == sorted(at)
    assert round(began, 3) <= at[0] <= at[-1] <= round(time.time(), 3)
    paid = [event["exchange"] for event in events if event["type"] == "spent"]
    (total,) = [event["session"]["spent"] for event in events if event["type"] == "parked"]
    assert len(paid) == total["requests"] == 8
    assert {key: sum(one[key] for one in paid) for key in ("input", "cached", "output")} == {
        key: total[key] for key in ("input", "cached", "output")
    }
    assert [one["seconds"] for one in paid] == 8 * [clock()]
    assert all(one["estimated"] for one in paid)


@pytest.mark.parametrize("door", DOORS)
def test_several_modes_and_subgraphs(door: str) -> None:
    _, child = scripted()
    parent = (
        StateGraph(TodoState)
        .add_node("child", child)
        .add_edge(START, "child")
        .compile(checkpointer=InMemorySaver())
    )
    chunks = streamed(door, parent, stream_mode=["updates", "custom", "values", "messages"], subgraphs=True)
    inner = [chunk for chunk in chunks if chunk[0]]
    assert {namespace[0].split(":")[0] for namespace, *_ in inner} == {"child"}
    assert [name for _, mode, chunk in inner if mode == "updates" for name in chunk] == NODES
    told = [event["type"] for _, mode, event in inner if mode == "custom" and event["type"] != "spent"]
    assert told == [e["type"] for e in EVENTS]
    outer = [chunk for namespace, mode, chunk in chunks if not namespace and mode == "updates"]
    assert [list(chunk) for chunk in outer] == [["child"]]


async def test_events_version_2_names_the_nodes() -> None:
    _, agent = scripted()
    names = [
        event["name"]
        async for event in agent.astream_events(GO, version="v2")
        if event["event"] == "on_chain_start" and event["name"] in NODES
    ]
    assert names == NODES


# -- batches and loops -----------------------------------------------------------------------------------


def echoing() -> Any:
    """A model that plans, works and answers separately for each question."""

    def reply(request: list[Any]) -> Any:
        question = next(m.content for m in request if m.type == "human")
        step = sum(m.type == "ai" for m in request)
        return [write(question), close(1), f"Answer to {question}"][step]

    return reply


@pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["bare", "kept"])
async def test_batches_do_not_mix(saver: Any) -> None:
    model = ScriptedModel([echoing()] * 48)
    agent = create_todo_agent(model, checkpointer=saver)
    questions = [f"question {n}" for n in range(8)]
    inputs = [{"messages": [("user", question)]} for question in questions]
    for many in ("batch", "abatch"):
        configs: Any = [{"configurable": {"thread_id": f"{many} {n}"}} for n in range(8)]
        outs = agent.batch(inputs, configs) if many == "batch" else await agent.abatch(inputs, configs)
        assert [answer_of(out) for out in outs] == [f"Answer to {question}" for question in questions]
        assert [out["todos"][0]["content"] for out in outs] == questions
    model.assert_done()
    assert wire_faults(model.requests) == []
