"""How a reply is classified (cut, malformed or fine), and with which ids it is stored."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from wakeloop.dialects.parley import Parley
from wakeloop.loop.replies import is_malformed
from wakeloop.model.finish_reasons import reply_problem
from wakeloop.model.reply import Reply, read_reply
from wakeloop.model.usage import measure_usage
from wakeloop.testing import calls, malformed_call, says

CUT = "Error: cut off"


def look(place: str) -> str:
    """Look at a place."""
    return place


def read(
    raw: AIMessage,
    *,
    used: Any = (),
    known: Any = (),
    dialect: Any = ...,
    tools: Any = ("look",),
    **more: Any,
) -> Reply:
    chosen = Parley() if dialect is ... else dialect
    return read_reply(
        raw,
        chosen,
        dict.fromkeys(tools, look),
        lambda key: key in used,
        lambda key: key in known,
        {"cut_call": CUT, "no_text": "(no text)"}.__getitem__,
        **more,
    )


# -- cut -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "cut"),
    [
        ({}, False),
        ({"finish_reason": "stop"}, False),
        ({"finish_reason": "tool_calls"}, False),
        ({"finish_reason": "length"}, True),
        ({"finish_reason": "MAX_TOKENS"}, True),
        ({"stop_reason": "max_tokens"}, True),
        ({"stop_reason": "end_turn"}, False),
        ({"done_reason": "length"}, True),
        ({"status": "incomplete", "model_provider": "openai"}, True),
        ({"status": "completed", "model_provider": "openai"}, False),
        ({"finish_reason": "stop", "model_provider": "openai"}, False),
        ({"model_provider": "openai"}, True),
        ({"model_provider": "openai", "finish_reason": None}, True),
        ({"model_provider": "anthropic"}, False),
        ({"model_name": "gpt"}, False),
    ],
)
def test_when_a_streamed_reply_is_cut(told: dict[str, Any], cut: bool) -> None:
    assert (reply_problem(AIMessage("x", response_metadata=told), must_finish=True) == "cut") is cut
    assert read(AIMessage("x", response_metadata=told), must_finish=True).cut is cut


def test_no_call_of_a_cut_reply_is_fine() -> None:
    reply = read(
        calls(
            ("look", {"path": "x"}, "1"),
            ("todo_list", {}, "2"),
            malformed_call("look", "{", "3"),
            finish_reason="length",
        )
    )
    assert reply.faults == {"1": CUT, "2": CUT, "3": CUT}
    assert is_malformed(reply)


# -- malformed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        ("peer", {}),
        ("", {}),
        malformed_call("look", "{"),
        malformed_call(None, None),
        malformed_call("todo_write", "[1"),
        ("todo_write", {}),
        ("todo_write", {"items": "['a']"}),
        ("todo_write", {"items": '"a"'}),
        ("todo_write", {"items": [1]}),
        ("todo_write", {"items": {"a": 1}}),
        ("todo_write", {"items": "[" * 100_000}),
        ("todo_update", {"id": 1, "reason": "why"}),
        ("todo_update", {"id": 1, "status": "finished"}),
        ("todo_update", {"status": "done"}),
        ("todo_update", {"id": None, "status": "done"}),
        ("todo_update", {"id": 10**30, "status": "done"}),
        ("look", {"path": [{"n": -(10**30)}]}),
        ("peer" * 1000, {}),
        ("todo_update", {"id": 1, "status": "x" * 5000}),
    ],
)
def test_what_counts_as_a_malformed_call(call: Any) -> None:
    reply = read(calls(call, ("look", {"path": "x"})))
    (text,) = reply.faults.values()
    assert text.startswith("Error: ")
    assert len(text) <= 1000
    assert not is_malformed(reply)
    assert is_malformed(read(calls(call)))


@pytest.mark.parametrize(
    "call",
    [
        ("look", {}),
        ("look", {"wrong": 1}),
        ("todo_list", {}),
        ("todo_list", {"extra": 1}),
        ("todo_write", {"items": []}),
        ("todo_write", {"items": [""]}),
        ("todo_write", {"items": '["a"]'}),
        ("todo_update", {"id": 9, "status": "done"}),
        ("todo_update", {"id": "9", "status": "blocked"}),
        ("todo_update", {"id": 2**63 - 1, "status": "done"}),
    ],
)
def test_what_does_not_count_as_a_malformed_call(call: Any) -> None:
    reply = read(calls(call))
    assert reply.faults == {}
    assert not is_malformed(reply)


def test_an_error_names_the_place_the_value_and_what_is_allowed() -> None:
    (text,) = read(calls(("todo_update", {"id": 1, "status": "finished"}))).faults.values()
    for word in (
        "todo_update",
        "status",
        "'finished'",
        "in_progress",
        "done",
        "blocked",
        "cancelled",
        "open",
    ):
        assert word in text
    (text,) = read(calls(("todo_write", {"items": ["a", 7]}))).faults.values()
    for word in ("item 2", "7", "string"):
        assert word in text
    (text,) = read(calls(("peer", {}))).faults.values()
    for word in ("'peer'", "look", "todo_list", "todo_update", "todo_write"):
        assert word in text


def test_a_reply_without_calls_is_not_malformed() -> None:
    assert not is_malformed(read(says("x")))
    assert not is_malformed(read(says("")))


def test_todo_calls_and_writes_are_distinguished() -> None:
    reply = read(calls(("look", {}, "1"), ("todo_list", {}, "2")))
    assert (reply.todo_calls, reply.wrote) == (("2",), False)
    reply = read(calls(("todo_update", {"nothing": 1}, "1"), malformed_call("todo_write", "{", "2")))
    assert (reply.todo_calls, reply.wrote) == (("1", "2"), True)


def test_without_todo_tools_their_names_are_unknown() -> None:
    reply = read(calls(("todo_list", {}, "1")), dialect=None)
    assert (reply.todo_calls, reply.wrote, list(reply.faults)) == ((), False, ["1"])


# -- storage --------------------------------------------------------------------------------------


def test_missing_and_repeated_call_ids_are_replaced() -> None:
    raw = calls(
        ("look", {}, None),
        ("look", {}, "a"),
        ("look", {}, "a"),
        ("look", {}, "b"),
        malformed_call("look", "{", "b"),
        ("look", {}, ""),
    )
    stored = read(raw, used={"b"}).message
    ids = [call["id"] for call in stored.tool_calls]
    assert len(set(ids)) == len(ids) == 6
    assert all(ids)
    assert ids[1] == "a"
    assert "b" not in ids
    assert [call["name"] for call in stored.tool_calls] == ["look"] * 6


def test_broken_calls_are_stored_as_calls_without_arguments() -> None:
    raw = calls(malformed_call("look", '{"path": "x', "1"), ("look", {"path": 10**30}, "2"))
    stored = read(raw).message
    assert [(c["id"], c["args"]) for c in stored.tool_calls] == [("2", {}), ("1", {})]
    assert stored.invalid_tool_calls == []


def test_a_reply_gets_its_own_id_and_no_mark() -> None:
    raw = says(
        "x", id="known", additional_kwargs={"wakeloop": {"kind": "wake"}, "tool_calls": [], "other": 1}
    )
    stored = read(raw, known={"known"}).message
    assert stored.id not in (None, "", "known")
    assert stored.additional_kwargs == {"other": 1}
    assert read(says("x", id="new")).message.id == "new"
    assert read(says("x")).message.id


def test_the_given_reply_is_left_unchanged() -> None:
    raw = calls(malformed_call("look", "{", "1"))
    before = raw.model_copy(deep=True)
    read(raw)
    assert raw == before


NAMES = st.sampled_from(["look", "todo_write", "todo_update", "todo_list", "peer", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["items", "id", "status"]), inner, max_size=3)
    ),
    max_leaves=6,
)
IDS = st.none() | st.sampled_from(["", "a", "b"])
MADE = st.tuples(
    NAMES, st.dictionaries(st.sampled_from(["items", "id", "status", "path"]), VALUES, max_size=3), IDS
)
BROKEN = st.builds(malformed_call, st.none() | NAMES, st.none() | st.text(max_size=5), IDS)


@given(st.lists(MADE | BROKEN, max_size=4), st.sampled_from(["", "text"]), st.booleans())
def test_any_reply_is_stored_with_valid_ids_and_bounded_faults(made: Any, text: str, cut: bool) -> None:
    raw = calls(*made, text=text, finish_reason="length" if cut else "stop")
    reply = read(raw, used={"b"})
    ids = [call["id"] for call in reply.message.tool_calls]
    assert len(ids) == len(made) == len(set(ids))
    assert all(ids)
    assert "b" not in ids
    assert set(reply.faults) <= set(ids)
    assert not cut or set(reply.faults) == set(ids)
    assert all(fault.startswith("Error: ") and len(fault) <= 1000 for fault in reply.faults.values())
    assert set(reply.todo_calls) <= set(ids)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_json_cannot_express_is_malformed(number: float) -> None:
    reply = read(calls(("look", {"path": [number]}, "1"), ("todo_write", {"items": [number]}, "2")))
    assert [call["args"] for call in reply.message.tool_calls] == [{}, {}]
    told = f"Error: {number} in the arguments is not valid JSON; send it as a string"
    assert list(reply.faults.values()) == [told, told]
    assert is_malformed(reply)


@pytest.mark.parametrize("depth", [100, 300, 3000, 100_000])
def test_arguments_nested_too_deep_for_a_checkpoint_are_malformed(depth: int) -> None:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    call = {"name": "look", "args": {"path": nested}, "id": "1"}
    assert measure_usage(AIMessage("", tool_calls=[call]), lambda: 4).estimated
    reply = read(calls(("look", {"path": nested}, "1"), ("todo_write", {"items": nested}, "2")))
    assert [call["args"] for call in reply.message.tool_calls] == [{}, {}]
    assert all("nested more than 64 levels deep" in fault for fault in reply.faults.values())
    assert is_malformed(reply)
