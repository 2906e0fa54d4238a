"""Cases C20 to C22 over real HTTP: a strict server, and the client of langchain-openai."""

from typing import Any

import pytest
from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from served import DOORS, THREAD, Serve, called, marks, results, said, through, user, users
from shared_tools import ask, look

from wakeloop import answer_of, create_todo_agent
from wakeloop.testing import prompt_faults, wire_faults

pytestmark = pytest.mark.loopback
BY_EVERY_DOOR = pytest.mark.parametrize("door", DOORS)
STREAMED_OR_NOT = pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])


@tool
def silent() -> str:
    """Say nothing."""
    return ""


# -- C20 -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@BY_EVERY_DOOR
@STREAMED_OR_NOT
async def test_c20_a_strict_server_over_many_turns(serve: Serve, streaming: bool, door: str) -> None:
    server = serve(
        called(("todo_write", {"items": ["a", "b"]})),
        called(
            ("look", {"place": "x"}), ("look", {"place": "y"}), ("todo_update", {"id": 1, "status": "done"})
        ),
        said("All done."),  # it is not: a wake
        called(("ask", {"question": "Which?"})),
        # never resumed: a plain message instead
        said(""),  # an empty reply over an open list: a wake
        called(("look", {"place": "z"}), ("nothing", {})),
        called(("look", '{"place": ')),  # not JSON
        said("Half", finish_reason="length"),
        said("and the rest."),
        *[said("Still here.")] * 5,  # five wakes in a row without progress
        said("Corrected."),
        # a third activation
        called(("todo_update", {"id": 2, "status": "done"}), text="Closing."),
        said("Done."),
    )
    agent = create_todo_agent(
        server.model(streaming=streaming),
        [look, ask],
        system_prompt="House rules.",
        checkpointer=InMemorySaver(),
    )
    system = SystemMessage("Be terse.")
    await through(door, agent, {"messages": [system, ("user", "go")]})
    assert agent.get_state(THREAD).interrupts
    out = await through(door, agent, {"messages": [system, ("user", "never mind")]})
    assert (out["todo_session"]["state"], out["todo_session"]["reason"]) == ("idle", "stalled")
    out = await through(door, agent, {"messages": [system, ("user", "close it")]})
    assert answer_of(out) == "Done."
    assert out["todo_session"]["reason"] == "settled"
    assert len(server.seen) == 17
    assert wire_faults(server.requests) == []
    assert prompt_faults(server.requests) == []
    assert users(out["messages"]) == ["go", "never mind", "close it"]


def test_c20_the_server_is_as_strict_as_it_says(serve: Serve) -> None:
    from openai import BadRequestError

    user, call = {"role": "user", "content": "q"}, {"id": "1", "type": "function"}
    calling = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**call, "function": {"name": "x", "arguments": "{}"}}],
    }
    answered = {"role": "tool", "tool_call_id": "1", "content": "r"}
    system, assistant = {"role": "system", "content": "s"}, {"role": "assistant", "content": "a"}
    bad = [
        [user, calling, answered, user],
        [user, system],
        [system, system, user],
        [user, assistant, assistant, user],
        [user, assistant],
        [user, {"role": "assistant", "content": ""}, user],
        [user, calling, user],
        [user, answered],
    ]
    model = serve(*[said("fine")] * len(bad)).model()
    for messages in bad:
        with pytest.raises(BadRequestError, match="400"):
            model.invoke(messages)
    assert model.invoke([system, user, calling, answered, assistant, user]).content == "fine"


# -- C21 -------------------------------------------------------------------------------------------------


def spelled_out(state: dict[str, Any]) -> dict[str, Any]:
    """A workaround: a hook that leaves no content null or empty."""

    def filled(message: Any) -> Any:
        return message if message.content else message.model_copy(update={"content": "(no text)"})

    return {"llm_input_messages": [filled(message) for message in state["messages"]]}


@BY_EVERY_DOOR
@STREAMED_OR_NOT
@pytest.mark.parametrize(
    ("refused", "words"),
    [(("null",), "got null"), (("empty",), "must not be empty"), (("null", "empty"), "got null")],
)
async def test_c21_null_and_empty_content(
    serve: Serve, refused: tuple[str, ...], words: str, streaming: bool, door: str
) -> None:
    from openai import BadRequestError

    replies = (called(("silent", {})), said("Done."), said("Hello."))
    server = serve(*replies, refuse=refused)
    saver = InMemorySaver()
    agent = create_todo_agent(server.model(streaming=streaming), [silent], checkpointer=saver)
    with pytest.raises(BadRequestError, match=words):
        await through(door, agent, user("go"))
    assert len(server.seen) == 2  # refused once, not asked again
    assert marks(agent.get_state(THREAD).values["messages"]) == []
    assert agent.get_state(THREAD).values["todos"] == []

    mended = create_todo_agent(
        server.model(streaming=streaming), [silent], checkpointer=saver, pre_model_hook=spelled_out
    )
    await through(door, mended, None)
    out = await through(door, mended, user("hello"))
    assert answer_of(out) == "Hello."
    assert users(out["messages"]) == ["go", "hello"]
    assert len(server.seen) == 4
    assert wire_faults(server.requests) == []


# -- C22 -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@BY_EVERY_DOOR
@STREAMED_OR_NOT
async def test_c22_malformed_arguments_never_go_back(serve: Serve, streaming: bool, door: str) -> None:
    server = serve(called(("look", "{not json")), called(("look", '{"place": "x"}')), said("Done."))
    agent = create_todo_agent(server.model(streaming=streaming), [look])
    out = await through(door, agent, user("go"))
    assert answer_of(out) == "Done."
    assert [m.status for m in results(out["messages"])] == ["error", "success"]
    assert len(server.seen) == 3
    assert wire_faults(server.requests) == []
    back = [
        m["tool_calls"][0]["function"]["arguments"] for m in server.seen[2]["messages"] if "tool_calls" in m
    ]
    assert back == ["{}", '{"place": "x"}']
