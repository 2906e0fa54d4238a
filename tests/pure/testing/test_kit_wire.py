"""wire_faults: legal conversations have none, and each mutation causes its own."""

import pytest
from conversations import requests_of, threads
from hypothesis import given
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from wakeloop.testing import calls, malformed_call, says, wire_faults

S, U, T = SystemMessage("rules"), HumanMessage("go"), says("fine")
C = calls(("a", {}, "1"), ("b", {}, "2"))
R1, R2 = ToolMessage("one", tool_call_id="1"), ToolMessage("two", tool_call_id="2")


def stray(key: str) -> str:
    return f"a stray tool result: {key!r} is no call of the assistant message directly before"


CASES = [
    # legal
    ([], []),
    ([U], []),
    ([S, U], []),
    ([S, U, U], []),
    ([S, U, C, R1, R2], []),
    ([S, U, C, R2, R1, T, U], []),
    # Anthropic's API wants them unique everywhere
    ([U, calls(("a", {}, "1")), R1, calls(("a", {}, "1")), R1], [
        (3, "the call id '1' is repeated"),
        (4, stray("1")),
    ]),
    ([U, AIMessageChunk("x"), U], []),
    ([HumanMessage(""), HumanMessage(" ")], [(0, "an empty user message"), (1, "an empty user message")]),
    ([S, ChatMessage("go", role="user")], []),
    ([S, U, AIMessage([{"type": "text", "text": "x"}]), U], []),
    # system
    ([U, S], [(1, "a system message that is not at index 0")]),
    ([S, S, U], [(1, "more than one system message")]),
    ([S, U, T, S, U], [(3, "more than one system message")]),
    ([S, U, C, S, R1, R2][:4], [
        (2, "the call '1' of 'a' is not answered directly after its message"),
        (2, "the call '2' of 'b' is not answered directly after its message"),
        (3, "more than one system message"),
    ]),
    # calls
    ([U, calls(("a", {}, None))], [
        (1, "the call of 'a' has no id"),
        (1, "the last message is the assistant's"),
    ]),
    ([U, calls(("a", {}, ""), ("b", {}, "2")), R2], [(1, "the call of 'a' has no id")]),
    ([U, calls(("a", {}, "1"), ("b", {}, "1")), R1], [(1, "the call id '1' is repeated")]),
    ([U, calls(malformed_call("a", "{", id="1")), U], [(1, "a malformed call of 'a' left in the request")]),
    ([U, calls(("b", {}, "2"), malformed_call("a", "{", id="1")), R2], [
        (1, "a malformed call of 'a' left in the request"),
    ]),
    # results
    ([U, C, R1], [(1, "the call '2' of 'b' is not answered directly after its message")]),
    ([U, C, R1, T, U], [(1, "the call '2' of 'b' is not answered directly after its message")]),
    ([U, C, R1, R2, R1], [(4, "a second result for the call '1'")]),
    ([U, R1], [(1, stray("1"))]),
    ([U, C, R1, R2, T, U, T, U, R1], [
        (8, stray("1")),
    ]),
    ([U, C, R1, R2, ToolMessage("x", tool_call_id="3")], [
        (4, stray("3")),
    ]),
    ([U, C, R1, T, R2, T, U], [
        (1, "the call '2' of 'b' is not answered directly after its message"),
        (4, stray("2")),
    ]),
    # user after tool
    ([U, C, R1, R2, U], [(4, "a user message directly after a tool result")]),
    ([U, C, R1, U, R2], [
        (1, "the call '2' of 'b' is not answered directly after its message"),
        (3, "a user message directly after a tool result"),
        (4, stray("2")),
    ]),
    ([U, C, U], [
        (1, "the call '1' of 'a' is not answered directly after its message"),
        (1, "the call '2' of 'b' is not answered directly after its message"),
    ]),
    # assistants
    ([U, T, T, U], [(2, "two assistant messages in a row")]),
    ([U, T, ChatMessage("x", role="assistant"), U], [(2, "two assistant messages in a row")]),
    ([U, T], [(1, "the last message is the assistant's")]),
    ([T], [(0, "the last message is the assistant's")]),
    ([U, says(""), U], [(1, "an empty assistant message")]),
    ([U, says(" \n"), U], [(1, "an empty assistant message")]),
    ([U, AIMessage([]), U], [(1, "an empty assistant message")]),
    ([U, AIMessage([{"type": "text", "text": ""}]), U], [(1, "an empty assistant message")]),
    # messages that no server knows
    ([U, RemoveMessage(id="x"), U], [(1, "a message of the unknown role 'remove'")]),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "faults"), CASES)
def test_the_faults_of_one_request(request_: list[BaseMessage], faults: list[tuple[int, str]]) -> None:
    assert wire_faults([request_]) == [f"request 0, message {place}: {fault}" for place, fault in faults]


def test_requests_are_numbered_from_0_and_judged_one_by_one() -> None:
    assert wire_faults([[U], [U, T], [S, U], [U, U, S]]) == [
        "request 1, message 1: the last message is the assistant's",
        "request 3, message 2: a system message that is not at index 0",
    ]


def test_no_requests_no_faults() -> None:
    assert wire_faults([]) == []


def test_dicts_as_a_server_sees_them() -> None:
    made = {"id": "1", "type": "function", "function": {"name": "a", "arguments": "{}"}}
    cut = {"id": "2", "type": "function", "function": {"name": "b", "arguments": '{"x'}}
    request = [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "content": "one", "tool_call_id": "1"},
    ]
    assert wire_faults([request]) == []
    request[2]["tool_calls"] = [made, cut]
    request.append({"role": "user", "content": "well?"})
    assert wire_faults([request]) == [
        "request 0, message 2: a malformed call of 'b' left in the request",
        "request 0, message 4: a user message directly after a tool result",
    ]


def test_dicts_without_ids_or_with_arguments_that_are_not_an_object() -> None:
    listed = {"id": "1", "type": "function", "function": {"name": "a", "arguments": "[1]"}}
    nameless = {"type": "function", "function": {"name": "b", "arguments": "{}"}}
    request = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "tool_calls": [listed, nameless]},
        {"role": "tool", "content": "one"},
    ]
    assert wire_faults([request]) == [
        "request 0, message 1: a malformed call of 'a' left in the request",
        "request 0, message 1: the call of 'b' has no id",
        f"request 0, message 2: {stray('')}",
    ]


@given(threads())
def test_a_legal_thread_has_no_fault_in_any_request(thread: list[BaseMessage]) -> None:
    assert wire_faults(requests_of(thread)) == []


@given(threads())
def test_a_thread_that_ends_with_the_assistant_has_its_fault(thread: list[BaseMessage]) -> None:
    assert wire_faults([[*thread, T]]) == [
        f"request 0, message {len(thread)}: the last message is the assistant's"
    ]
