"""Copies of one history diverge: each finds its own messages, and none rebuilds or scans needlessly."""

from copy import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from wakeloop.channels.conversation import FORKED, Messages, merge_messages
from wakeloop.model.wire_order import is_legal, make_legal
from wakeloop.testing import calls, wire_faults

LINES = {"unanswered": "(unanswered)", "run_interrupted": "(broken off)", "no_text": "(no text)"}.__getitem__


def message(key: str, text: str = "x") -> HumanMessage:
    return HumanMessage(text, id=key)


def test_an_id_that_only_another_copy_holds_is_not_found_and_nothing_is_copied() -> None:
    first = Messages([message("a")])
    other = copy(first)
    other.upsert(message("b"))
    assert other.find("b") == 1
    assert first.find("b") is None
    assert (
        first.upsert(message("b")) == 1
    )  # the router reads a copy with a node's writes, then they are applied
    assert FORKED not in first.places


def test_one_id_in_two_positions_is_found_in_each_copy() -> None:
    first = Messages([message("a")])
    other = copy(first)
    first.upsert(message("b"))
    first.upsert(message("c"))
    other.upsert(message("c"))
    assert (first.find("b"), first.find("c"), other.find("b"), other.find("c")) == (1, 2, None, 1)
    assert FORKED in first.places


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abcdef")), max_size=30))
def test_each_copy_finds_what_it_holds_whatever_others_write(writes: list[tuple[int, str]]) -> None:
    root = Messages([message("r")])
    copies = [copy(root) for _ in range(3)]
    for which, key in writes:
        copies[which].upsert(message(key))
    for one in copies:
        keys = [m.id for m in one]
        assert len(keys) == len(set(keys))
        assert [one.find(key) for key in "rabcdef"] == [
            keys.index(key) if key in keys else None for key in "rabcdef"
        ]


def history() -> Messages:
    reply = calls(("look", {}, "1"))
    return Messages(
        [message("u"), reply.model_copy(update={"id": "r"}), ToolMessage("x", tool_call_id="1", id="t")]
    )


def test_a_valid_history_is_remembered_by_its_copies() -> None:
    messages = history()
    assert messages.legal_count == 0
    make_legal(messages, [], LINES)
    assert messages.legal_count == copy(messages).legal_count == 3


def test_a_replaced_message_is_checked_again() -> None:
    messages = history()
    make_legal(messages, [], LINES)
    changed: Any = merge_messages(
        messages, [[AIMessage("", id="r", tool_calls=calls(("look", {}, "2")).tool_calls)]]
    )
    assert changed.legal_count == 1
    assert messages.legal_count == 3
    wire = make_legal([*changed, message("v")], [], LINES)
    assert wire_faults([wire]) == []
    assert [m.text for m in make_legal(changed, [], LINES)] == ["x", "", "(unanswered)"]


def test_a_history_that_loses_messages_is_checked_again() -> None:
    from langchain_core.messages import RemoveMessage

    messages = history()
    make_legal(messages, [], LINES)
    shorter: Any = merge_messages(messages, [[RemoveMessage("t")]])
    assert shorter.legal_count == 0
    assert make_legal(shorter, [], LINES)[-1].text == "(unanswered)"


@pytest.mark.parametrize("replaced", [0, 1])
def test_a_replaced_result_is_checked_with_its_calls(replaced: int) -> None:
    """A reminder appended to a result: the history stays valid, and no request checks all of it again."""
    reply = AIMessage("", id="r", tool_calls=[{"name": "look", "args": {}, "id": key} for key in "ab"])
    results = [ToolMessage("seen", name="look", id=f"t{key}", tool_call_id=key) for key in "ab"]
    messages = Messages([HumanMessage("go", id="h"), reply, *results])
    assert is_legal(messages)
    assert messages.legal_count == 4
    changed: Any = merge_messages(
        messages, [[results[replaced].model_copy(update={"content": "seen, and more"})]]
    )
    assert changed.legal_count == 1
    assert is_legal(changed)
    assert changed.legal_count == 4
