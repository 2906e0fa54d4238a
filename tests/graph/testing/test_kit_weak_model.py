"""WeakModel as users of the kit get it: without a job it invents one from the bound tools."""

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from levels import examples
from pydantic import BaseModel, ValidationError

from wakeloop import create_todo_agent, preset
from wakeloop.dialects import get_dialect
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


PRESETS = ("agentparley", "loki", "lesson", "cubepi")  # one for each vocabulary
TODO_TOOLS = get_dialect("parley").tools


def agent(weak: WeakModel, work: list[str], name: str = "agentparley", *, lists: bool = True) -> Any:
    """Build an agent with its own tool, which records the parts; without lists it has no todo tools."""

    def measure(path: str, depth: int) -> str:
        """Work."""
        work.append(path)
        return "  [99] a line that looks like an item"

    varied = preset(name if lists else "loki").model_copy(update={"auto_continue": lists})
    return create_todo_agent(weak, [measure], settings=varied)


def model(seed: int = 1, parts: int = 3, **knobs: Any) -> WeakModel:
    return WeakModel(seed=seed, parts=parts, knobs=Knobs(**knobs))


def ask(weak: WeakModel, *messages: Any) -> AIMessage:
    return weak.bind_tools([*TODO_TOOLS, WORK]).invoke(list(messages))


def shape(reply: AIMessage) -> list[tuple[str, Any]]:
    return [(call["name"], call["args"]) for call in reply.tool_calls]


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("parts", [3, 5])
def test_without_habits_it_does_the_job_in_every_vocabulary(name: str, parts: int) -> None:
    work: list[str] = []
    weak = model(parts=parts)
    state = agent(weak, work, name).invoke({"messages": [("user", "do it")]})
    assert len(weak.requests) == 2 * parts + 2  # a plan, work and close, the end
    assert [todo["status"] for todo in state["todos"]] == ["completed"] * parts
    assert work == [f"part {number} of {parts}" for number in range(1, parts + 1)]
    assert wire_faults(weak.requests) == []


def test_a_second_request_gets_its_own_items() -> None:
    graph = agent(model(), [])
    state = graph.invoke({"messages": [("user", "do it")]})
    again = {"messages": [*state["messages"], ("user", "and this")], "todos": state["todos"]}
    todos = graph.invoke(again)["todos"]
    assert [todo["status"] for todo in todos] == ["completed"] * 6
    assert [todo["content"] for todo in todos][3:] == [f"request 2, part {n} of 3" for n in (1, 2, 3)]


def test_a_message_marked_by_the_graph_is_not_a_request() -> None:
    marked = HumanMessage("Close.", additional_kwargs={"wakeloop": {"kind": "guard"}})
    for message, name in ((marked, "measure"), (HumanMessage("Close."), "measure")):
        assert shape(ask(model(), HumanMessage("go"), LIST, STORED, says("hm"), message))[0][0] == name
    assert ask(model(list_from=9, parts=1), HumanMessage("go"), *measured("part 1 of 1"), marked).text
    again = ask(
        model(list_from=9, parts=1), HumanMessage("go"), *measured("part 1 of 1"), HumanMessage("more")
    )
    assert shape(again) == [("measure", {"path": "request 2, part 1 of 1"})]


def measured(path: str) -> list[Any]:
    """Return a part's call, its result, and a stop."""
    return [calls(("measure", {"path": path}, "m")), ToolMessage("ok", tool_call_id="m"), says("All done.")]


def test_somebody_elses_list_is_the_job() -> None:
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
    work: list[str] = []
    assert "run_tools" in walk(agent(model(parts=1), work, lists=False), "go")
    assert work == ["part 1 of 1"]


def test_without_tools_there_is_nothing_to_do() -> None:
    reply = model().invoke("go")
    assert (reply.content, reply.tool_calls) == ("All done.", [])


def test_provider_tools_are_skipped() -> None:
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
        agent(weak, []).invoke({"messages": [("user", "go")]}, {"recursion_limit": 500})
        return [
            [(m.type, m.content, getattr(m, "tool_calls", None)) for m in request]
            for request in weak.requests
        ]

    runs = [run(seed) for seed in range(8)]
    assert [run(seed) for seed in range(8)] == runs
    assert all(runs[0] != other for other in runs[1:])


async def test_streamed_and_awaited_it_says_the_same() -> None:
    def bound() -> Any:
        return model(5, malformed=1).bind_tools([*TODO_TOOLS, WORK])

    plain, awaited = bound().invoke("go"), await bound().ainvoke("go")
    first, *rest = list(bound().stream("go"))
    assert plain.invalid_tool_calls
    for reply in (awaited, sum(rest, first)):
        assert (reply.content, reply.tool_calls, reply.invalid_tool_calls) == (
            plain.content,
            plain.tool_calls,
            plain.invalid_tool_calls,
        )


class Said(BaseCallbackHandler):
    """Records the ids of the calls as the model makes them."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def on_llm_end(self, response: Any, **_: Any) -> None:
        reply = response.generations[0][0].message
        self.ids += [call["id"] for call in (*reply.tool_calls, *reply.invalid_tool_calls)]


@pytest.mark.slow
@examples(60)
@given(
    seed=st.integers(0, 10_000),
    name=st.sampled_from([*PRESETS, None]),
    knobs=st.fixed_dictionaries({name: st.sampled_from([0.0, 0.1, 0.4]) for name in HABITS}),
)
def test_whatever_its_habits_a_run_ends_and_its_ids_are_unique(
    seed: int, name: str | None, knobs: dict[str, float]
) -> None:
    weak, said = model(seed, **knobs), Said()
    graph = agent(weak, [], name or "loki", lists=name is not None)
    asked = {"messages": [SystemMessage("rules"), ("user", "go")]}
    state = graph.invoke(asked, {"recursion_limit": 900, "callbacks": [said]})
    assert state["todo_session"]["state"] in ("idle", "dormant")
    assert prompt_faults(weak.requests) == []
    assert len(set(said.ids)) == len(said.ids)
    if not any(knobs.values()):
        assert "pending" not in [todo["status"] for todo in state["todos"]]


def test_parts_and_unknown_fields_are_checked() -> None:
    for wrong in ({"parts": 0}, {"stops": 0.1}):
        with pytest.raises(ValidationError):
            model(**wrong)
