"""What a client could not read has a name; what the model's own code raises keeps its own."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from wakeloop import ReplyError, create_todo_agent
from wakeloop.model.broken_stream import Hearing
from wakeloop.model.storable import storable
from wakeloop.testing import ScriptedModel, says

GO: Any = {"messages": [("user", "go")]}


def no_json(_: Any) -> Any:
    return says(json.loads('{"a": '))


def no_number(_: Any) -> Any:
    return says(TypeAdapter(str).validate_python(7))


@pytest.mark.parametrize("read", [no_json, no_number])
async def test_what_a_reader_raises_is_named(read: Any) -> None:
    with pytest.raises(ReplyError, match="could not be read") as raised:
        create_todo_agent(ScriptedModel(read)).invoke(GO)
    assert isinstance(raised.value.__cause__, ValueError)
    assert "errors.pydantic.dev" not in str(raised.value)
    with pytest.raises(ReplyError):
        await create_todo_agent(ScriptedModel(read)).ainvoke(GO)


@pytest.mark.parametrize(
    "error", [ValueError("mine"), TypeError("mine"), KeyError("mine"), RuntimeError("mine")]
)
async def test_the_models_own_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error), match="mine"):
        create_todo_agent(ScriptedModel(error)).invoke(GO)
    with pytest.raises(type(error), match="mine"):
        await create_todo_agent(ScriptedModel(error)).ainvoke(GO)


def test_who_does_not_stream_is_not_listened_to() -> None:
    config: Any = {"configurable": {}}
    assert Hearing(config, streaming=False).config is config
    assert len(Hearing(config, streaming=True).config["callbacks"]) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (2**63 - 1, 2**63 - 1),
        (2**63, "0x8000000000000000"),
        (-(2**63), -(2**63)),
        (True, True),
        ([{"a": -(2**63) - 1}], [{"a": "-0x8000000000000001"}]),
        ({"\ud83d": "\ude00"}, {"\ufffd": "\ufffd"}),
        (1.5, 1.5),
        (None, None),
    ],
)
def test_what_is_stored_beside_a_reply(value: Any, kept: Any) -> None:
    assert storable(value) == kept


def test_a_number_without_end_becomes_a_short_text() -> None:
    assert len(storable(10**10_000)) == 100


def test_what_lies_too_deep_is_left_out() -> None:
    assert storable([[[1]]], 2) == [[[]]]
    assert storable({"a": {"b": 1}}, 1) == {"a": {}}
