"""prompt_faults: a static system prompt, and requests that only grow."""

import pytest
from conversations import requests_of, threads
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from wakeloop.testing import calls, malformed_call, prompt_faults, says

S, U, T = SystemMessage("rules"), HumanMessage("go"), says("fine")
C, R = calls(("a", {"x": 1}, "1")), ToolMessage("one", tool_call_id="1")


def test_no_requests_no_faults() -> None:
    assert prompt_faults([]) == []


@given(threads(system=True))
def test_a_legal_thread_has_no_faults(thread: list[BaseMessage]) -> None:
    assert prompt_faults(requests_of(thread)) == []


def test_equal_copies_and_what_is_not_on_the_wire_do_not_matter() -> None:
    again = [
        SystemMessage("rules", id="s"),
        HumanMessage("go", additional_kwargs={"wakeloop": {"kind": "wake"}}),
        AIMessage("", tool_calls=[{"name": "a", "args": {"x": 1}, "id": "1"}], id="m"),
        ToolMessage("one", tool_call_id="1", status="error"),
    ]
    assert prompt_faults([[S, U, C, R], again, again]) == []


@pytest.mark.parametrize(
    ("requests", "faults"),
    [
        ([[U]], ["request 0, message 0: no system message at index 0"]),
        ([[]], ["request 0, message 0: no system message at index 0"]),
        ([[U, S]], ["request 0, message 1: a system message that is not at index 0"]),
        ([[S, S, U]], ["request 0, message 1: a system message that is not at index 0"]),
        ([[S, U], [U, T, U], [S, U, T, U]], ["request 1, message 0: no system message at index 0"]),
        ([[S, U], [S, U, S]], ["request 1, message 2: a system message that is not at index 0"]),
    ],
)
def test_the_position_of_the_system_message(requests: list[list[BaseMessage]], faults: list[str]) -> None:
    assert prompt_faults(requests) == faults


def test_a_changed_system_prompt_is_reported_once_with_its_position() -> None:
    other = SystemMessage("rules, 2 open, budget 24 and so on")
    requests: list[list[BaseMessage]] = [[S, U], [other, U], [other, U], [U], [S, U]]
    changed = "message 0: the system prompt has changed from character 5"
    assert prompt_faults(requests) == [
        f"request 1, {changed}: was '', is ', 2 open, budget 24 '",
        "request 3, message 0: no system message at index 0",
        f"request 4, {changed}: was ', 2 open, budget 24 ', is ''",
    ]


def test_a_changed_byte_inside_the_system_prompt() -> None:
    assert prompt_faults([[SystemMessage("abc"), U], [SystemMessage("abd"), U]]) == [
        "request 1, message 0: the system prompt has changed from character 2: was 'c', is 'd'"
    ]


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        (calls(("b", {"x": 1}, "1")), "was assistant: '', calls a, is assistant: '', calls b"),
        (calls(("a", {"x": 2}, "1")), "was assistant: '', calls a, is assistant: '', calls a"),
        (calls(("a", {"x": 1}, "2")), "was assistant: '', calls a, is assistant: '', calls a"),
        (calls(("a", {"x": 1}, "1"), text="hm"), "was assistant: '', calls a, is assistant: 'hm', calls a"),
        (
            calls(("a", {"x": 1}, "1"), malformed_call("c", "{")),
            "was assistant: '', calls a, is assistant: '', calls a, c",
        ),
        (HumanMessage(""), "was assistant: '', calls a, is user: ''"),
    ],
)
def test_a_changed_message_breaks_the_prefix(changed: BaseMessage, shown: str) -> None:
    assert prompt_faults([[S, U, C, R], [S, U, changed, R, T, U]]) == [
        f"request 1, message 2: not as in request 0: {shown}"
    ]


def test_a_changed_result_id_breaks_the_prefix() -> None:
    assert prompt_faults([[S, U, C, R], [S, U, C, ToolMessage("one", tool_call_id="2")]]) == [
        "request 1, message 3: not as in request 0: was tool: 'one', is tool: 'one'"
    ]


def test_an_inserted_message_is_reported_once() -> None:
    assert prompt_faults([[S, U, C, R], [S, U, U, C, R], [S, U, U, C, R, T, U]]) == [
        "request 1, message 2: not as in request 0: was assistant: '', calls a, is user: 'go'"
    ]


def test_a_shorter_request() -> None:
    assert prompt_faults([[S, U, T, U], [S, U]]) == [
        "request 1, message 2: missing; request 0 continues with assistant: 'fine'"
    ]


def test_dicts_as_a_server_sees_them() -> None:
    head = [{"role": "system", "content": "rules"}, {"role": "user", "content": "go"}]
    tail = [{"role": "assistant", "content": "fine"}, {"role": "user", "content": "on"}]
    assert prompt_faults([head, head + tail]) == []
    assert prompt_faults([head, head[:1] + tail]) == [
        "request 1, message 1: not as in request 0: was user: 'go', is assistant: 'fine'"
    ]


@given(threads(system=True), st.data())
def test_each_change_of_an_earlier_message_gives_one_fault(
    thread: list[BaseMessage], data: st.DataObject
) -> None:
    place = data.draw(st.integers(1, len(thread) - 1))
    changed = [*thread]
    changed[place] = thread[place].model_copy(update={"content": f"{thread[place].content}!"})
    faults = prompt_faults([thread, changed, changed])
    assert len(faults) == 1
    assert faults[0].startswith(f"request 1, message {place}: not as in request 0: ")


@given(threads(system=True), st.data())
def test_each_lost_message_gives_one_fault(thread: list[BaseMessage], data: st.DataObject) -> None:
    place = data.draw(st.integers(1, len(thread) - 1))
    faults = prompt_faults([[*thread, HumanMessage("end")], [*thread[:place], *thread[place + 1 :]]])
    assert len(faults) == 1
