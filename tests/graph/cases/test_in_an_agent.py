"""Cases of servers, through an agent of `create_agent`: real clients on fake servers."""

import asyncio
from typing import Any

import pytest
from forms import FORMS, Form, Said, Server
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain.agents.structured_output import ProviderStrategy
from langgraph.checkpoint.memory import InMemorySaver
from rig import close, write
from shared_tools import City, look
from test_servers import TextAlone, photograph

from wakeloop import ReplyError, answer_of, session_of
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import calls

CONFIG: Any = {"configurable": {"thread_id": "1"}}
GO: Any = {"messages": [("user", "go")]}
LOADING = "model is loading"
OVER_HTTP = pytest.mark.parametrize("form", FORMS[:3])
PARSED = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")  # langchain-openai's


def build_agent(server: Server, **more: Any) -> Any:
    layer = WakeLoopMiddleware(settings="wakeloop")
    return create_agent(server.chat, [look], middleware=[layer], checkpointer=InMemorySaver(), **more)


def listened(agent: Any, given: Any) -> dict[str, Any]:
    """Run an agent and listen to the messages, so that the model streams."""

    async def streamed() -> dict[str, Any]:
        modes = agent.astream(given, CONFIG, stream_mode=["messages", "values"])
        return [chunk async for mode, chunk in modes if mode == "values"][-1]

    return asyncio.run(streamed())


@PARSED
@OVER_HTTP
@pytest.mark.filterwarnings("ignore:Deserializing")
def test_c39_a_format_of_the_providers_own(form: Form) -> None:
    """openai's parser refuses tools that are not strict, and the todo tools go out with the format."""
    server = Server(form, write("a"), close(1), "bye", '{"city": "Bern"}')
    agent = build_agent(server, response_format=ProviderStrategy(City))
    assert agent.invoke(GO, CONFIG)["structured_response"] == City(city="Bern")
    server.assert_done()
    assert server.bound == [4, 4, 4, 4]
    assert session_of(agent.get_state(CONFIG))["reason"] == "settled"


@OVER_HTTP
def test_c46_a_server_that_does_not_stream(form: Form) -> None:
    """If a body is not a stream, its words are read by asking once more, whole."""
    server = Server(form, *[Said(body={"error": LOADING})] * 2, "Hello.")
    agent = build_agent(server)
    with pytest.raises(ReplyError, match=rf"\(the server says: {LOADING}\)"):
        listened(agent, GO)
    assert [payload.get("stream", False) for payload in server.payloads] == [True, False]
    assert answer_of(listened(agent, None)) == "Hello."
    server.assert_done()


@wrap_model_call
def texts(request: Any, handler: Any) -> Any:
    """Sends results as strings, for a server that takes no blocks."""
    sent = [
        m.model_copy(update={"content": str(m.text)}) if m.type == "tool" else m for m in request.messages
    ]
    return handler(request.override(messages=sent))


@pytest.mark.parametrize("before", [True, False], ids=["before", "behind"])
def test_c45_a_wrapper_turns_blocks_into_text_and_the_reminder_follows(before: bool) -> None:
    looked = calls(("photograph", {"place": "x"}))
    server = Server(TextAlone(), write("a"), *[looked] * 5, close(1), "Done.")
    layer = WakeLoopMiddleware(settings="wakeloop")
    agent: Any = create_agent(
        server.chat,
        [photograph],
        middleware=[texts, layer] if before else [layer, texts],
        checkpointer=InMemorySaver(),
    )
    out = agent.invoke(GO, CONFIG)
    server.assert_done()
    assert [isinstance(m.content, str) for m in out["messages"] if m.type == "tool"] == [
        True,
        *[False] * 5,
        True,
    ]
    assert "[Reminder: no change to the todo list" in server.payloads[6]["messages"][-1]["content"]
    assert out["todo_session"]["reason"] == "settled"
