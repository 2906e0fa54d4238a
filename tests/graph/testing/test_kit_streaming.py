"""Streamed replies add up to the scripted ones."""

import asyncio
from functools import reduce
from itertools import repeat
from operator import add
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessageChunk, message_chunk_to_message
from langchain_core.outputs import ChatGenerationChunk
from langgraph.graph import START, MessagesState, StateGraph

from wakeloop.testing import ScriptedModel, calls, malformed_call, says

USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5, "input_token_details": {"cache_read": 1}}

REPLIES = [
    says(""),
    says("a"),
    says("several words, four chunks"),
    says("cut", finish_reason="length", usage_metadata=USAGE, additional_kwargs={"refusal": None, "n": 1}),
    calls(("search", {"query": "x", "deep": {"list": [1, None, True]}}), ("read", {}), text="both"),
    calls(("a", {}, "same"), ("a", {"x": 1}, "same"), ("a", {}, None), ("", {}, "")),
    calls(("a", {"pair": (1, 2)})),
    calls(
        malformed_call("search", "{not json"), malformed_call(None, None, id=None), malformed_call("a", "")
    ),
    calls(("ok", {}), malformed_call("cut", '{"items": ["a", "b'), finish_reason="length"),
    AIMessage("x", name="writer", id="m1"),
    AIMessage([{"type": "text", "text": "block"}, "word"], response_metadata={"model_name": "m"}),
    AIMessage("x", invalid_tool_calls=[{**malformed_call("a", "{"), "error": "what the provider said"}]),
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
made_calls = st.tuples(st.text(), st.dictionaries(st.text(), json_values, max_size=3), st.none() | st.text())
broken_calls = st.builds(malformed_call, st.none() | st.text(), st.none() | st.text(), st.none() | st.text())
messages = st.builds(
    lambda made, broken, text, key, metadata, extra: calls(
        *made, *broken, text=text, id=key, response_metadata=metadata, additional_kwargs=extra
    ),
    st.lists(made_calls, max_size=3),
    st.lists(broken_calls, max_size=2),
    st.text(),
    st.none() | st.text(min_size=1),
    st.dictionaries(st.text(min_size=1), json_values, max_size=2),
    st.dictionaries(st.text(min_size=1), json_values, max_size=2),
)


class Tokens(BaseCallbackHandler):
    """The tokens that a callback gets from a stream."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        self.heard.append(chunk)


def same(reply: Any, scripted: AIMessage) -> None:
    if isinstance(reply, BaseMessageChunk):
        reply = message_chunk_to_message(reply)
    assert reply.model_copy(update={"id": scripted.id}) == scripted
    assert scripted.id is None or reply.id == scripted.id


@pytest.mark.parametrize("scripted", REPLIES, ids=range(len(REPLIES)))
async def test_every_way_gives_the_scripted_reply(scripted: AIMessage) -> None:
    model = ScriptedModel(repeat(scripted))
    same(model.invoke("go"), scripted)
    same(await model.ainvoke("go"), scripted)
    same(model.invoke("go", stream=True), scripted)
    same(await model.ainvoke("go", stream=True), scripted)
    same(reduce(add, model.stream("go")), scripted)
    same(reduce(add, [chunk async for chunk in model.astream("go")]), scripted)
    assert len(model.requests) == 6


@given(messages)
def test_any_reply_streams_whole(scripted: AIMessage) -> None:
    model = ScriptedModel(repeat(scripted))
    same(reduce(add, model.stream("go")), scripted)
    same(model.invoke("go", stream=True), scripted)


@pytest.mark.parametrize("disable", [False, True, "tool_calling"])
def test_with_streaming_disabled(disable: Any) -> None:
    scripted = calls(("search", {"query": "x"}), text="several words")
    model = ScriptedModel(repeat(scripted), disable_streaming=disable)
    plain, bound = list(model.stream("go")), list(model.bind_tools([]).stream("go"))
    for chunks in (plain, bound):
        same(reduce(add, chunks), scripted)
    assert (len(plain) > 1) == (disable is not True)


def test_text_and_calls_come_in_several_chunks() -> None:
    chunks = list(
        ScriptedModel(calls(("search", {"query": "xyz"}, "1"), text="four words in chunks")).stream("go")
    )
    assert [str(chunk.text) for chunk in chunks if chunk.text] == ["four ", "words", " in c", "hunks"]
    parts = [part for chunk in chunks for part in chunk.tool_call_chunks]
    assert [(part["name"], part["id"], part["index"]) for part in parts] == [
        ("search", "1", 0),
        (None, None, 0),
    ]
    assert "".join(part["args"] or "" for part in parts) == '{"query": "xyz"}'


def test_callbacks_get_the_chunks_of_a_stream_and_nothing_else() -> None:
    tokens = Tokens()
    scripted = says("several words, four chunks")
    model = ScriptedModel(repeat(scripted))
    model.invoke("go", {"callbacks": [tokens]})
    assert tokens.heard == []
    chunks = list(model.stream("go", {"callbacks": [tokens]}))
    assert [chunk.message for chunk in tokens.heard] == chunks
    assert all(isinstance(chunk, ChatGenerationChunk) for chunk in tokens.heard)
    assert len(chunks) == 5


@pytest.mark.parametrize("scripted", REPLIES, ids=range(len(REPLIES)))
async def test_inside_a_graph_the_state_holds_the_scripted_reply(scripted: AIMessage) -> None:
    model = ScriptedModel(repeat(scripted))

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    async def aask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    sync = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").compile()
    both = StateGraph(MessagesState).add_node("ask", aask).add_edge(START, "ask").compile()
    same(sync.invoke({"messages": "go"})["messages"][-1], scripted)
    pairs = list(sync.stream({"messages": "go"}, stream_mode=["messages", "values"]))
    same(pairs[-1][1]["messages"][-1], scripted)
    shown = [part[0] for mode, part in pairs if mode == "messages"]
    assert all(isinstance(chunk, AIMessageChunk) for chunk in shown)
    same(reduce(add, shown), scripted)
    pairs = [pair async for pair in both.astream({"messages": "go"}, stream_mode=["messages", "values"])]
    same(pairs[-1][1]["messages"][-1], scripted)


async def test_events_see_the_stream() -> None:
    model = ScriptedModel("several words, four chunks")
    kinds = [event["event"] async for event in model.astream_events("go", version="v2")]
    assert kinds == ["on_chat_model_start", *["on_chat_model_stream"] * 5, "on_chat_model_end"]


def test_an_error_in_a_stream_comes_before_the_first_chunk() -> None:
    async def drain(model: ScriptedModel) -> list[Any]:
        return [chunk async for chunk in model.astream("go")]

    model = ScriptedModel(TimeoutError, TimeoutError)
    with pytest.raises(TimeoutError):
        next(iter(model.stream("go")))
    with pytest.raises(TimeoutError):
        asyncio.run(drain(model))
    assert len(model.requests) == 2
