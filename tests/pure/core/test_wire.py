"""Rule 13: whatever the history, what is sent is legal."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from wakeloop.model.wire_order import join_system_prompt, make_legal
from wakeloop.testing import calls, malformed_call, prompt_faults, says, wire_faults
from wakeloop.text.marks import text_of

LINES = {"unanswered": "(unanswered)", "run_interrupted": "(broken off)", "no_text": "(no text)"}.__getitem__


def user(text: str = "u") -> HumanMessage:
    return HumanMessage(text)


def result(key: str, text: str = "r", **more: Any) -> ToolMessage:
    return ToolMessage(text, tool_call_id=key, **more)


def call(*keys: str, text: str = "") -> AIMessage:
    return calls(*(("look", {}, key) for key in keys), text=text)


def sent(*messages: AnyMessage, head: Any = ()) -> list[tuple[str, str]]:
    wire = make_legal(list(messages), list(head), LINES)
    ending = [] if not wire or wire[-1].type != "ai" else [user("end")]
    assert wire_faults([[*wire, *ending]]) == []
    return [(message.type, message.text) for message in wire]


def test_a_legal_history_is_sent_as_it_is() -> None:
    history: list[AnyMessage] = [user(), user(), call("1", "2"), result("2"), result("1"), says("x"), user()]
    wire = make_legal(history, [], LINES)
    assert all(one is other for one, other in zip(wire, history, strict=True))


# a user's block, and what is sent if it is the whole content
MISSHAPEN: dict[str, tuple[dict[str, Any], str]] = {
    "a list as type": ({"type": ["x"]}, ""),
    "a number as text": ({"type": "text", "text": 5}, "(no text)"),
    "an object as text": ({"type": "text", "text": {"value": "x"}}, "(no text)"),
    "a number as result": ({"type": "tool_result", "content": 5}, "5"),
    "an object as result": ({"type": "tool_result", "content": {"type": "text", "text": "r"}}, "r"),
    "numbers as result": ({"type": "function_call_output", "output": [1, "r"]}, "1r"),
}


@pytest.mark.parametrize(("block", "text"), MISSHAPEN.values(), ids=MISSHAPEN)
def test_a_users_block_of_any_shape(block: dict[str, Any], text: str) -> None:
    assert sent(HumanMessage([block])) == [("human", text)]


@pytest.mark.parametrize("keys", [(), ("1",)])
@pytest.mark.parametrize(
    ("block", "kept"),
    [
        ({"type": ["x"]}, True),
        ({"type": "web_search_tool_result", "tool_use_id": [1]}, True),
        ({"type": "server_tool_use", "id": [1]}, "with calls"),
        ({"type": "tool_use", "id": [1], "name": "look"}, False),
    ],
)
def test_an_assistants_block_of_any_shape(block: dict[str, Any], kept: object, keys: tuple[str, ...]) -> None:
    reply = AIMessage([{"type": "text", "text": "a"}, block], tool_calls=call(*keys).tool_calls)
    history = [user(), reply, *map(result, keys)]
    assert sent(*history) == [("human", "u"), ("ai", "a"), *(("tool", "r") for _ in keys)]
    assert (block in make_legal(history, [], LINES)[1].content) is (
        kept is True or (bool(keys) and bool(kept))
    )


@pytest.mark.parametrize(
    "told",
    [
        [user("\ud800")],
        [ChatMessage(content="\ud800", role="critic")],
        [user(), says("\ud800"), user()],
        [user(), AIMessage([{"type": "text", "text": "\ud800"}]), user()],
        [user(), call("\ud800"), result("\ud800", "\ud800"), says("x"), user()],
        [user(), calls(("look", {"\ud800": ["\ud800"]}, "1")), result("1"), says("x"), user()],
        [user(), calls(malformed_call("look", "{", "\ud800")), user()],
    ],
)
def test_half_a_surrogate_pair_is_never_sent(told: list[AnyMessage]) -> None:
    wire = make_legal(told, [], LINES)
    assert [json.dumps(message.model_dump(), ensure_ascii=False).encode() for message in wire]
    assert wire_faults([wire]) == []


def test_each_result_follows_its_call() -> None:
    assert sent(user(), call("1"), user("two"), result("1", "late")) == [
        ("human", "u"),
        ("ai", ""),
        ("tool", "late"),
        ("ai", "(broken off)"),
        ("human", "two"),
    ]


def test_the_first_result_counts_and_strays_are_left_out() -> None:
    assert sent(
        user(), result("9", "stray"), call("1"), result("1", "a"), result("1", "b"), result("8", "stray")
    ) == [
        ("human", "u"),
        ("ai", ""),
        ("tool", "a"),
    ]


def test_a_call_without_a_result_is_answered() -> None:
    assert sent(user(), call("1", "2"), result("2", "b")) == [
        ("human", "u"),
        ("ai", ""),
        ("tool", "b"),
        ("tool", "(unanswered)"),
    ]
    wire = make_legal([user(), call("1")], [], LINES)
    assert isinstance(wire[-1], ToolMessage)
    assert wire[-1].status == "error"


def test_a_closing_line_separates_a_result_from_a_user_message() -> None:
    assert sent(user(), call("1"), result("1"), user("next")) == [
        ("human", "u"),
        ("ai", ""),
        ("tool", "r"),
        ("ai", "(broken off)"),
        ("human", "next"),
    ]


def test_consecutive_assistant_messages_are_joined() -> None:
    assert sent(user(), says("a"), says("b"), says(""), call("1", text="c"), result("1")) == [
        ("human", "u"),
        ("ai", "a\n\nb\n\n(no text)\n\nc"),
        ("tool", "r"),
    ]


def test_assistant_messages_of_blocks_are_joined_as_blocks() -> None:
    blocks: Any = [{"type": "text", "text": "b"}]
    wire = make_legal([user(), says("a"), AIMessage(blocks), user()], [], LINES)
    assert wire[1].content == [{"type": "text", "text": "a"}, *blocks]


@pytest.mark.parametrize("content", ["", " \n", [], [{"type": "text", "text": ""}]])
def test_an_empty_assistant_message_is_never_sent(content: Any) -> None:
    assert sent(user(), AIMessage(content), user()) == [("human", "u"), ("ai", "(no text)"), ("human", "u")]


def test_a_call_that_could_not_be_parsed_is_sent_without_arguments() -> None:
    wire = make_legal([user(), calls(malformed_call("look", "{", "1")), result("1")], [], LINES)
    assert isinstance(wire[1], AIMessage)
    assert (wire[1].tool_calls[0]["args"], wire[1].invalid_tool_calls) == ({}, [])


def test_missing_and_repeated_ids_are_replaced_the_same_way_each_time() -> None:
    odd = AIMessage(
        "", id="m", tool_calls=[{"name": "look", "args": {}, "id": key} for key in ("1", "1", None)]
    )
    history: list[AnyMessage] = [user(), odd, result("1", "a"), result("1", "b")]
    assert [m.text for m in make_legal(history, [], LINES)] == ["u", "", "a", "b", "(unanswered)"]
    assert wire_faults([make_legal(history, [], LINES)]) == []
    again = [*history, says("x"), user()]
    assert prompt_faults([[SystemMessage("s"), *make_legal(h, [], LINES)] for h in (history, again)]) == []


def test_the_same_id_may_be_used_by_two_replies() -> None:
    assert sent(user(), call("1"), result("1", "a"), call("1"), result("1", "b"))[2::2] == [
        ("tool", "a"),
        ("tool", "b"),
    ]


def test_later_system_messages_are_left_out_or_sent_as_user_messages() -> None:
    head = [SystemMessage("rules")]
    assert sent(user(), SystemMessage(" rules "), says("a"), SystemMessage("news"), head=head) == [
        ("human", "u"),
        ("ai", "a"),
        ("human", "news"),
    ]


# -- the system prompt -----------------------------------------------------------------------------------


def prompt(given_: Any, messages: list[Any], instructions: str) -> Any:
    made = join_system_prompt([*([SystemMessage(given_)] if given_ else []), *messages], instructions)
    return None if made is None else made.content


def test_the_callers_prompt_comes_first_then_the_historys_then_the_instructions() -> None:
    messages = [
        SystemMessage("history"),
        SystemMessage("mine"),
        SystemMessage("more"),
    ]
    assert prompt("mine", messages, "todos") == "mine\n\nhistory\n\nmore\n\ntodos"


@pytest.mark.parametrize(
    ("given_", "messages", "instructions", "made"),
    [
        (None, [], "", None),
        ("mine", [], "", "mine"),
        (None, [], "todos", "todos"),
        (None, [SystemMessage("h")], "", "h"),
        (None, [SystemMessage("h"), SystemMessage("h")], "t", "h\n\nt"),
        ("mine", [SystemMessage("h")], "", "mine\n\nh"),
    ],
)
def test_prompts_with_fewer_parts(given_: Any, messages: Any, instructions: str, made: Any) -> None:
    assert prompt(given_, messages, instructions) == made


def test_a_prompt_of_blocks_keeps_them() -> None:
    block: Any = {"type": "text", "text": "mine", "cache_control": {"type": "ephemeral"}}
    made = prompt([block], [SystemMessage("h")], "todos")
    assert made[0] == block
    assert "".join(part["text"] for part in made).replace("\n\n", "|").strip("|").split("|")[-1] == "todos"
    assert [part["text"].strip() for part in made] == ["mine", "h", "todos"]


# -- any history -----------------------------------------------------------------------------------------

KEYS = st.sampled_from(["1", "2", "3"])
ANY = st.one_of(
    st.builds(user, st.sampled_from(["a", "b"])),
    st.builds(SystemMessage, st.sampled_from(["s", "t"])),
    st.builds(result, KEYS, st.sampled_from(["x", "y"])),
    st.builds(says, st.sampled_from(["", " ", "a"])),
    st.builds(
        lambda keys, text: calls(*(("look", {}, key) for key in keys), text=text),
        st.lists(KEYS | st.none(), max_size=3),
        st.sampled_from(["", "t"]),
    ),
    st.builds(lambda key: calls(malformed_call("look", "{", key)), KEYS | st.none()),
)


@given(st.lists(ANY, max_size=12))
def test_any_history_becomes_legal(history: list[AnyMessage]) -> None:
    history = [m.model_copy(update={"id": str(n)}) for n, m in enumerate(history)]
    before = [m.model_copy(deep=True) for m in history]
    wire = make_legal(history, [SystemMessage("s")], LINES)
    ending = [user("end")] if wire and wire[-1].type == "ai" else []
    if (wire and wire[-1].type == "tool") or not wire:
        ending = []
    assert wire_faults([[SystemMessage("s"), *wire, *ending]]) == []
    assert history == before
    said = [m.text for m in history if m.type == "human"]
    assert [m.text for m in wire if m.type == "human" and m.text != "t"] == said
    texts = "|".join(m.text for m in wire if m.type == "ai")
    for message in history:
        assert message.type != "ai" or text_of(message) in texts


@given(st.lists(ANY, max_size=8), st.sampled_from(["text", "round"]))
def test_the_next_request_begins_with_this_one(history: list[AnyMessage], reply: str) -> None:
    history = [m.model_copy(update={"id": str(n)}) for n, m in enumerate([*history, user()])]
    head = [SystemMessage("s")]
    grown: list[AnyMessage] = (
        [says("x"), user()] if reply == "text" else [call("n1", "n2"), result("n1"), result("n2")]
    )
    requests = [[*head, *make_legal(h, head, LINES)] for h in (history, [*history, *grown])]
    assert prompt_faults(requests) == []


def test_messages_of_other_roles_are_sent_as_user_messages() -> None:
    history = [user("a"), ChatMessage("critic's words", role="critic"), FunctionMessage("f", name="f")]
    wire = make_legal(history, [], LINES)
    assert [(m.type, m.text) for m in wire] == [("human", "a"), ("human", "critic's words"), ("human", "f")]
    assert wire_faults([wire]) == []
