"""An error that a client could not read has a name; the model's own errors keep theirs."""

import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.exceptions import ModelRefusalError
from pydantic import BaseModel, TypeAdapter

from wakeloop import ReplyError, answer_of, create_todo_agent
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.model.reply_watcher import ReplyWatcher
from wakeloop.model.storable_values import make_storable
from wakeloop.testing import ScriptedModel, calls, says

GO: Any = {"messages": [("user", "go")]}


def no_json(_: Any) -> Any:
    return says(json.loads('{"a": '))


def no_number(_: Any) -> Any:
    return says(TypeAdapter(str).validate_python(7))


@pytest.mark.parametrize("read", [no_json, no_number])
async def test_a_parsers_error_is_named(read: Any) -> None:
    with pytest.raises(ReplyError, match="could not be read") as raised:
        create_todo_agent(ScriptedModel(read)).invoke(GO)
    assert isinstance(raised.value.__cause__, ValueError)
    assert "errors.pydantic.dev" not in str(raised.value)
    with pytest.raises(ReplyError):
        await create_todo_agent(ScriptedModel(read)).ainvoke(GO)


@pytest.mark.parametrize(
    "error", [ValueError("mine"), TypeError("mine"), KeyError("mine"), RuntimeError("mine")]
)
async def test_the_models_own_errors_pass_through(error: Exception) -> None:
    with pytest.raises(type(error), match="mine"):
        create_todo_agent(ScriptedModel(error)).invoke(GO)
    with pytest.raises(type(error), match="mine"):
        await create_todo_agent(ScriptedModel(error)).ainvoke(GO)


def refuses(_: Any) -> Any:
    raise ModelRefusalError("I will not.")


def refuses_in_a_reply(_: Any) -> Any:
    raise ModelRefusalError("no", raw_message=says("As for", finish_reason="refusal"))


@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
@pytest.mark.parametrize("layer", [False, True], ids=["graph", "middleware"])
@pytest.mark.parametrize(("raises", "words"), [(refuses, "I will not."), (refuses_in_a_reply, "As for")])
async def test_a_raised_refusal_is_the_last_word(door: str, layer: bool, raises: Any, words: str) -> None:
    model = ScriptedModel(calls(("todo_write", {"items": ["a"]})), raises)
    agent: Any = create_todo_agent(model)
    if layer:
        agent = create_agent(model, [], middleware=[WakeLoopMiddleware(settings="wakeloop")])
    out = agent.invoke(GO) if door == "invoke" else await agent.ainvoke(GO)
    assert (out["todo_session"]["reason"], answer_of(out)) == ("refused", words)
    assert len(model.requests) == 2


class Answer(BaseModel):
    x: int


def broken(_: Any) -> Any:
    """Return what a client raises if the server could not read the model's call."""
    error = RuntimeError("Error code: 500 - Failed to parse tool call arguments as JSON")
    error.status_code = 500  # type: ignore[attr-defined]
    raise error


@pytest.mark.parametrize(
    ("script", "form", "asked", "end"),
    [
        ([broken] * 5, None, 5, ("dormant", "malformed_calls")),
        ([calls(("todo_write", {"items": ["a"]})), *[broken] * 11], None, 12, ("idle", "malformed_calls")),
        (["hi", broken, '{"x": 1}'], Answer, 3, ("dormant", "answered")),
        (["hi", *[broken] * 5], Answer, 6, ("dormant", "malformed_calls")),
    ],
)
async def test_a_call_that_the_server_could_not_read_is_asked_for_again(
    script: Any, form: Any, asked: int, end: Any
) -> None:
    for door in ("invoke", "ainvoke"):
        model = ScriptedModel(*script)
        agent = create_todo_agent(model, response_format=form)
        out = agent.invoke(GO) if door == "invoke" else await agent.ainvoke(GO)
        assert (len(model.requests), out["todo_session"]["spent"]["requests"]) == (asked, asked)
        assert (out["todo_session"]["state"], out["todo_session"]["reason"]) == end
        assert (out.get("structured_response") == {"x": 1}) is (end[1] == "answered")


def test_a_client_that_does_not_stream_is_not_watched() -> None:
    config: Any = {"configurable": {}}
    assert ReplyWatcher(config, streaming=False).config is config
    assert len(ReplyWatcher(config, streaming=True).config["callbacks"]) == 1  # type: ignore[arg-type]


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
def test_what_is_stored_with_a_reply(value: Any, kept: Any) -> None:
    assert make_storable(value) == kept


def test_an_endless_number_becomes_a_short_string() -> None:
    assert len(make_storable(10**10_000)) == 100


def test_what_is_nested_too_deep_is_left_out() -> None:
    assert make_storable([[[1]]], 2) == [[[]]]
    assert make_storable({"a": {"b": 1}}, 1) == {"a": {}}
