"""WeakModel as the kit gives it: without a job it makes one up from the tools that are bound."""

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from levels import examples
from pydantic import BaseModel, ValidationError
from todo_graphs import VOCABULARIES, Store, agent, parley

from wakeloop.testing import Knobs, WeakModel, calls, prompt_faults, says, walk, wire_faults

HABITS = ("stop", "forget", "malformed", "wrong_tool", "wrong_args", "double")
LIST = calls(("todo_write", {"items": ["first", "second"]}, "w"))
STORED = ToolMessage("Stored 2 items:\n  [1] first\n  [2] second", tool_call_id="w")
WORK = {
    "type": "function",
    "function": {
        "name": "measure",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}


def model(seed: int = 1, parts: int = 3, **knobs: Any) -> WeakModel:
    return WeakModel(seed=seed, parts=parts, knobs=Knobs(**knobs))


def ask(weak: WeakModel, *messages: Any) -> AIMessage:
    return weak.bind_tools([*parley(Store()), WORK]).invoke(list(messages))


def shape(reply: AIMessage) -> list[tuple[str, Any]]:
    return [(call["name"], call["args"]) for call in reply.tool_calls]


@pytest.mark.parametrize("vocabulary", list(VOCABULARIES))
@pytest.mark.parametrize("parts", [3, 5])
def test_without_habits_it_does_the_job_in_every_vocabulary(vocabulary: str, parts: int) -> None:
    store, weak = Store(), model(parts=parts)
    nodes = walk(agent(weak, store, vocabulary), "do it")
    assert nodes == [*["call_model", "run_tools"] * (2 * parts + 1), "call_model"]  # a plan, work and close
    assert store.statuses == ["completed"] * parts
    assert [path for path, _ in store.work] == [f"part {number} of {parts}" for number in range(1, parts + 1)]
    assert wire_faults(weak.requests) == []


def test_a_second_request_gets_items_of_its_own() -> None:
    store = Store()
    graph = agent(model(), store)
    state = graph.invoke({"messages": [("user", "do it")]})
    state = graph.invoke({"messages": [*state["messages"], ("user", "and this")]})
    assert store.statuses == ["completed"] * 6
    assert [row["content"] for row in store.rows][3:] == [f"request 2, part {n} of 3" for n in (1, 2, 3)]


def test_a_message_with_a_mark_of_the_graph_is_no_request() -> None:
    marked = HumanMessage("Close.", additional_kwargs={"wakeloop": {"kind": "guard"}})
    for message, name in ((marked, "measure"), (HumanMessage("Close."), "measure")):
        assert shape(ask(model(), HumanMessage("go"), LIST, STORED, says("hm"), message))[0][0] == name
    assert ask(model(list_from=9, parts=1), HumanMessage("go"), *measured("part 1 of 1"), marked).text
    again = ask(
        model(list_from=9, parts=1), HumanMessage("go"), *measured("part 1 of 1"), HumanMessage("more")
    )
    assert shape(again) == [("measure", {"path": "request 2, part 1 of 1"})]


def measured(path: str) -> list[Any]:
    """A part's call, its result, and a stop."""
    return [calls(("measure", {"path": path}, "m")), ToolMessage("ok", tool_call_id="m"), says("All done.")]


def test_a_list_of_somebody_else_is_the_job() -> None:
    nudge = HumanMessage(
        "Continue:\n  [1] first (blocked: no key)\n  [2] second\n  [7] seventh (x) (in progress)"
    )
    assert shape(ask(model(), HumanMessage("go"), LIST, STORED, says("hm"), nudge)) == [
        ("measure", {"path": "second"})
    ]


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


def test_without_todo_tools_it_works_and_ends() -> None:
    store, weak = Store(), model(parts=1)
    assert walk(agent(weak, store, None), "go") == ["call_model", "run_tools", "call_model"]
    assert [path for path, _ in store.work] == ["part 1 of 1"]


def test_without_tools_there_is_nothing_to_do() -> None:
    reply = model().invoke("go")
    assert (reply.content, reply.tool_calls) == ("All done.", [])


def test_provider_tools_are_passed_over() -> None:
    weak = model().bind_tools([{"type": "web_search_preview"}, WORK])
    assert shape(weak.invoke("go")) == [("measure", {"path": "part 1 of 3"})]


def test_a_tool_without_arguments_is_called_once_for_each_part() -> None:
    ping = {
        "type": "function",
        "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}},
    }
    bound = model(parts=2).bind_tools([ping])
    history: list[Any] = [HumanMessage("go")]
    for _ in range(3):
        history.append(bound.invoke(history))
        history += [ToolMessage("pong", tool_call_id=call["id"]) for call in history[-1].tool_calls]
    assert [len(m.tool_calls) for m in history if isinstance(m, AIMessage)] == [1, 1, 0]


def test_a_format_is_answered_with_json_that_fits() -> None:
    class Answer(BaseModel):
        """An answer."""

        number: int
        kind: Literal["good", "bad"]

    assert isinstance(model().with_structured_output(Answer).invoke("go"), Answer)
    assert model().bind(response_format={"type": "json_object"}).invoke("go").content == "{}"


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    def run(seed: int) -> Any:
        weak = model(seed, stop=0.2, forget=0.3, malformed=0.2, double=0.2, echo=0.1)
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
        return model(5, malformed=1).bind_tools([*parley(Store()), WORK])

    plain, awaited = bound().invoke("go"), await bound().ainvoke("go")
    first, *rest = list(bound().stream("go"))
    assert plain.invalid_tool_calls
    for reply in (awaited, sum(rest, first)):
        assert (reply.content, reply.tool_calls, reply.invalid_tool_calls) == (
            plain.content,
            plain.tool_calls,
            plain.invalid_tool_calls,
        )


@examples(60)
@given(
    seed=st.integers(0, 10_000),
    vocabulary=st.sampled_from([*VOCABULARIES, None]),
    knobs=st.fixed_dictionaries({name: st.sampled_from([0.0, 0.1, 0.4]) for name in HABITS}),
)
def test_whatever_its_habits_a_run_ends_and_its_ids_are_its_own(
    seed: int, vocabulary: str | None, knobs: dict[str, float]
) -> None:
    store, weak = Store(), model(seed, **knobs)
    graph = agent(weak, store, vocabulary)
    asked = {"messages": [SystemMessage("rules"), ("user", "go")]}
    said = graph.invoke(asked, {"recursion_limit": 900})["messages"]
    assert said[-1].text
    assert not said[-1].tool_calls
    assert prompt_faults(weak.requests) == []
    ids = []
    for message in said:
        if isinstance(message, AIMessage):
            ids += [call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)]
    assert len(set(ids)) == len(ids)
    if not any(knobs.values()):
        assert "pending" not in store.statuses


def test_parts_and_unknown_fields_are_checked() -> None:
    for wrong in ({"parts": 0}, {"stops": 0.1}):
        with pytest.raises(ValidationError):
            model(**wrong)
