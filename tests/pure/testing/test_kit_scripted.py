"""ScriptedModel: what it plays, records and complains about."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from itertools import chain, repeat
from time import sleep
from typing import Any, TypedDict

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.exceptions import OutputParserException
from langchain_core.globals import set_llm_cache
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from wakeloop.testing import ScriptedModel, ScriptError, calls, malformed_call, says


@tool
def search(query: str) -> str:
    """Look it up."""
    return query


SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Look it up.",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    },
}


class Answer(BaseModel):
    """An answer."""

    number: int


class Shape(TypedDict):
    """An answer."""

    number: int


class Interrupted(KeyboardInterrupt):
    """The test's own BaseException."""


def test_it_plays_texts_messages_and_calls_in_order() -> None:
    model = ScriptedModel("a", says("b", id="m"), calls(("search", {"query": "x"}, "1")))
    replies = [model.invoke("go") for _ in range(3)]
    assert [reply.content for reply in replies] == ["a", "b", ""]
    assert replies[1].id == "m"
    assert replies[2].tool_calls[0]["id"] == "1"
    model.assert_done()


@pytest.mark.parametrize("make", [list, tuple, iter])
def test_a_single_iterable_is_the_script(make: Any) -> None:
    model = ScriptedModel(make(["a", "b"]))
    assert [str(model.invoke("go").text) for _ in range(2)] == ["a", "b"]
    with pytest.raises(ScriptError):
        model.invoke("go")


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError, KeyboardInterrupt, Interrupted()])
def test_it_raises_scripted_exceptions_and_continues(error: Any) -> None:
    kind = error if isinstance(error, type) else type(error)
    model = ScriptedModel(error, "after", error, "after")
    with pytest.raises(kind):
        model.invoke("go")
    assert model.invoke("go").content == "after"
    with pytest.raises(kind):  # a KeyboardInterrupt leaves through the event loop
        asyncio.run(model.ainvoke("go"))
    assert asyncio.run(model.ainvoke("go")).content == "after"
    assert len(model.requests) == 4


def test_an_exception_instance_is_raised_itself() -> None:
    error = ValueError("no")
    with pytest.raises(ValueError, match="no") as caught:
        ScriptedModel(error).invoke("go")
    assert caught.value is error


def test_a_callable_reads_the_request_and_returns_any_step() -> None:
    def echo(request: list[BaseMessage]) -> str:
        said = str(request[-1].text)
        request.clear()  # its own copy: the record stays whole
        return said

    model = ScriptedModel(
        echo, lambda _: calls(("a", {}, "1")), lambda _: ValueError, lambda _: lambda _: "deep"
    )
    assert model.invoke("one").content == "one"
    assert model.invoke("two").tool_calls[0]["name"] == "a"
    with pytest.raises(ValueError, match=r"^$"):
        model.invoke("three")
    assert model.invoke("four").content == "deep"
    assert model.requests[0] == [HumanMessage("one")]


async def test_an_async_callable_is_awaited() -> None:
    async def slow(request: list[BaseMessage]) -> str:
        await asyncio.sleep(0)
        return f"{len(request)} messages"

    assert (await ScriptedModel(slow).ainvoke("go")).content == "1 messages"
    chunks = [str(chunk.text) async for chunk in ScriptedModel(slow).astream("go")]
    assert chunks == ["1 m", "ess", "age", "s", ""]
    with pytest.raises(TypeError, match="async callable, but the model was called without await"):
        ScriptedModel(slow).invoke("go")


async def test_a_cancelled_request_is_recorded_and_its_reply_is_spent() -> None:
    asked = asyncio.Event()

    async def stuck(request: list[BaseMessage]) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    model = ScriptedModel(stuck, "next")
    task = asyncio.create_task(model.ainvoke("go"))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await model.ainvoke("again")).content == "next"
    assert len(model.requests) == 2


@pytest.mark.parametrize("bad", [{"name": "a"}, 3, None, HumanMessage("x"), malformed_call("a", "{")])
def test_an_invalid_step_is_refused_when_the_model_is_created(bad: Any) -> None:
    with pytest.raises(TypeError, match="Reply 2 of the script must be a string, an AIMessage"):
        ScriptedModel("a", bad)
    with pytest.raises(TypeError, match="must be a string, an AIMessage"):
        ScriptedModel(bad)


def test_a_dict_gets_a_hint() -> None:
    with pytest.raises(TypeError, match=r"Wrap it in calls\(…\)"):
        ScriptedModel([malformed_call("a", "{")])


def test_an_invalid_step_from_an_iterator_or_a_callable_is_refused_when_played() -> None:
    with pytest.raises(TypeError, match="Reply 1 of the script must be"):
        ScriptedModel(iter([3])).invoke("go")
    with pytest.raises(TypeError, match=r"What a scripted callable returns must be .* not int: 3"):
        ScriptedModel(lambda _: 3).invoke("go")


def test_each_message_is_a_fresh_copy() -> None:
    reply = calls(("a", {"list": [1]}, "1"), response_metadata={"finish_reason": "stop"})
    model = ScriptedModel(repeat(reply))
    first, second = model.invoke("go"), model.invoke("go")
    assert first.id != second.id
    assert reply.id is None
    first.tool_calls[0]["args"]["list"].append(2)
    first.response_metadata["finish_reason"] = "length"
    assert second.tool_calls[0]["args"] == {"list": [1]} == reply.tool_calls[0]["args"]
    assert second.response_metadata == {"finish_reason": "stop"} == reply.response_metadata


def test_a_chunk_in_the_script_is_played_as_a_message() -> None:
    reply = ScriptedModel(AIMessageChunk("x", id="m")).invoke("go")
    assert type(reply) is AIMessage
    assert (reply.content, reply.id) == ("x", "m")


def test_requests_are_recorded_as_they_were() -> None:
    history: list[BaseMessage] = [SystemMessage("s"), HumanMessage("one")]
    model = ScriptedModel("a", "b", "c")
    model.invoke(history)
    history += [AIMessage("a"), HumanMessage("two")]
    model.invoke(history)
    model._generate(history)
    history.append(AIMessage("c"))
    assert model.requests == [history[:2], history[:4], history[:4]]
    assert model.requests[0][1] is history[1]  # the list is copied, the messages are not


def test_tools_and_options_of_every_request() -> None:
    own = {"type": "web_search_20250305", "name": "web_search"}
    foreign = {"type": "retrieval", "index": 3}
    model = ScriptedModel(repeat("x"))
    assert model.tools == []
    model.invoke("none")
    model.bind_tools([search, own, foreign], tool_choice="any", strict=True).invoke("three", stop=["."])
    model.bind_tools([search])
    model.invoke("none")
    assert model.tools == [SEARCH]
    assert [len(tools) for tools in model.bound] == [0, 3, 0]
    assert model.bound[1][0] == SEARCH
    assert foreign in model.bound[1]
    assert model.options == [{}, {"tool_choice": "any", "strict": True, "stop": ["."]}, {}]


def test_a_callable_that_is_not_a_tool_is_refused_by_bind_tools() -> None:
    with pytest.raises(ValueError, match="Unsupported function"):
        ScriptedModel("a").bind_tools([3])


def test_without_tool_support() -> None:
    model = ScriptedModel("a", tools=False)
    with pytest.raises(NotImplementedError, match="without tool support"):
        model.bind_tools([search])
    assert model.invoke("go").content == "a"


def test_one_call_too_many_names_itself_and_its_last_message() -> None:
    model = ScriptedModel("a", "b")
    model.invoke("one")
    model.invoke("two")
    with pytest.raises(
        ScriptError,
        match=r"^Call 3 has no reply in the script, which has 2\. Its last message: user: 'three'$",
    ):
        model.invoke("three")
    assert len(model.requests) == 3


def test_a_long_last_message_is_cut_and_its_calls_are_named() -> None:
    with pytest.raises(ScriptError) as caught:
        ScriptedModel().invoke([calls(("search", {}), malformed_call(None, "{"), text="x" * 300)])
    assert str(caught.value).endswith(f"assistant: '{'x' * 200}'…, calls search, ?")


def test_the_complaint_is_an_assertion_error_and_is_not_forgotten() -> None:
    model = ScriptedModel([])
    with pytest.raises(AssertionError):
        model.invoke("go")
    with pytest.raises(ScriptError, match="Call 1 has no reply"):
        model.assert_done()


def test_leftover_replies() -> None:
    model = ScriptedModel("a", calls(("search", {})), ValueError)
    model.invoke("go")
    for _ in range(2):
        with pytest.raises(
            ScriptError,
            match=r"^The script has replies left over after 1 call, first: assistant: '', calls search$",
        ):
            model.assert_done()
    model.invoke("go")
    with pytest.raises(ScriptError, match=r"^The script .*first: <class 'ValueError'>$"):
        model.assert_done()
    with pytest.raises(ValueError, match=r"^$"):
        model.invoke("go")
    model.assert_done()


def test_an_endless_script_never_ends() -> None:
    model = ScriptedModel(chain(["first"], repeat("again")))
    assert [str(model.invoke("go").text) for _ in range(4)] == ["first", "again", "again", "again"]
    with pytest.raises(ScriptError, match=r"^The script has replies left over after 4 calls"):
        model.assert_done()
    assert {str(model.invoke("go").text) for _ in range(101)} == {"again"}


def test_a_generator_is_read_as_it_is_played() -> None:
    drawn = []

    def script() -> Iterator[str]:
        for number in range(5):
            drawn.append(number)
            yield str(number)

    model = ScriptedModel(script())
    model.invoke("go")
    model.invoke("go")
    assert drawn == [0, 1]


def test_copies_and_bindings_share_record_and_script() -> None:
    model = ScriptedModel("a", "b", "c", "d")
    assert model.model_copy().invoke("go").content == "a"
    assert deepcopy(model).invoke("go").content == "b"
    assert model.with_config(tags=["t"]).invoke("go").content == "c"
    assert model.bind_tools([search]).bind(stop=["x"]).invoke("go").content == "d"
    assert len(model.requests) == 4
    model.assert_done()


def test_two_models_share_nothing() -> None:
    one, two = ScriptedModel("a"), ScriptedModel("b")
    one.bind_tools([search]).invoke("go")
    assert (two.requests, two.tools) == ([], [])


@pytest.mark.parametrize("generated", [False, True])
def test_each_thread_gets_its_replies_once_matched_with_their_requests(generated: bool) -> None:
    numbers = [str(number) for number in range(200)]

    def slowly() -> Iterator[str]:  # a generator that two threads enter at once raises
        for number in numbers:
            sleep(0.0002)
            yield number

    model = ScriptedModel(slowly() if generated else numbers)
    with ThreadPoolExecutor(16) as pool:
        pairs = list(pool.map(lambda n: (f"request {n}", str(model.invoke(f"request {n}").text)), range(200)))
    assert sorted(reply for _, reply in pairs) == sorted(numbers)
    asked = [str(request[0].text) for request in model.requests]
    assert {asked[int(reply)] for _, reply in pairs} == set(asked)
    assert all(asked[int(reply)] == request for request, reply in pairs)


async def test_parallel_tasks_and_batches() -> None:
    numbers = [str(number) for number in range(30)]
    model = ScriptedModel(numbers)
    replies = await asyncio.gather(*(model.ainvoke("go") for _ in range(10)))
    replies += await model.abatch(["go"] * 10)
    replies += model.batch(["go"] * 10)
    assert sorted(int(str(reply.text)) for reply in replies) == list(range(30))


def test_a_global_cache_hides_no_request() -> None:
    set_llm_cache(InMemoryCache())
    try:
        model = ScriptedModel("a", "b")
        assert [model.invoke("go").content for _ in range(2)] == ["a", "b"]
    finally:
        set_llm_cache(None)


@pytest.mark.parametrize("reply", ['{"number": 7}', calls(("Answer", {"number": 7}))], ids=["text", "call"])
async def test_structured_output_for_every_kind_of_schema(reply: Any) -> None:
    for schema, expected in [
        (Answer, Answer(number=7)),
        (Shape, {"number": 7}),
        (Answer.model_json_schema(), {"number": 7}),
    ]:
        model = ScriptedModel(repeat(reply))
        structured = model.with_structured_output(schema)
        assert structured.invoke("go") == expected
        assert await structured.ainvoke("go") == expected
        assert list(structured.stream("go")) == [expected]
        assert len(model.requests) == 3
        form = model.options[0]["response_format"]
        assert form["type"] == "json_schema"
        assert form["json_schema"]["schema"]["properties"]["number"]["type"] == "integer"


@pytest.mark.parametrize(
    ("schema", "text"),
    [(Answer, "seven"), (Answer, '{"number": "many"}'), (Shape, "[7]"), (Shape, '{"number": 7')],
)
def test_structured_output_that_does_not_fit(schema: Any, text: str) -> None:
    with pytest.raises(OutputParserException, match="The reply "):
        ScriptedModel(text).with_structured_output(schema).invoke("go")
    result: Any = ScriptedModel(text).with_structured_output(schema, include_raw=True).invoke("go")
    assert result["raw"].content == text
    assert result["parsed"] is None
    assert isinstance(result["parsing_error"], OutputParserException)


def test_structured_output_with_the_raw_reply() -> None:
    model = ScriptedModel('{"number": 7}')
    result: Any = model.with_structured_output(Answer, include_raw=True, method="function_calling").invoke(
        "go"
    )
    assert (result["raw"].content, result["parsed"], result["parsing_error"]) == (
        '{"number": 7}',
        Answer(number=7),
        None,
    )


def test_structured_output_lets_exceptions_of_the_script_through() -> None:
    with pytest.raises(TimeoutError):
        ScriptedModel(TimeoutError).with_structured_output(Answer, include_raw=True).invoke("go")
