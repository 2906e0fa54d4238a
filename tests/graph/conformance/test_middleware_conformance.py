"""The middleware against the graph: one weak model, the same requests, sessions, lists, events."""

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import LoopSettings, create_todo_agent, preset
from wakeloop.middleware import ChangesState, WakeLoopMiddleware
from wakeloop.presets import PRESETS
from wakeloop.testing import Knobs, ScriptedModel, WeakModel, calls, says

THREAD: Any = {"configurable": {"thread_id": "thread"}}
PROMPT = "You keep house."
WORDS = ("Tidy up the house.", "Now the garden.")
HABITS = Knobs(stop=0.25, forget=0.2, malformed=0.1, wrong_tool=0.1, wrong_args=0.1, double=0.15, echo=0.15)


@tool
def sweep(place: str) -> str:
    """Sweep a place."""
    return f"swept {place}"


def fail(place: str) -> str:
    """Repair a place."""
    raise ToolException(f"nothing to mend at {place}")


mend = tool("mend")(fail)
mend.handle_tool_error = True  # type: ignore[attr-defined]
TOOLS = [sweep, mend]
for one in TOOLS:  # otherwise each has its own words for arguments that do not fit
    one.handle_validation_error = "the arguments do not fit"


def shorter(settings: str) -> LoopSettings:
    """A preset with few wakes: what comes after the second is like the second."""
    own = preset(settings)
    return own.model_copy(update={"max_wake_cycles": min(own.max_wake_cycles, 2), "earn_wakes": 0})


def graph(model: Any, settings: Any) -> Any:
    return create_todo_agent(model, TOOLS, PROMPT, settings, checkpointer=InMemorySaver())


def agent(model: Any, settings: Any, **more: Any) -> Any:
    layer = WakeLoopMiddleware(settings=settings)
    return create_agent(
        model, TOOLS, system_prompt=PROMPT, middleware=[layer], checkpointer=InMemorySaver(), **more
    )


def story(made: Any, model: WeakModel, door: str = "sync") -> list[Any]:
    """Return everything that a run shows, with ids in the order of their appearance."""
    told: list[Any] = []
    for words in WORDS:
        events = run(made, {"messages": [("user", words)]}, door)
        values = made.get_state(THREAD).values
        told += [timeless(event) for event in events]
        told += [timeless(values["todo_session"]), list(values["todos"])]
    names: dict[str, int] = {}
    for request, tools in zip(model.requests, model.bound, strict=True):
        told.append([comparable(message, names) for message in request] + [tools])
    return told


def run(made: Any, given: Any, door: str) -> list[Any]:
    if door == "sync":
        return [*made.stream(given, THREAD, stream_mode="custom")]

    async def all_of_it() -> list[Any]:
        return [event async for event in made.astream(given, THREAD, stream_mode="custom")]

    return asyncio.run(all_of_it())


def timeless(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event or a session without its time and seconds."""
    told = {key: timeless(value) if isinstance(value, dict) else value for key, value in event.items()}
    return told | {key: 0.0 for key in ("at", "seconds") if key in told}


def comparable(message: BaseMessage, names: dict[str, int]) -> Any:
    """Return a message as the model reads it."""
    text = message.text if isinstance(message, SystemMessage) else message.content
    made = [
        (call["name"], call["args"], names.setdefault(call["id"], len(names)))
        for call in getattr(message, "tool_calls", ())
    ]
    key = getattr(message, "tool_call_id", None)
    return (
        message.type, text, made, getattr(message, "status", None),
        message.name, key if key is None else names.setdefault(key, len(names)),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("settings", PRESETS)
@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 100), marks=pytest.mark.large)], ids=str)
def test_the_middleware_does_as_the_graph_does(settings: str, seeds: range) -> None:
    """Odd and even seeds use different doors: every rule is the same in both."""
    few = shorter(settings)
    for seed in seeds:
        model = WeakModel(seed=seed, parts=2, knobs=HABITS)
        expected = story(graph(model, few), model)
        again, door = WeakModel(seed=seed, parts=2, knobs=HABITS), ("sync", "async")[seed % 2]
        assert story(agent(again, few), again, door) == expected, (seed, door)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_where_changes_are_stored(seed: int) -> None:
    model, again = WeakModel(seed=seed, knobs=HABITS), WeakModel(seed=seed, knobs=HABITS)
    expected = story(graph(model, "langchain"), model)
    assert story(agent(again, "langchain", state_schema=ChangesState), again) == expected


def test_results_are_in_the_order_of_the_calls() -> None:
    """A faulty call is known before the tools run: its error is stored before their results."""
    mixed = calls(("sweep", {"place": "a"}), ("nothing", {}), ("todo_list", {}), ("sweep", {"place": "b"}))
    told = []
    for made in (graph, agent):
        model = ScriptedModel(mixed, says("bye"))
        made(model, "wakeloop").invoke({"messages": [("user", "go")]}, THREAD)
        told.append([(message.type, message.name) for message in model.requests[1][1:]])
    expected = [
        ("human", None),
        ("ai", None),
        *(("tool", n) for n in ("todo_list", "sweep", "nothing", "sweep")),
    ]
    assert told == [expected, expected]
