"""What is done for speed changes nothing that can be observed."""

import gc
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import RunnableLambda
from langgraph.channels import BinaryOperatorAggregate, DeltaChannel

from wakeloop.channels.conversation import merge_messages
from wakeloop.channels.reducers import merge_entries
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.progress import fingerprint_call, fingerprint_earlier_calls, note_progress
from wakeloop.model.bindings import to_prompt_value
from wakeloop.model.storable_values import _make_sendable, make_storable
from wakeloop.platform.channels import CheapDeltaChannel, CheapReducerChannel, has_slots
from wakeloop.platform.computed_per_object import computed_per_object
from wakeloop.testing import ScriptedModel
from wakeloop.text.characters import is_blank, is_plain_json, to_one_line
from wakeloop.text.marks import make_user_message

THEIRS: dict[type, Any] = {
    CheapDeltaChannel: DeltaChannel(merge_messages),
    CheapReducerChannel: BinaryOperatorAggregate(list, merge_entries),
}


def parts(channel: Any) -> dict[str, Any]:
    names = {name for kind in type(channel).__mro__ for name in getattr(kind, "__slots__", ())}
    return {name: getattr(channel, name, None) for name in names}


@pytest.mark.parametrize(
    "channel",
    [CheapDeltaChannel(merge_messages, list, snapshot_frequency=7), CheapReducerChannel(list, merge_entries)],
    ids=["delta", "folded"],
)
def test_a_copy_has_every_part_of_the_channel_and_is_independent(channel: Any) -> None:
    channel.key, channel.value = "k", []
    copied = channel.copy()
    assert type(copied) is type(channel)
    assert parts(copied) == parts(channel)
    assert set(parts(channel)) == set(parts(THEIRS[type(channel)]))
    copied.update([[HumanMessage("x", id="1")] if type(channel) is CheapDeltaChannel else ["x"]])
    assert (len(copied.get()), channel.get()) == (1, [])


def test_a_release_with_other_slots_keeps_its_own_copy() -> None:
    class Later(DeltaChannel[Any]):
        __slots__ = ("more",)

    assert has_slots(DeltaChannel, "key", "typ", "value", "reducer", "snapshot_frequency")
    assert not has_slots(Later, "key", "typ", "value", "reducer", "snapshot_frequency")
    assert {"copy" in vars(kind) for kind in (CheapDeltaChannel, CheapReducerChannel)} == {True}


class Own(ScriptedModel):
    """A model that reads its input itself."""

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002 - as BaseChatModel names it
        assert isinstance(input, list)
        return super().invoke(input, config, **kwargs)


def test_a_chat_model_gets_the_value_that_langchain_would_make_of_a_list() -> None:
    asked: list[Any] = [HumanMessage("go")]
    model = ScriptedModel([])
    prompt = to_prompt_value(model, asked)
    assert prompt == ChatPromptValue(messages=asked) == BaseChatModel._convert_input(model, asked)
    assert prompt.to_messages()[0] is asked[0]
    assert isinstance(to_prompt_value(model.bind(stop=["."]), asked), ChatPromptValue)


def test_a_model_with_its_own_invoke_gets_the_list() -> None:
    asked: list[Any] = [HumanMessage("go")]
    assert to_prompt_value(Own([]), asked) is asked
    assert to_prompt_value(Own([]).bind(stop=["."]), asked) is asked
    assert to_prompt_value(RunnableLambda(len), asked) is asked


def asks(*names: str, at: str = "1") -> list[Any]:
    made = [{"name": n, "args": {}, "id": f"{at}-{i}", "type": "tool_call"} for i, n in enumerate(names)]
    return [AIMessage("", tool_calls=made), *(ToolMessage("ok", tool_call_id=call["id"]) for call in made)]


def test_attempts_are_read_from_this_activation_only() -> None:
    before = [HumanMessage("a"), *asks("old")]
    history = [
        *before,
        AIMessage("Done."),
        HumanMessage("b"),
        *asks("x", "todo_list"),
        *asks("y", "x", at="2"),
    ]
    assert fingerprint_earlier_calls(history, {"todo_list"}) == fingerprint_call("x", {}) + fingerprint_call(
        "y", {}
    )


def test_of_many_calls_the_newest_count() -> None:
    history = [message for n in range(70) for message in asks(f"t{n}", at=str(n))]
    assert fingerprint_earlier_calls(history, ()) == "".join(
        fingerprint_call(f"t{n}", {}) for n in range(6, 70)
    )


def test_nothing_is_noted_before_the_first_wake() -> None:
    ledger: Ledger = {"nag": False}
    note_progress(asks("x"), ledger, ())
    assert ledger == {"nag": False}
    ledger = {"waking": True, "nag": False}
    note_progress([*asks("x"), make_user_message("wake", "keep going"), *asks("x", at="2")], ledger, ())
    assert ledger == {"waking": True, "nag": False, "seen": fingerprint_call("x", {})}
    note_progress([*asks("y", at="3")], ledger, ())
    seen = fingerprint_call("x", {}) + fingerprint_call("y", {})
    assert ledger == {"waking": True, "nag": False, "seen": seen, "worked": True}


# -- results kept with an object ---------------------------------------------------------------------------


def test_a_result_is_computed_once_for_each_object_and_forgotten_with_it() -> None:
    asked: list[str] = []

    @computed_per_object
    def size(message: Any) -> int:
        asked.append(message.text)
        return len(message.text)

    one, equal = HumanMessage("Hello"), HumanMessage("Hello")
    assert [size(one), size(one), *size.of_all([one, equal])] == [5] * 4
    assert asked == ["Hello"] * 2
    del one, equal
    gc.collect()
    assert size.known == {}
    assert [size(SimpleNamespace(text="ab")), len(size.known)] == [2, 0]


ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=3)
PARTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=2) | ANY_TEXT,
    lambda parts: st.lists(parts, max_size=3) | st.tuples(parts) | st.dictionaries(ANY_TEXT, parts),
    max_leaves=6,
)


@given(PARTS)
def test_what_passes_for_plain_json_needs_no_change(value: Any) -> None:
    if is_plain_json(value):
        assert make_storable(value, change=_make_sendable) is value


@given(ANY_TEXT)
def test_a_string_that_begins_with_a_letter_is_not_blank(text: str) -> None:
    assert is_blank(text) == (not to_one_line(text))
