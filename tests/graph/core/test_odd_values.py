"""Values that no checkpoint accepts, or that are not JSON:

refused before anything is stored, or sent as strings.
"""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pytest
from forms import Chat, Server
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from shared_tools import ask

from wakeloop import InputError, ReplyError, TodoState, create_todo_agent, session_of
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.model.chat_models import create_model
from wakeloop.testing import ScriptedModel, calls, says

CONFIG: Any = {"configurable": {"thread_id": "1"}}
CIRCLE: dict[str, Any] = {}
CIRCLE["c"] = CIRCLE
RANGE, NONE = "Integer exceeds 64-bit range", "Type is not msgpack serializable: "
CALL: Any = {"name": "look", "args": {"place": "x"}, "id": "1"}


def told(**fields: Any) -> dict[str, Any]:
    return {"messages": [("user", "hi"), HumanMessage(**{"content": "hi", **fields})]}


REFUSED: dict[str, tuple[Any, str]] = {
    "a number next to it": (
        told(additional_kwargs={"n": {"of": [1, 2**64]}}),
        rf"messages > 2 > additional_kwargs > n > of > 2: an int; {RANGE}",
    ),
    "a number of the provider's": (
        told(response_metadata={"n": -(2**63) - 1}),
        rf"messages > 2 > response_metadata > n: an int; {RANGE}",
    ),
    "a number in a block": (
        told(content=[{"type": "text", "text": "hi", "n": 2**64}]),
        rf"messages > 2 > content > 1 > n: an int; {RANGE}",
    ),
    "an object": (told(additional_kwargs={"n": object()}), f"n: an object; {NONE}object"),
    "a function": (told(additional_kwargs={"n": len}), f"n: a builtin_function_or_method; {NONE}"),
    "itself": (
        told(additional_kwargs=CIRCLE),
        "messages > 2 > additional_kwargs( > c){5}: a dict; Recursion limit reached",
    ),
    "a message in JSON": (
        {"messages": {"role": "user", "content": "hi", "n": 2**64}},
        f"messages > n: an int; {RANGE}",
    ),
    "an artifact": (
        {"messages": [AIMessage("", tool_calls=[CALL]), ToolMessage("x", tool_call_id="1", artifact=len)]},
        "messages > 2 > artifact: a builtin_function_or_method",
    ),
    "an item's": ({"todos": [{"content": "a", "n": 2**64}]}, f"todos > 1 > n: an int; {RANGE}"),
    "a setting": ({"todo_settings": {"max_wake_cycles": 2**64}}, "todo_settings > max_wake_cycles: an int"),
}


@pytest.mark.parametrize(("given", "where"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
def test_a_value_that_no_checkpoint_accepts_is_refused_with_its_place(
    door: str, given: Any, where: str
) -> None:
    model = ScriptedModel(says("one"), says("two"))
    agent = create_todo_agent(model, checkpointer=InMemorySaver())
    agent.invoke({"messages": [("user", "first")]}, CONFIG)
    before = agent.get_state(CONFIG)
    with pytest.raises(
        InputError, match=rf"^A checkpoint cannot store this input: .*{where}.*\. Pass it as a string"
    ):
        agent.invoke(given, CONFIG) if door == "invoke" else asyncio.run(agent.ainvoke(given, CONFIG))
    assert agent.get_state(CONFIG) == before
    agent.invoke({"messages": [("user", "then")]}, CONFIG)
    assert [m.text for m in model.requests[-1] if m.type == "human"] == ["first", "then"]
    model.assert_done()


def test_an_answer_that_no_checkpoint_can_store_is_refused_and_the_question_stays() -> None:
    agent = create_todo_agent(
        ScriptedModel(calls(("ask", {"question": "?"})), says("bye")), [ask], checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": [("user", "go")]}, CONFIG)
    with pytest.raises(InputError, match=rf"input: resume: an int; {RANGE}\."):
        agent.invoke(Command(resume=2**64), CONFIG)
    assert len(agent.get_state(CONFIG).interrupts) == 1
    agent.invoke(Command(resume="yes"), CONFIG)
    assert session_of(agent.get_state(CONFIG))["reason"] == "answered"


@pytest.mark.parametrize(
    ("given", "durability"),
    [
        ({"client": len}, "exit"),
        ({"client": None, "no channel": len}, "exit"),
        (Command(update={"client": len}), "async"),
        (Command(update={"client": len}), "sync"),
    ],
)
@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
def test_what_is_not_stored_may_be_anything(door: str, given: Any, durability: Any) -> None:
    agent = create_todo_agent(
        ScriptedModel(says("one"), says("two")), state_schema=Own, checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": [("user", "first")]}, CONFIG)
    go: Any = {"messages": [("user", "then")]}
    whole = Command(update={**go, **given.update}) if isinstance(given, Command) else {**go, **given}
    run = agent.invoke if door == "invoke" else lambda *a, **more: asyncio.run(agent.ainvoke(*a, **more))
    out = run(whole, CONFIG, durability=durability)
    assert [m.text for m in out["messages"] if m.type == "human"] == ["first", "then"]
    assert "no channel" not in out
    with pytest.raises(InputError, match="own: a builtin"):
        run({**go, "own": len}, CONFIG, durability=durability)


def test_without_a_saver_nothing_is_written() -> None:
    agent = create_todo_agent(ScriptedModel(says("hello")))
    out = agent.invoke(told(additional_kwargs={"n": 2**64}))
    assert out["messages"][1].additional_kwargs["n"] == 2**64


ODD = {
    "set": {7},
    "nan": float("nan"),
    "time": datetime(2026, 1, 2, tzinfo=UTC),
    "place": Path("/x"),
    "pairs": {(1, 2): (3, float("inf"))},
    "number": 2**63,
}
AS_JSON = {
    "set": [7],
    "nan": "nan",
    "time": "2026-01-02 00:00:00+00:00",
    "place": "/x",
    "pairs": {"(1, 2)": [3, "inf"]},
    "number": 2**63,
}


@pytest.mark.parametrize("layer", [False, True], ids=["graph", "middleware"])
def test_a_value_that_is_not_json_is_sent_as_a_string_and_kept_as_it_is(layer: bool) -> None:
    server, saver = Server(Chat(), "one", "two"), InMemorySaver()
    agent: Any = (
        create_agent(server.chat, [], middleware=[WakeLoopMiddleware()], checkpointer=saver)
        if layer
        else create_todo_agent(server.chat, checkpointer=saver)
    )
    call: Any = {"name": "look", "args": {**ODD, "raw": b"x"}, "id": "1"}
    blocks: Any = [{"type": "text", "text": "hi", "odd": ODD}]
    history = [AIMessage("", tool_calls=[call]), ToolMessage("x", tool_call_id="1"), AIMessage("so")]
    agent.invoke({"messages": [HumanMessage("go"), *history, HumanMessage(blocks)]}, CONFIG)
    agent.invoke({"messages": [("user", "then")]}, CONFIG)
    server.assert_done()
    sent = server.payloads[1]["messages"]
    made = next(m for m in sent if m.get("tool_calls"))["tool_calls"][0]["function"]["arguments"]
    assert json.loads(made) == {**AS_JSON, "raw": "b'x'"}
    assert [m["content"][0]["odd"] for m in sent if isinstance(m["content"], list)] == [AS_JSON]
    kept = agent.get_state(CONFIG).values["messages"]
    assert kept[1].tool_calls[0]["args"]["time"] == ODD["time"]


def test_bytes_are_left_to_the_client_and_one_that_cannot_send_them_says_so() -> None:
    server = Server(Chat(), "one")
    agent = create_todo_agent(server.chat, checkpointer=InMemorySaver())
    blocks: Any = [{"type": "text", "text": "hi", "raw": b"x"}]
    with pytest.raises(ReplyError, match=r"request could not be written .TypeError: Object of type bytes"):
        agent.invoke({"messages": [HumanMessage(blocks, id="m")]}, CONFIG)
    agent.invoke({"messages": [HumanMessage("hi", id="m")]}, CONFIG)
    server.assert_done()


def test_an_option_that_the_client_lacks_is_named() -> None:
    model = create_model("m", api_key="x", model_kwargs={"top_k": 4})
    with pytest.raises(ReplyError, match=r"could not be made .*'top_k'.*: the client has no such option"):
        create_todo_agent(model).invoke({"messages": "hi"})


@tool(response_format="content_and_artifact")
def drawn(place: str) -> tuple[str, Any]:
    """Draw a place."""
    return f"drew {place}", {"kept": 1} if place == "x" else {"figure": object()}


@tool(response_format="content_and_artifact")
def measured(place: str) -> tuple[str, Any]:
    """Measure a place."""
    return f"measured {place}", pytest.importorskip("numpy").zeros(2)


@pytest.mark.parametrize("saver", [InMemorySaver(), None], ids=["kept", "unkept"])
def test_an_artifact_without_a_truth_value_is_fine(saver: Any) -> None:
    model = ScriptedModel(calls(("measured", {"place": "x"})), says("done"))
    out = create_todo_agent(model, [measured], checkpointer=saver).invoke({"messages": ["go"]}, CONFIG)
    [result] = [message for message in out["messages"] if message.type == "tool"]
    assert (result.text, list(result.artifact)) == ("measured x", [0, 0])


@tool
def noted(place: str, call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Note a place."""
    told = ToolMessage(f"noted {place}", tool_call_id=call_id)
    return Command(update={"messages": [told], "own": 1 if place == "x" else object()})


@tool
def opened(place: str) -> Any:
    """Open a place."""
    return Command(update={"client": place.join, "no channel": object()})


class Own(TodoState):
    """Adds two channels, one of them never stored."""

    own: Any
    client: Annotated[Any, UntrackedValue(object)]


@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
def test_a_tools_value_that_no_checkpoint_accepts_is_an_error_that_names_it(door: str) -> None:
    made = [
        *((name, {"place": place}) for name in ("drawn", "noted") for place in "xy"),
        ("opened", {"place": "-"}),
    ]
    model = ScriptedModel(calls(*made), says("bye"))
    agent = create_todo_agent(model, [drawn, noted, opened], state_schema=Own, checkpointer=InMemorySaver())
    given: Any = {"messages": [("user", "go")]}
    out = agent.invoke(given, CONFIG) if door == "invoke" else asyncio.run(agent.ainvoke(given, CONFIG))
    error, of = "Error: no checkpoint takes what the tool returned", f"an object; {NONE}object"
    results = [(m.text, m.artifact) for m in out["messages"] if m.type == "tool"]
    assert results == [
        ("drew x", {"kept": 1}),
        (f"{error} (messages > 1 > artifact > figure: {of})", None),
        ("noted x", None),
        (f"{error} (own: {of})", None),
        ("Done.", None),
    ]
    assert out["client"]("ab") == "a-b"
    assert session_of(agent.get_state(CONFIG))["reason"] == "answered"
    model.assert_done()


def test_without_a_saver_a_tool_may_return_anything() -> None:
    agent = create_todo_agent(ScriptedModel(calls(("drawn", {"place": "y"})), says("bye")), [drawn])
    out = agent.invoke({"messages": [("user", "go")]})
    assert type(out["messages"][2].artifact["figure"]) is object
