"""The cases of the todo calls and of strict servers, for every preset."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from rig import Rig, results
from shared_tools import ask

from wakeloop import create_todo_agent, preset, session_of
from wakeloop.presets import PRESETS
from wakeloop.testing import Knobs, ScriptedModel, WeakModel, calls, prompt_faults, wire_faults

THREAD: Any = {"configurable": {"thread_id": "thread"}}


@dataclass(frozen=True)
class Whole:
    """How a dialect that sends the whole list is spoken."""

    preset: str
    tool: str
    key: str
    item: Callable[[int, str, Any], dict[str, Any]]

    def args(self, *pairs: tuple[str, Any]) -> dict[str, Any]:
        return {self.key: [self.item(place, *pair) for place, pair in enumerate(pairs, 1)]}

    def call(self, *pairs: tuple[str, Any]) -> tuple[str, dict[str, Any]]:
        return self.tool, self.args(*pairs)


SPOKEN = [
    Whole("lesson", "todo", "items", lambda n, text, status: {"id": str(n), "text": text, "status": status}),
    Whole("cubepi", "write_todos", "todos", lambda _, text, status: {"content": text, "status": status}),
]


@pytest.fixture(params=SPOKEN, ids=lambda spoken: spoken.preset)
def spoken(request: pytest.FixtureRequest) -> Whole:
    return request.param  # type: ignore[no-any-return]


def contents(todos: list[Any]) -> list[tuple[str, str]]:
    return [(todo["content"], todo["status"]) for todo in todos]


# -- C01 to C06 ------------------------------------------------------------------------------------------


def test_c01_two_writes_in_one_reply(quick: Rig, spoken: Whole) -> None:
    ran: list[int] = []

    @tool
    def side() -> str:
        """Do something else."""
        ran.append(1)
        return "done"

    first = [("a", "in_progress"), ("b", "pending")]
    twice = calls(
        spoken.call(("a", "completed"), ("b", "in_progress")), ("side", {}), spoken.call(("c", "in_progress"))
    )
    last = calls(spoken.call(("a", "completed"), ("b", "completed")))
    quick.build(
        calls(spoken.call(*first)), twice, last, "Done.", tools=[side], settings=preset(spoken.preset)
    )
    quick.run("go")
    quick.model.assert_done()
    assert ran == [1]
    assert [m.status for m in results(quick.messages) if m.name == spoken.tool] == [
        "success",
        "error",
        "error",
        "success",
    ]
    assert contents(quick.todos) == [("a", "completed"), ("b", "completed")]
    assert quick.ending == ("dormant", "settled", 0)


@pytest.mark.parametrize("sent", ["text", "repr", "strings", "nonsense", "null", "object", "nothing"])
def test_c02_c04_the_list_in_another_shape(quick: Rig, spoken: Whole, sent: str) -> None:
    good = spoken.args(("a", "in_progress"))[spoken.key]
    args: dict[str, Any] = {
        "text": {spoken.key: json.dumps(good)},
        "repr": {spoken.key: repr(good)},
        "strings": {spoken.key: ["a", "b"]},
        "nonsense": {spoken.key: "not json"},
        "null": {spoken.key: None},
        "object": {spoken.key: good[0]},
        "nothing": {},
    }[sent]
    finish = calls(spoken.call(("a", "completed"))) if sent == "text" else "I give up."
    tail = ["Done."] if sent == "text" else []
    quick.build(calls((spoken.tool, args)), finish, *tail, settings=preset(spoken.preset))
    quick.run("go")
    quick.model.assert_done()
    first = results(quick.messages)[0]
    assert first.status == ("success" if sent == "text" else "error")
    assert len(str(first.content)) <= 1000
    assert contents(quick.todos) == ([("a", "completed")] if sent == "text" else [])
    assert quick.ending == ("dormant", "settled" if sent == "text" else "answered", 0)


def test_c03_a_status_outside_the_enum(quick: Rig, spoken: Whole) -> None:
    wrong = calls(spoken.call(("a", "pending"), ("b", "failed"), ("c", "done")))
    right = calls(spoken.call(("a", "completed"), ("b", "completed"), ("c", "completed")))
    quick.build(wrong, right, "Done.", settings=preset(spoken.preset))
    quick.run("go")
    quick.model.assert_done()
    error, stored = results(quick.messages)
    assert (error.status, stored.status) == ("error", "success")
    assert "'failed'" in str(error.content)
    assert "item 2: status" in str(error.content)
    assert all(word in str(error.content) for word in ("pending", "in_progress", "completed"))
    assert [status for _, status in contents(quick.todos)] == ["completed"] * 3


def test_c05_blank_and_duplicate_items(quick: Rig, spoken: Whole) -> None:
    blank = calls(spoken.call(("x", "in_progress"), ("x", "pending"), ("  ", "pending")))
    twice = calls(spoken.call(("x", "in_progress"), ("x", "pending")))
    done = calls(spoken.call(("x", "completed"), ("x", "completed")))
    quick.build(blank, twice, done, "Done.", settings=preset(spoken.preset))
    quick.run("go")
    quick.model.assert_done()
    error, stored, _ = results(quick.messages)
    assert error.status == "error"
    assert "item 3" in str(error.content)
    assert stored.status == "success"
    assert contents(quick.todos) == [("x", "completed"), ("x", "completed")]


def test_c06_a_result_never_says_that_the_work_is_finished(quick: Rig, spoken: Whole) -> None:
    write = calls(
        spoken.call(("a", "completed"), ("b", "completed"), ("c", "completed")), text="The answer is 42."
    )
    quick.build(write, "", settings=preset(spoken.preset))
    quick.run("go")
    (result,) = results(quick.messages)
    assert not any(
        word in str(result.content).lower() for word in ("work is finished", "all done", "you are done")
    )
    assert quick.ending == ("dormant", "settled", 0)


# -- C20: the defaults of every preset, over many turns --------------------------------------------------


@tool
def look(place: str) -> str:
    """Look at a place."""
    if "3" in place:
        raise ValueError("nothing there")
    return f"seen {place}"


def some_turns(agent: Any) -> list[Any]:
    """Play four activations; a question is answered, or followed by a plain message."""
    ends: list[Any] = []
    for turn in range(4):
        given: Any = {"messages": [SystemMessage("Be terse."), HumanMessage(f"turn {turn}")]}
        agent.invoke(given, THREAD)
        for answer in range(turn):  # the first plain message meets an open question, if there is one
            if agent.get_state(THREAD).interrupts:
                agent.invoke(Command(resume=f"answer {answer}"), THREAD)
        ends.append(session_of(agent.get_state(THREAD)))
    return ends


@pytest.mark.covering("name", "seed")
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("seed", range(6))
def test_c20_weak_models_over_many_turns(name: str, seed: int) -> None:
    habits = dict.fromkeys(("stop", "forget", "malformed", "wrong_tool", "wrong_args", "double", "echo"), 0.2)
    model = WeakModel(seed=seed, knobs=Knobs.model_validate(habits))
    settings = preset(name).model_copy(update={"auto_continue": True})
    agent = create_todo_agent(model, [look, ask], settings=settings, checkpointer=InMemorySaver())
    ends = some_turns(agent)
    assert wire_faults(model.requests) == []
    assert prompt_faults(model.requests) == []
    values = agent.get_state(THREAD).values
    ids = [message.id for message in values["messages"]]
    assert len(ids) == len(set(ids))
    assert all(end["state"] in ("idle", "dormant", "waiting") for end in ends)
    assert all(end["wakes"] <= settings.max_wake_cycles for end in ends)
    keys = [todo["id"] for todo in values["todos"]]
    assert len(keys) == len(set(map(str, keys)))


@pytest.mark.parametrize("name", PRESETS)
def test_c20_an_empty_list_asks_once(name: str) -> None:
    model = ScriptedModel("hi")
    out = create_todo_agent(model, settings=name).invoke({"messages": [("user", "hello")]})
    assert len(model.requests) == 1
    assert out["todo_session"]["reason"] == "answered"
