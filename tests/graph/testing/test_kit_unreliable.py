"""UnreliableModel: careful at heart, and each habit on its own."""

import json
from random import Random
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from levels import examples
from pydantic import BaseModel, Field, ValidationError
from todo_graphs import VOCABULARIES, Store, agent, parley

from wakeloop.testing import UnreliableModel, calls, malformed_call, prompt_faults, says, walk, wire_faults
from wakeloop.testing.schema_examples import make_example

CALM: dict[str, Any] = {"stop_early": 0, "forget": 0, "malformed": 0, "double": 0, "repeat": 0}
LIST = calls(("todo_write", {"items": ["first", "second"]}, "w"))
STORED = ToolMessage("Stored 2 items:\n  [1] first\n  [2] second", tool_call_id="w")
WORK = {
    "type": "function",
    "function": {
        "name": "measure",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}


def model(seed: int = 1, **habits: Any) -> UnreliableModel:
    return UnreliableModel(seed, **{**CALM, **habits})


def ask(weak: UnreliableModel, *messages: Any, others: bool = True) -> AIMessage:
    return weak.bind_tools([*parley(Store()), *([WORK] if others else [])]).invoke(list(messages))


def shape(reply: AIMessage) -> list[tuple[str, Any]]:
    return [(call["name"], call["args"]) for call in reply.tool_calls]


@pytest.mark.parametrize("vocabulary", list(VOCABULARIES))
def test_without_habits_it_does_the_job_in_every_vocabulary(vocabulary: str) -> None:
    store, weak = Store(), model()
    nodes = walk(agent(weak, store, vocabulary), "do it")
    assert nodes == [
        *["call_model", "run_tools"] * 7,
        "call_model",
    ]  # plan, three times work and close, a text
    assert store.statuses == ["completed"] * 3
    assert [path for path, _ in store.work] == ["part 1 of 3", "part 2 of 3", "part 3 of 3"]
    assert wire_faults(weak.requests) == []


def test_the_number_of_items() -> None:
    store = Store()
    walk(agent(model(items=5), store), "do it")
    assert store.statuses == ["completed"] * 5
    assert len(store.work) == 5


def test_a_second_request_gets_a_list_of_its_own() -> None:
    store = Store()
    graph = agent(model(), store)
    state = graph.invoke({"messages": [("user", "do it")]})
    state = graph.invoke({"messages": [*state["messages"], ("user", "and this")]})
    assert store.statuses == ["completed"] * 6
    assert state["messages"][-1].content == "Finished: all 6 items are settled."


def test_a_mark_of_the_graph_is_no_request() -> None:
    done = [calls(("todo_update", {"id": key, "status": "done"}, str(key))) for key in (1, 2)]
    results = [ToolMessage(f"[{key}] done: x.", tool_call_id=str(key)) for key in (1, 2)]
    history = [HumanMessage("go"), LIST, STORED, done[0], results[0], done[1], results[1], says("bye")]
    marked = HumanMessage("Close.", additional_kwargs={"wakeloop": {"kind": "guard"}})
    assert ask(model(), *history, marked).content == "Finished: all 2 items are settled."
    assert shape(ask(model(), *history, HumanMessage("Close.")))[0][0] == "todo_write"


def test_it_works_on_the_item_in_progress_and_reads_nudges() -> None:
    nudge = HumanMessage(
        "Go on:\n  [1] first (blocked: no key)\n  [2] second\n  [7] seventh (x) (in progress)"
    )
    reply = ask(model(), HumanMessage("go"), LIST, STORED, says("hm"), nudge)
    assert shape(reply) == [("measure", {"path": "seventh (x)"})]
    closing = ask(model(), HumanMessage("go"), LIST, STORED, says("hm"), nudge, others=False)
    assert shape(closing) == [("todo_update", {"id": 7, "status": "done"})]


@pytest.mark.parametrize(
    "refused",
    [
        ToolMessage("not verified", tool_call_id="u", status="error"),
        ToolMessage("Error: not verified", tool_call_id="u"),
        ToolMessage('{"error": "unknown id"}', tool_call_id="u"),
    ],
)
def test_a_refused_update_leaves_the_item_open(refused: ToolMessage) -> None:
    update = calls(("todo_update", {"id": 1, "status": "done"}, "u"))
    taken = ToolMessage("[1] done, 1 open.", tool_call_id="u")
    history = [HumanMessage("go"), LIST, STORED, update]
    assert shape(ask(model(), *history, refused)) == [("measure", {"path": "first"})]
    assert shape(ask(model(), *history, taken)) == [("measure", {"path": "second"})]


def test_after_three_refused_rounds_it_gives_up_with_a_text() -> None:
    rounds = [
        message
        for key in "abc"
        for message in (
            calls(("todo_write", {"items": ["x"]}, key)),
            ToolMessage("Error: no", tool_call_id=key, status="error"),
        )
    ]
    assert ask(model(), HumanMessage("go"), *rounds[:4]).tool_calls
    assert ask(model(), HumanMessage("go"), *rounds).content == "I cannot go on: my calls are refused."
    assert ask(model(), HumanMessage("go"), *rounds, says("stop"), HumanMessage("again")).tool_calls


def test_without_other_tools_it_closes_item_by_item() -> None:
    reply = ask(model(), HumanMessage("go"), LIST, STORED, others=False)
    assert shape(reply) == [("todo_update", {"id": 1, "status": "done"})]


def test_without_todo_tools_it_makes_one_call_and_ends() -> None:
    store, weak = Store(), model()
    assert walk(agent(weak, store, None), "go") == ["call_model", "run_tools", "call_model"]
    assert [path for path, _ in store.work] == ["the request"]


def test_without_any_tools_it_says_so() -> None:
    reply = model().invoke("go")
    assert (reply.content, reply.tool_calls) == ("Done.", [])


def test_provider_tools_are_passed_over() -> None:
    weak = model().bind_tools([{"type": "web_search_20250305", "name": "web_search"}, WORK])
    assert shape(weak.invoke("go")) == [("measure", {"path": "the request"})]


def test_a_format_is_answered_with_json_that_fits() -> None:
    class Answer(BaseModel):
        """An answer."""

        number: int
        kind: Literal["good", "bad"]

    assert isinstance(model().with_structured_output(Answer).invoke("go"), Answer)
    assert model().bind(response_format={"type": "json_object"}).invoke("go").content == "{}"


# The habits, each certain and alone.


def test_stop_early_says_all_done_over_open_items() -> None:
    store = Store()
    nodes = walk(agent(model(stop_early=1), store, wakes=2), "go")
    assert nodes == ["call_model", "run_tools", *["call_model", "wake"] * 2, "call_model"]
    assert store.statuses == ["pending"] * 3


def test_forget_never_closes_an_item() -> None:
    store, weak = Store(), model(forget=1)
    walk(agent(weak, store, wakes=4), "go")
    assert store.statuses == ["pending"] * 3
    assert len(store.work) >= 5
    assert {name for reply in replies(weak) for name, _ in shape(reply)} == {"todo_write", "measure"}


def test_forget_sometimes_works_on_and_sometimes_stops() -> None:
    measured = calls(("measure", {"path": "first"}, "m"))
    history = [HumanMessage("go"), LIST, STORED, measured, ToolMessage("ok", tool_call_id="m")]
    seen = {str(ask(model(seed, forget=1), *history).text) for seed in range(20)}
    assert seen == {"", "I have finished first."}


def test_double_makes_each_todo_call_twice_with_ids_of_their_own() -> None:
    reply = ask(model(double=1), HumanMessage("go"))
    assert [name for name, _ in shape(reply)] == ["todo_write", "todo_write"]
    assert reply.tool_calls[0]["args"] == reply.tool_calls[1]["args"]
    assert reply.tool_calls[0]["id"] != reply.tool_calls[1]["id"]
    assert len(ask(model(double=1), HumanMessage("go"), LIST, STORED).tool_calls) == 1  # work is no write
    closing = ask(model(double=1), HumanMessage("go"), LIST, STORED, others=False)
    assert shape(closing) == [("todo_update", {"id": 1, "status": "done"})] * 2


def test_repeat_sends_the_previous_reply_with_new_ids() -> None:
    previous = calls(("measure", {"path": "x"}, "m"), malformed_call("todo_write", "{", id="n"), text="again")
    history = [HumanMessage("go"), previous, ToolMessage("ok", tool_call_id="m"), HumanMessage("on")]
    reply = ask(model(repeat=1), *history)
    assert (reply.content, shape(reply)) == ("again", [("measure", {"path": "x"})])
    assert [(call["name"], call["args"]) for call in reply.invalid_tool_calls] == [("todo_write", "{")]
    assert {reply.tool_calls[0]["id"], reply.invalid_tool_calls[0]["id"]}.isdisjoint({"m", "n"})


def test_repeat_repeats_no_line_of_the_graph_and_no_silence() -> None:
    closing = AIMessage("Stopped.", additional_kwargs={"wakeloop": {"kind": "repair"}})
    history = [
        HumanMessage("go"),
        says("mine"),
        HumanMessage("on"),
        closing,
        HumanMessage("on"),
        says(""),
        HumanMessage("?"),
    ]
    assert ask(model(repeat=1), *history).content == "mine"
    assert ask(model(repeat=1), HumanMessage("go")).tool_calls  # nothing to repeat yet


def test_malformed_spoils_the_first_call_in_three_ways() -> None:
    seen = set()
    for seed in range(40):
        reply = ask(model(seed, malformed=1), HumanMessage("go"))
        if reply.invalid_tool_calls:
            (broken,) = reply.invalid_tool_calls
            with pytest.raises(ValueError, match="Expecting"):
                json.loads(broken["args"] or "")
            assert broken["id"]
            seen.add(f"json {broken['name']}")
        else:
            ((name, args),) = shape(reply)
            seen.add(f"{name} {type(args['items']).__name__}")
    assert seen == {"json todo_write", "todo_write_now list", "todo_write dict"}


def test_malformed_leaves_the_other_calls_of_the_reply() -> None:
    reply = ask(model(malformed=1, double=1), HumanMessage("go"))
    assert len(reply.tool_calls) + len(reply.invalid_tool_calls) == 2
    assert ("todo_write", {"items": ["part 1 of 3", "part 2 of 3", "part 3 of 3"]}) in shape(reply)


def replies(weak: UnreliableModel) -> list[AIMessage]:
    return [message for message in weak.requests[-1] if isinstance(message, AIMessage)]


# As a whole.


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    def run(seed: int) -> Any:
        weak = UnreliableModel(seed, stop_early=0.2, forget=0.3, malformed=0.2, double=0.2, repeat=0.1)
        agent(weak, Store()).invoke({"messages": [("user", "go")]}, {"recursion_limit": 500})
        return [
            [(m.type, m.content, getattr(m, "tool_calls", None)) for m in request]
            for request in weak.requests
        ]

    runs = [run(seed) for seed in range(8)]
    assert [run(seed) for seed in range(8)] == runs
    assert all(runs[0] != other for other in runs[1:])


async def test_streamed_and_awaited_it_says_the_same() -> None:
    def bound() -> Any:
        return UnreliableModel(5, malformed=1).bind_tools(parley(Store()))

    plain, awaited = bound().invoke("go"), await bound().ainvoke("go")
    first, *rest = list(bound().stream("go"))
    streamed = sum(rest, first)
    for reply in (awaited, streamed):
        assert (reply.content, reply.tool_calls, reply.invalid_tool_calls) == (
            plain.content,
            plain.tool_calls,
            plain.invalid_tool_calls,
        )


@examples(60)
@given(
    seed=st.integers(0, 10_000),
    vocabulary=st.sampled_from([*VOCABULARIES, None]),
    habits=st.fixed_dictionaries({name: st.sampled_from([0.0, 0.1, 0.4]) for name in CALM}),
)
def test_whatever_its_habits_a_run_ends_and_its_ids_are_its_own(
    seed: int, vocabulary: str | None, habits: dict[str, float]
) -> None:
    store, weak = Store(), UnreliableModel(seed, **habits)
    graph = agent(weak, store, vocabulary)
    said = graph.invoke({"messages": [SystemMessage("rules"), ("user", "go")]}, {"recursion_limit": 900})[
        "messages"
    ]
    assert said[-1].text
    assert not said[-1].tool_calls
    assert prompt_faults(weak.requests) == []
    ids = [
        call["id"]
        for m in said
        if isinstance(m, AIMessage)
        for call in (*m.tool_calls, *m.invalid_tool_calls)
    ]
    assert len(set(ids)) == len(ids)
    if not any(habits.values()):
        assert "pending" not in store.statuses


@pytest.mark.parametrize("habit", list(CALM))
@pytest.mark.parametrize("probability", [-0.1, 1.1])
def test_a_probability_is_from_0_to_1(habit: str, probability: float) -> None:
    with pytest.raises(ValidationError, match=habit):
        UnreliableModel(1, **{habit: probability})


def test_its_habits_can_be_read() -> None:
    weak = UnreliableModel(3, forget=0.25)
    assert (weak.seed, weak.forget, weak.stop_early, weak.items) == (3, 0.25, 0.1, 3)


# Arguments from a schema.


class Inner(BaseModel):
    name: str = Field(min_length=30)
    next: "Inner | None" = None


class Everything(BaseModel):
    text: str = Field(max_length=4)
    day: str = Field(json_schema_extra={"format": "date"})
    size: int = Field(ge=3, le=5)
    low: int = Field(lt=-2)
    odd: int = Field(gt=10, multiple_of=7)
    ratio: float = Field(gt=0, lt=1)
    price: float = Field(ge=2.5)
    flag: bool
    kind: Literal["a", "b"]
    one: Literal["only"]
    maybe: int | None
    nothing: None
    many: list[Inner] = Field(min_length=2)
    free: list[str]
    table: dict[str, int]
    either: Inner | int
    absent: str = "default"


@given(st.integers())
def test_an_example_fits_its_schema(seed: int) -> None:
    made = make_example(Everything.model_json_schema(), Random(seed), "some text")
    assert "absent" not in made
    assert len(Everything.model_validate(made, strict=True).many) == 2
    assert (made["text"], made["day"], made["one"], made["nothing"]) == ("some", "2024-02-29", "only", None)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, "t"),
        ({"properties": {}}, {}),
        ({"type": ["null", "string"]}, "t"),
        ({"type": "null"}, None),
        ({"type": "array", "minItems": 0}, []),
        (
            {"allOf": [{"required": ["a"]}, {"required": ["b"]}], "required": ["c"]},
            {"a": "t", "b": "t", "c": "t"},
        ),
        ({"allOf": [{"enum": ["x"]}], "default": "y"}, "x"),
        ({"oneOf": [{"type": "null"}, {"const": 4}]}, 4),
        ({"type": "object", "required": ["unknown"]}, {"unknown": "t"}),
        ({"type": "string", "minLength": 3}, "t.."),
    ],
)
def test_schemas_by_hand(schema: dict[str, Any], value: Any) -> None:
    assert make_example(schema, Random(1), "t") == value


def test_a_schema_that_needs_itself_ends() -> None:
    schema = {
        "$ref": "#/$defs/A",
        "$defs": {"A": {"properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]}},
    }
    made = make_example(schema, Random(1), "t")
    assert set(made) == {"a"}
    assert str(made).endswith("None" + "}" * str(made).count("{"))
