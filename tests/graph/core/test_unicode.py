"""Halves of surrogate pairs: no server's UTF-8 contains them, yet JSON lets them in."""

from typing import Any

import pytest
from agents import write
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.text.characters import fix_surrogates


@pytest.mark.parametrize(
    ("given", "sound"),
    [
        ("plain", "plain"),
        ("smile \U0001f600", "smile \U0001f600"),
        ("smile \ud83d\ude00", "smile \U0001f600"),  # a stream cut the pair
        ("half \ud83d", "half \ufffd"),
        ({"\ud83d": ["\ude00", 1, None]}, {"\ufffd": ["\ufffd", 1, None]}),
        (b"\xff", b"\xff"),
    ],
)
def test_halves_are_joined_or_replaced(given: object, sound: object) -> None:
    assert fix_surrogates(given) == sound


@tool
def look(path: str = "") -> str:
    """Look somewhere, and find a name that was not UTF-8."""
    if path == "raise":
        raise ValueError("\udcff")
    return f"{path}\udcff"


def test_no_half_of_a_reply_or_a_result_is_stored_or_sent() -> None:
    model = ScriptedModel(
        write("\ud83d\ude00"),
        calls(
            ("todo_write", {"items": '["\\ud83d"]'}),
            ("look", {"path": "\ud83d"}),
            ("look", {"path": "raise"}),
        ),
        calls(("look", {"\ud83d": 1}), ("\ud83d", {}), ("look", {}, "\ud83d"), text="\ud83d"),
        calls(*(("todo_update", {"id": key, "status": "done"}) for key in (1, 2))),
        says([{"type": "text", "text": "\ud83d\ude00"}]),
    )
    out = create_todo_agent(model, [look]).invoke({"messages": [("user", "go")]})
    assert [item["content"] for item in out["todos"]] == ["\U0001f600", "\ufffd"]
    assert out["messages"][-1].text == "\U0001f600"
    for request in (*model.requests, out["messages"]):
        for message in request:
            message.model_dump_json().encode()
            str(message).encode()


def test_half_a_pair_in_the_users_own_message_is_replaced_and_the_run_continues() -> None:
    model = ScriptedModel([says("ok")])
    agent = create_todo_agent(model, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    agent.invoke({"messages": [("user", "half \ud83d here, whole \ud83d\ude00")]}, config)
    assert model.requests[0][-1].text == "half \ufffd here, whole 😀"
    stored = agent.get_state(config).values["messages"]
    assert [m.text for m in stored] == ["half \ufffd here, whole 😀", "ok"]


GO: Any = {"messages": [("user", "go")]}
INPUTS: dict[str, Any] = {
    "a name": {"messages": [HumanMessage("go", name="p\ud83d")]},
    "a setting": {**GO, "todo_settings": {"continuation_prompt": "on\ud83d"}},
    "a prompt": {
        **GO,
        "todo_settings": {"prompts": {"nudge": "on\ud83d $list", "nag": "\ud83d"}, "nag_after": 1},
    },
    "an item, a goal": {**GO, "todos": [{"content": "x\ud83d", "id": "\ud83d"}], "todo_goal": "\ud83d"},
    "an event": {
        "todo_inbox": [{"kind": "peer_message", "text": "\ud83d", "sender": "\ud83d", "id": "\ud83d"}]
    },
}


@pytest.mark.parametrize("given", INPUTS)
def test_no_half_of_an_input_or_a_setting_is_sent(given: str) -> None:
    model = ScriptedModel(
        write("a"), *[calls(("look", {"path": str(n)})) for n in range(2)], *[says("l")] * 8
    )
    agent = create_todo_agent(model, [look], system_prompt="be\ud83d", checkpointer=InMemorySaver())
    agent.invoke(INPUTS[given], {"configurable": {"thread_id": "t"}})
    assert len(model.requests) == 10
    for message in (message for request in model.requests for message in request):
        f"{message.name} {message.content}".encode()
