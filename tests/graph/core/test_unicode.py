"""Halves of character pairs: no server's UTF-8 holds them, and JSON brings them all the same."""

from typing import Any

import pytest
from agents import write
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.text.characters import whole


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
    assert whole(given) == sound


@tool
def look(path: str = "") -> str:
    """Look somewhere, and find what was a name of bytes."""
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


def test_half_a_pair_in_the_users_own_message_is_replaced_and_the_run_goes_on() -> None:
    model = ScriptedModel([says("ok")])
    agent = create_todo_agent(model, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    agent.invoke({"messages": [("user", "half \ud83d here, whole \ud83d\ude00")]}, config)
    assert model.requests[0][-1].text == "half \ufffd here, whole 😀"
    stored = agent.get_state(config).values["messages"]
    assert [m.text for m in stored] == ["half \ufffd here, whole 😀", "ok"]
