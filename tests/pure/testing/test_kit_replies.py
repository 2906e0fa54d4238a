"""says, calls and malformed."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from wakeloop.testing import calls, malformed_call, says


def test_says_is_a_reply_without_an_id() -> None:
    assert says("hello") == AIMessage("hello")


def test_says_takes_the_fields_of_a_message() -> None:
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    assert says("x", id="m1", usage_metadata=usage) == AIMessage("x", id="m1", usage_metadata=usage)


def test_a_finish_reason_marks_a_cut_reply_and_keeps_other_metadata() -> None:
    reply = says("half", finish_reason="length", response_metadata={"model_name": "m"})
    assert reply.response_metadata == {"finish_reason": "length", "model_name": "m"}
    assert calls(("a", {}), finish_reason="length").response_metadata == {"finish_reason": "length"}


def test_calls_in_order_with_fresh_ids() -> None:
    reply = calls(("search", {"q": 1}), ("read", {}), text="both")
    assert [(call["name"], call["args"]) for call in reply.tool_calls] == [("search", {"q": 1}), ("read", {})]
    ids = [call["id"] for made in (reply, calls(("read", {}))) for call in made.tool_calls]
    assert len(set(ids)) == 3
    assert all(key is not None and key.startswith("call_") for key in ids)
    assert reply.content == "both"


@pytest.mark.parametrize("key", ["id-7", "", None])
def test_a_third_element_sets_the_id(key: str | None) -> None:
    assert calls(("a", {}, key)).tool_calls == [{"type": "tool_call", "name": "a", "args": {}, "id": key}]


def test_a_malformed_call_next_to_a_valid_one() -> None:
    reply = calls(("ok", {}, "1"), malformed_call("bad", "{not json", id="2"))
    assert [call["id"] for call in reply.tool_calls] == ["1"]
    assert reply.invalid_tool_calls == [
        {"type": "invalid_tool_call", "name": "bad", "args": "{not json", "id": "2", "error": None}
    ]


def test_a_malformed_call_has_a_fresh_id_unless_one_is_given_or_left_out() -> None:
    fresh = [malformed_call("a", "{")["id"] for _ in range(2)]
    assert len(set(fresh)) == 2
    assert None not in fresh
    assert malformed_call("a", "{", id=None)["id"] is None
    assert malformed_call("a", "{", id="fresh")["id"] == "fresh"


def test_arguments_are_a_copy() -> None:
    args = {"q": 1}
    reply = calls(("a", args))
    args["q"] = 2
    assert reply.tool_calls[0]["args"] == {"q": 1}


@pytest.mark.parametrize(
    "made", ["search", ("search",), ("search", "x"), ({}, "x"), {"name": "a"}, ("a", {}, "1", "2")]
)
def test_anything_but_a_call_is_a_type_error(made: Any) -> None:
    with pytest.raises(TypeError, match=r"\(name, arguments\)"):
        calls(made)


def test_a_field_that_no_reply_has_is_refused() -> None:
    for make in (lambda: calls(todo_write={"items": ["a"]}), lambda: says("x", todo_write={})):
        with pytest.raises(TypeError, match="A reply has no field 'todo_write'"):
            make()
