"""Replies that the client cannot read: one error with a name, and the thread continues."""

import json
import re
from typing import Any

import openai
import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from served import DOORS, SYNC, THREAD, Serve, by_invoke, called, marks, results, said, through, user
from shared_tools import look
from strict_server import event

from wakeloop import ReplyError, answer_of, create_todo_agent, session_of
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.platform.openai_replies import send_reasoning_back
from wakeloop.testing import prompt_faults, wire_faults

pytestmark = pytest.mark.loopback
STREAMED_OR_NOT = pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
HTML = {"body": "<html><h1>Bad gateway</h1></html>", "type": "text/html"}


def now() -> str:
    """Return the current time."""
    return "noon"


def answer(**body: Any) -> dict[str, Any]:
    return {"body": json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "m", **body})}


def message(**told: Any) -> dict[str, Any]:
    return answer(choices=[{"index": 0, "finish_reason": "stop", "message": told}])


def streamed(*parts: str) -> dict[str, Any]:
    return {"body": "".join(parts), "type": "text/event-stream"}


WHOLE = {
    "no JSON": {"body": "{not json"},
    "nothing": {"body": ""},
    "null": {"body": "null"},
    "a list": {"body": "[]"},
    "plain text": {"body": "hello", "type": "text/plain"},
    "a page": HTML,
    "no choices": answer(),
    "null for choices": answer(choices=None),
    "an empty list of choices": answer(choices=[]),
    "no message": answer(choices=[{"index": 0, "finish_reason": "stop"}]),
    "an error with status 200": answer(error={"message": "out of memory"}),
    "another role": message(role="user", content="x"),
    "a tool's role": message(role="tool", content="x", tool_call_id="1"),
    "no role": message(content="x"),
    "a number as content": message(role="assistant", content=7),
}
STREAMED = {
    "a page": HTML,
    "nothing": streamed(),
    "only the end": streamed("data: [DONE]\n\n"),
    "a corrupt chunk": streamed(event({"role": "assistant", "content": "a"}), 'data: {"id": "1", "cho\n\n'),
    "a number": streamed("data: 7\n\n"),
    "another role": streamed(event({"role": "user", "content": "a"}), event({}, finish_reason="stop")),
    "usage in words": said("hi", usage={"prompt_tokens": "many", "completion_tokens": 1, "total_tokens": 2}),
}
UNFIT = {  # the client raises because of a call, and the whole reply is lost with it
    "arguments that are a list": {"tool_calls": [["look", ["x"], "1"]]},
    "arguments that are a number": {"tool_calls": [["look", 7, "1"]]},
    "a list in the text of the arguments": {
        "tool_calls": [["look", '["x"]', "1"], ["look", '{"place": "x"}', "2"]]
    },
    "a name that is a number": {"tool_calls": [[7, "{}", "1"]]},
    "an id that is a number": {"tool_calls": [["look", '{"place": "x"}', 7]]},
}
CASES = [
    *(pytest.param(reply, False, id=f"whole-{name}") for name, reply in WHOLE.items()),
    *(pytest.param(reply, True, id=f"streamed-{name}") for name, reply in STREAMED.items()),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")
@pytest.mark.rotating("door")
@pytest.mark.parametrize("door", ["stream", "ainvoke"])
@pytest.mark.parametrize(("reply", "streaming"), CASES)
async def test_a_reply_that_cannot_be_read(
    serve: Serve, reply: dict[str, Any], streaming: bool, door: str
) -> None:
    begins = not streaming or re.search(r"data: [{7]", reply.get("body", "data: {"))
    times = 1 if begins else 2  # a stream that never begins is asked for once more, whole
    server = serve(
        called(("look", {"place": "x"})), *[reply] * times, said("Asked again."), said("Second answer.")
    )
    agent = create_todo_agent(server.model(streaming=streaming), [look], checkpointer=InMemorySaver())
    with pytest.raises(ReplyError) as raised:
        await through(door, agent, user("go"))
    told = str(raised.value)
    assert told.startswith("The model's reply could not be read (")
    assert "run the thread again with the input None" in told
    assert len(told) < 600
    assert "\n" not in told
    assert len(server.seen) == 1 + times
    state = agent.get_state(THREAD)
    assert [m.type for m in state.values["messages"]] == ["human", "ai", "tool"]
    assert marks(state.values["messages"]) == []
    assert session_of(state)["state"] == "failed"
    out = await through(door, agent, None)  # the way out that the sentence names
    assert answer_of(out) == "Asked again."
    assert server.requests[1] == server.requests[1 + times]
    out = await through(door, agent, user("second"))
    assert answer_of(out) == "Second answer."
    assert len(server.seen) == 3 + times
    assert wire_faults(server.requests) == []
    assert prompt_faults(server.requests) == []


def test_a_client_that_sends_thoughts_back_reads_no_choices_either(serve: Serve) -> None:
    model = serve(WHOLE["an empty list of choices"]).model(streaming=False)
    send_reasoning_back(model)
    with pytest.raises(ReplyError, match=r"^The model's reply could not be read \("):
        create_todo_agent(model).invoke(user("go"))


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")
async def is_asked_again(agent: Any, server: Any, door: str) -> None:
    """Check that it is repeated once unchanged, and then as often as the settings say."""
    out = await through(door, agent, user("go"))
    assert answer_of(out) == "Asked again."
    assert server.requests[1] == server.requests[2]
    out = await through(door, agent, user("second"))
    assert out["todo_session"]["reason"] == "malformed_calls"
    assert len(server.seen) == 8


@pytest.mark.slow
@pytest.mark.rotating("door")
@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
@pytest.mark.parametrize("reply", UNFIT.values(), ids=UNFIT)
async def test_c37_a_reply_that_is_lost_with_a_call(serve: Serve, reply: dict[str, Any], door: str) -> None:
    server = serve(
        called(("look", {"place": "x"})), reply, said("Asked again."), *[reply] * 5, said("Second.")
    )
    agent = create_todo_agent(server.model(), [look], checkpointer=InMemorySaver())
    await is_asked_again(agent, server, door)
    assert answer_of(await through(door, agent, user("third"))) == "Second."
    assert wire_faults(server.requests) == []


def build_agent(model: Any, tools: list[Any], *, layer: bool) -> Any:
    """Build an agent with the loop as its graph, or as middleware in LangChain's agent."""
    kept = InMemorySaver()
    if not layer:
        return create_todo_agent(model, tools, checkpointer=kept)
    return create_agent(model, tools, middleware=[WakeLoopMiddleware(settings="wakeloop")], checkpointer=kept)


PLACE = {"place": "x", "more": [{"n": 1}]}


def visit(place: str, more: list[Any]) -> str:
    """Visit a place."""
    return f"visited {place} {more}"


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("layer", [False, True], ids=["graph", "middleware"])
@STREAMED_OR_NOT
async def test_c75_arguments_that_are_an_object(
    serve: Serve, streaming: bool, layer: bool, door: str
) -> None:
    objects = [["visit", PLACE, "1"], ["now", {}, "2"], ["todo_write", {"items": ["a"]}, "3"]]
    old = {"function_call": {"name": "visit", "arguments": PLACE}}
    server = serve(
        {"tool_calls": objects},
        {"extra": old, "finish_reason": "function_call"},
        called(("todo_update", {"id": 1, "status": "done"})),
        said("Done."),
    )
    agent = build_agent(server.model(streaming=streaming), [visit, now], layer=layer)
    out = await through(door, agent, user("go"))
    told = [(m.name, m.status) for m in results(out["messages"])]
    assert sorted(told[:3]) == [("now", "success"), ("todo_write", "success"), ("visit", "success")]
    assert told[3:] == [("visit", "success"), ("todo_update", "success")]
    assert {str(m.content) for m in results(out["messages"]) if m.name == "visit"} == {
        f"visited x {PLACE['more']}"
    }
    sent = [call["function"]["arguments"] for m in server.requests[2] for call in m.get("tool_calls", ())]
    assert [json.loads(args) for args in sent] == [PLACE, {}, {"items": ["a"]}, PLACE]
    assert out["todo_session"]["reason"] == "settled"
    assert len(server.seen) == 4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")
@pytest.mark.parametrize("door", DOORS)
async def test_c75_an_object_after_an_empty_one(serve: Serve, door: str) -> None:
    """A stream that begins a call without arguments, and sends them in its next piece."""
    call = {"index": 0, "id": "1", "type": "function", "function": {"name": "look", "arguments": {}}}
    rest = {"index": 0, "function": {"name": "look", "arguments": {"place": "x"}}}
    server = serve(
        streamed(
            event({"role": "assistant", "tool_calls": [call]}),
            event({"tool_calls": [rest]}),
            event({}, finish_reason="tool_calls"),
            "data: [DONE]\n\n",
        ),
        said("Done."),
    )
    agent = build_agent(server.model(streaming=True), [look], layer=door.startswith("a"))
    out = await through(door, agent, user("go"))
    assert [str(m.content) for m in results(out["messages"])] == ["seen x"]


WRAPPED = {"twice": json.dumps('{"place": "x"}'), "in each piece": '{}{"place": "x"}{"place": "x"}'}


@pytest.mark.parametrize("layer", [False, True], ids=["graph", "middleware"])
@pytest.mark.parametrize("name", WRAPPED)
@STREAMED_OR_NOT
async def test_c75_arguments_that_are_encoded_twice_or_sent_again(
    serve: Serve, streaming: bool, name: str, layer: bool
) -> None:
    server = serve(called(("look", WRAPPED[name])), said("Done."))
    agent = build_agent(server.model(streaming=streaming), [look], layer=layer)
    out = await through("ainvoke", agent, user("go"))
    assert [str(m.content) for m in results(out["messages"])] == ["seen x"]
    sent = [call["function"]["arguments"] for m in server.requests[1] for call in m.get("tool_calls", ())]
    assert [json.loads(args) for args in sent] == [{"place": "x"}]


NOTHING = [None, "", "null", " ", '""', "None"]


@pytest.mark.rotating("door")
@pytest.mark.parametrize("door", ["invoke", "astream"])
@pytest.mark.parametrize("layer", [False, True], ids=["graph", "middleware"])
@STREAMED_OR_NOT
async def test_c22_empty_arguments_count_as_none(
    serve: Serve, streaming: bool, layer: bool, door: str
) -> None:
    """Some servers send them where OpenAI sends {}; a tool that needs arguments says which are missing."""
    made = (
        [("now", args) for args in NOTHING] + [("todo_list", args) for args in NOTHING] + [("look", "null")]
    )
    server = serve(called(*made), said("Done."))
    agent = build_agent(server.model(streaming=streaming), [now, look], layer=layer)
    out = await through(door, agent, user("go"))
    told = [(m.name, m.status) for m in results(out["messages"])]
    assert sorted(told) == sorted(
        [("now", "success")] * 6 + [("todo_list", "success")] * 6 + [("look", "error")]
    )
    sent = [call["function"]["arguments"] for m in server.requests[1] for call in m.get("tool_calls", ())]
    assert sent == ["{}"] * 13
    assert out["todo_session"]["reason"] == "answered"


LLAMA = "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] at line 1, column 74"
OLLAMA = "error parsing tool call: raw='{\"place\": x', err=invalid character 'x'"
GROQ = {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": "<look>"}
BROKEN = {  # the server could not read its own model's call, and answers with an error
    "llama.cpp": {"status": 500, "error": LLAMA},
    "Ollama": {"status": 500, "error": OLLAMA},
    "Groq": {"status": 400, "body": json.dumps({"error": GROQ})},
    "in mid-stream": streamed(
        event({"role": "assistant", "content": "I "}),
        f"data: {json.dumps({'error': {'code': 500, 'message': LLAMA, 'type': 'server_error'}})}\n\n",
    ),
}


@pytest.mark.slow
@pytest.mark.rotating("door")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("layer", [False, True], ids=["graph", "middleware"])
@pytest.mark.parametrize("name", BROKEN)
async def test_c37_a_call_that_the_server_cannot_read(
    serve: Serve, name: str, layer: bool, door: str
) -> None:
    server = serve(
        called(("look", {"place": "x"})),
        BROKEN[name],
        said("Asked again."),
        *[BROKEN[name]] * 5,
        said("Third."),
    )
    model, kept = server.model(streaming=name == "in mid-stream"), InMemorySaver()
    agent: Any = (
        create_agent(model, [look], middleware=[WakeLoopMiddleware()], checkpointer=kept)
        if layer
        else create_todo_agent(model, [look], checkpointer=kept)
    )
    await is_asked_again(agent, server, door)
    assert wire_faults(server.requests) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "words"), [(400, LLAMA), (422, OLLAMA), (500, "Failed to load the model."), (503, "busy")]
)
async def test_an_error_that_is_not_about_a_call_is_raised(serve: Serve, status: int, words: str) -> None:
    server = serve({"status": status, "error": words}, said("Later."))
    agent = create_todo_agent(server.model(), [look], checkpointer=InMemorySaver())
    with pytest.raises(openai.APIStatusError, match=words.split(":", maxsplit=1)[0]):
        await through("ainvoke", agent, user("go"))
    assert len(server.seen) == 1
    assert answer_of(await through("invoke", agent, None)) == "Later."


LOADING = "model is loading"
WITH_200 = {
    "an object of its own": {"body": json.dumps({"object": "error", "message": LOADING})},
    "null for choices": {"body": json.dumps({"id": "1", "choices": None, "detail": LOADING})},
    "an error next to it": {"body": json.dumps({"error": {"message": LOADING, "code": 503}})},
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("reply", WITH_200.values(), ids=WITH_200)
@STREAMED_OR_NOT
async def test_c46_an_error_with_status_200(
    serve: Serve, reply: dict[str, Any], door: str, streaming: bool
) -> None:
    times = 2 if streaming else 1
    server = serve(*[reply] * times, said("Asked again."), said("Second answer."))
    agent = create_todo_agent(server.model(streaming=streaming), checkpointer=InMemorySaver())
    with pytest.raises(ReplyError, match=LOADING) as raised:
        await through(door, agent, user("go"))
    assert "the server says" in str(raised.value)
    assert len(server.seen) == times
    assert answer_of(await through(door, agent, None)) == "Asked again."
    assert answer_of(await through(door, agent, user("second"))) == "Second answer."


@pytest.mark.parametrize("door", ["stream", "astream"])
async def test_c46_a_server_that_does_not_stream_is_answered_whole(serve: Serve, door: str) -> None:
    body = message(role="assistant", content="Hello.")
    server = serve(body, body)
    agent = create_todo_agent(server.model(), checkpointer=InMemorySaver())
    assert answer_of(await through(door, agent, user("go"))) == "Hello."
    assert [bool(asked.get("stream")) for asked in server.seen] == [True, False]


@STREAMED_OR_NOT
def test_a_page_with_a_status_is_the_clients_own_error(serve: Serve, streaming: bool) -> None:
    from openai import InternalServerError

    server = serve({**HTML, "status": 502}, said("Second answer."))
    agent = create_todo_agent(server.model(streaming=streaming), checkpointer=InMemorySaver())
    with pytest.raises(InternalServerError) as raised:
        by_invoke(agent, user("go"))
    assert raised.value.status_code == 502
    assert "Bad gateway" in raised.value.response.text
    assert answer_of(by_invoke(agent, user("second"))) == "Second answer."
    assert len(server.seen) == 2


# -- calls whose arguments break off, while the server says that all is well -----------------------------


@pytest.mark.slow
@pytest.mark.parametrize("reason", ["stop", "tool_calls"])
@pytest.mark.parametrize("door", DOORS)
@STREAMED_OR_NOT
async def test_c23_half_the_arguments_under_a_good_finish_reason(
    serve: Serve, streaming: bool, door: str, reason: str
) -> None:
    """LangChain repairs streamed arguments: the half list would have replaced the whole one."""
    whole = [{"id": str(n), "text": text, "status": "pending"} for n, text in enumerate("abc")]
    cut = json.dumps({"items": whole})[:-30]
    done = [{**item, "status": "completed"} for item in whole]
    server = serve(
        called(("todo", {"items": whole})),
        called(("todo", cut), ("look", {"place": "x"}), finish_reason=reason),
        called(("todo", {"items": done})),
        said("Done."),
    )
    model = server.model(streaming=streaming)
    agent = create_todo_agent(model, [look], settings="lesson", checkpointer=InMemorySaver())
    out = await through(door, agent, user("go"))
    assert {len(state.values["todos"]) for state in agent.get_state_history(THREAD)} == {0, 3}
    assert [todo["status"] for todo in out["todos"]] == ["completed"] * 3
    told = {m.name: (m.status, str(m.content)) for m in results(out["messages"])[1:3]}
    assert told["look"] == ("success", "seen x")
    assert told["todo"][0] == "error"
    assert "the arguments are not a JSON object" in told["todo"][1]
    assert len(server.seen) == 4
    assert wire_faults(server.requests) == []


@pytest.mark.parametrize("door", SYNC)
async def test_c23_half_of_it_in_a_messages_stream(serve: Serve, door: str) -> None:
    """The model streams only because the caller listens."""
    server = serve(called(("todo_write", '{"items": ["a", "b'), finish_reason="stop"), said("Done."))
    agent = create_todo_agent(server.model(), checkpointer=InMemorySaver())
    out = await through(door, agent, user("go"))
    assert out["todos"] == []
    assert [m.status for m in results(out["messages"])] == ["error"]
    assert [bool(body["stream"]) for body in server.seen] == [door == "stream"] * 2


# -- numbers that no checkpoint accepts ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")
@pytest.mark.parametrize(
    ("count", "streaming"),
    [
        *((count, streaming) for count in (2**64, -(2**63) - 1, 10**40) for streaming in (False, True)),
        ("many", False),  # streamed, the client refuses it: see above
        (1.5, False),
    ],
)
def test_invalid_usage_is_dropped(serve: Serve, count: Any, streaming: bool) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": 1, "total_tokens": 2}
    server = serve(said("hi", usage=usage), said("again"))
    with SqliteSaver.from_conn_string(":memory:") as saver:
        agent = create_todo_agent(server.model(streaming=streaming, stream_usage=True), checkpointer=saver)
        out = by_invoke(agent, user("go"))
        assert answer_of(out).strip() == "hi"
        assert out["messages"][-1].usage_metadata is None
        out = by_invoke(agent, user("second"))
        assert out["messages"][-1].usage_metadata["total_tokens"] == 2
        assert answer_of(by_invoke(agent, None)) == "again"


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")
def test_large_numbers_with_a_reply_become_strings(serve: Serve) -> None:
    deep: Any = 1
    for _ in range(300):
        deep = {"in": deep}
    extra = {"audio": {"id": 2**64, "deep": deep, "half": "\ud83d"}}
    server = serve(said("hi", extra=extra), said("again"))
    with SqliteSaver.from_conn_string(":memory:") as saver:
        agent = create_todo_agent(server.model(), checkpointer=saver)
        by_invoke(agent, user("go"))
        kept = agent.get_state(THREAD).values["messages"][-1].additional_kwargs["audio"]
        assert kept["id"] == "0x10000000000000000"
        assert kept["half"] == "\ufffd"
        assert str(kept["deep"]).count("in") < 64
        assert answer_of(by_invoke(agent, user("second"))) == "again"
