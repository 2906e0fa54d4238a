"""Summaries and trims in every dialect: exact requests, a replaced history."""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    RemoveMessage,
    SystemMessage,
    convert_to_openai_messages,
)
from langchain_core.messages.utils import trim_messages
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langmem.short_term import SummarizationNode
from langmem.short_term.summarization import RunningSummary

from wakeloop import SettingsError, TodoState, create_todo_agent, preset
from wakeloop.testing import ScriptedModel, calls, prompt_faults, says, wire_faults

ITEMS = 8
PRESETS = ("wakeloop", "agentparley", "loki", "lesson", "cubepi", "cubepi-strict")
SYSTEM = "You dig with care."
STRICT = JsonPlusSerializer(allowed_msgpack_modules=[RunningSummary])
THREAD: Any = {"configurable": {"thread_id": "thread"}}


class Summarised(TodoState):
    """A thread with room for langmem's notes."""

    context: dict[str, Any]


def dig(place: int) -> str:
    """Dig at a place."""
    return f"dug at {place}: " + "earth " * 30


# -- the job, in the words of each dialect ---------------------------------------------------------------

Call = tuple[str, dict[str, Any]]


def whole(done: int) -> list[tuple[str, str, str]]:
    """Return all items as id, text, status, with the first `done` ones done and the next in progress."""
    status = ["completed"] * done + ["in_progress"] + ["pending"] * ITEMS
    return [(str(n), f"dig at {n}", status[n - 1]) for n in range(1, ITEMS + 1)]


def checklist(done: int) -> list[Call]:
    rows = [{"id": key, "text": text, "status": status} for key, text, status in whole(done)]
    return [("todo", {"items": rows})]


def write_todos(done: int) -> list[Call]:
    rows = [{"content": text, "status": status} for _, text, status in whole(done)]
    return [("write_todos", {"todos": rows})]


def parley(done: int) -> list[Call]:
    if done:
        return [("todo_update", {"id": done, "status": "done"})]
    return [("todo_write", {"items": [f"dig at {n}" for n in range(1, ITEMS + 1)]})]


def loki(done: int) -> list[Call]:
    if done:
        return [("todo__done", {"id": done})]
    return [
        ("todo__init", {"goal": "dig"}),
        *(("todo__add", {"task": f"dig at {n}"}) for n in range(1, ITEMS + 1)),
    ]


WRITES: Mapping[str, Callable[[int], list[Call]]] = {
    "parley": parley,
    "loki": loki,
    "checklist": checklist,
    "write_todos": write_todos,
}


def job(name: str) -> Iterator[AIMessage]:
    """Plan; dig and close an item, stop too early after every second one, then say goodbye."""
    write = WRITES[preset(name).dialect]
    yield calls(*write(0))
    for n in range(1, ITEMS + 1):
        yield calls(("dig", {"place": n}), ("dig", {"place": n + 100}))
        yield calls(*write(n))
        if n % 2 == 0 and n < ITEMS:
            yield says(f"Number {n} is dug.")
    yield says("All is dug.")


# -- hooks -----------------------------------------------------------------------------------------------


def tokens(messages: Iterable[Any]) -> int:
    """Count one token per four characters; ids do not count, because their lengths vary between runs."""
    texts = (f"{m.text}{[call['args'] for call in getattr(m, 'tool_calls', ())]}" for m in messages)
    return sum(len(text) // 4 + 3 for text in texts)


def summarising(model: ScriptedModel, key: str = "llm_input_messages") -> SummarizationNode:
    return SummarizationNode(
        model=model,
        max_tokens=900,
        max_summary_tokens=64,
        token_counter=tokens,
        output_messages_key=key,
    )


def trimming(state: Any) -> dict[str, Any]:
    return {"llm_input_messages": newest(state["messages"])}


def forgetting(state: Any) -> dict[str, Any]:
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *newest(state["messages"])]}


def newest(messages: list[AnyMessage]) -> list[BaseMessage]:
    """Return the newest messages, wherever that cuts: results may have lost their calls."""
    return trim_messages(messages, max_tokens=300, token_counter=tokens, strategy="last")


def summaries() -> ScriptedModel:
    """A summariser that always says the same."""
    return ScriptedModel(*[says("Digging goes on.")] * 20)


def built(name: str, model: ScriptedModel, hook: Any, saver: Any = None) -> Any:
    settings = preset(name).model_copy(update={"auto_continue": True, "max_wake_cycles": 10})
    return create_todo_agent(
        model,
        [dig],
        system_prompt=SYSTEM,
        settings=settings,
        state_schema=Summarised,
        pre_model_hook=hook,
        checkpointer=saver or InMemorySaver(serde=STRICT),
    )


COUNTERS = ("wake_cycles", "idle_wakes", "todo_stale_iterations", "todo_guard_retries", "peak", "next_id")


def kept(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must be the same however the history was changed."""
    ledger = values["todo_ledger"]
    return {
        "session": {**values["todo_session"], "spent": None},
        "todos": values["todos"],
        "goal": values["todo_goal"],
        **{key: ledger.get(key) for key in COUNTERS},
    }


def play(name: str, hook: Any, door: str = "invoke") -> tuple[ScriptedModel, Mapping[str, Any]]:
    model = ScriptedModel(*job(name))
    agent, given = built(name, model, hook), {"messages": [("user", "Dig.")]}
    _ = agent.invoke(given, THREAD) if door == "invoke" else asyncio.run(agent.ainvoke(given, THREAD))
    model.assert_done()
    return model, agent.get_state(THREAD).values


def wire(request: list[BaseMessage]) -> str:
    """Return a request as it is sent, with ids of one length."""
    sent = convert_to_openai_messages(request)
    return re.sub(r'"call_\d+"', '"call_id"', json.dumps(sent, ensure_ascii=False))


def check(requests: list[list[BaseMessage]]) -> None:
    """Check for one static system prompt and a legal wire."""
    assert wire_faults(requests) == []
    assert {request[0].type for request in requests} == {"system"}
    assert len({request[0].text for request in requests}) == 1
    assert all(message.type != "system" for request in requests for message in request[1:])


def unseen(name: str, requests: list[list[BaseMessage]]) -> list[tuple[int, int]]:
    """Return the requests that lack an item that is open at that time, each with that item."""
    missing: list[tuple[int, int]] = []
    closed = -1  # no plan yet
    for number, (request, reply) in enumerate(zip(requests, job(name), strict=True), 1):
        sent = wire(request)
        items = range(closed + 1, ITEMS + 1) if closed >= 0 else ()
        missing += [(number, item) for item in items if f"dig at {item}" not in sent]
        closed += any(call["name"] != "dig" for call in reply.tool_calls)
    return missing


@pytest.fixture(scope="module")
def plain() -> Mapping[str, tuple[int, dict[str, Any]]]:
    """The same job without a hook, by preset: requests and final state."""
    played = {name: play(name, None) for name in PRESETS}
    return {name: (len(model.requests), kept(values)) for name, (model, values) in played.items()}


HOOKS: Mapping[str, Callable[[ScriptedModel], Any]] = {
    "summary": summarising,
    "summary for good": lambda model: summarising(model, "messages"),
    "trim": lambda model: trimming,
    "trim for good": lambda model: forgetting,
}


# Summaries, requests that do not begin with the one before, characters of the longest request after its
# system prompt: the same whether a hook changes the thread or only its requests.
FIGURES: Mapping[tuple[str, str], tuple[int, int, int]] = {
    ("wakeloop", "summary"): (1, 1, 5_739),
    ("wakeloop", "trim"): (0, 10, 2_296),
    ("agentparley", "summary"): (1, 1, 5_783),
    ("agentparley", "trim"): (0, 10, 2_292),
    ("loki", "summary"): (1, 1, 7_332),
    ("loki", "trim"): (0, 14, 3_055),
    ("lesson", "summary"): (2, 2, 5_523),
    ("lesson", "trim"): (0, 18, 1_745),
    ("cubepi", "summary"): (3, 3, 5_349),
    ("cubepi", "trim"): (0, 16, 1_480),
    ("cubepi-strict", "summary"): (3, 3, 5_349),
    ("cubepi-strict", "trim"): (0, 16, 1_480),
}


@pytest.mark.slow
@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("name", PRESETS)
def test_the_job_is_the_same_however_the_history_was_changed(
    name: str, hook: str, plain: Mapping[str, tuple[int, dict[str, Any]]]
) -> None:
    summariser = summaries()
    kind = hook.removesuffix(" for good")
    model, values = play(name, HOOKS[hook](summariser), "invoke" if hook == kind else "ainvoke")
    assert (len(model.requests), kept(values)) == plain[name]
    check(model.requests)
    assert unseen(name, model.requests) == []
    longest = max(len(wire(request[1:])) for request in model.requests)
    assert (len(summariser.requests), len(prompt_faults(model.requests)), longest) == FIGURES[name, kind]


# -- what a hook writes is not part of the system prompt -------------------------------------------------


@pytest.mark.parametrize("given", [SystemMessage("In short: much."), ("system", "In short: much.")])
def test_a_system_message_that_a_hook_stored_is_sent_as_a_user_message(given: Any) -> None:
    """Even after later requests and activations without a change by the hook, next to the caller's own."""
    told: list[int] = []

    def once(state: Any) -> dict[str, Any]:
        told.append(len(state["messages"]))
        own, *_ = state["messages"]
        gone = RemoveMessage(REMOVE_ALL_MESSAGES)
        return {"messages": [gone, own, given, *state["messages"][-1:]]} if len(told) == 2 else {}

    model = ScriptedModel("one", "two", "three", "four")
    agent = built("wakeloop", model, once)
    agent.invoke({"messages": [("system", "Dig deep."), ("user", "Dig.")]}, THREAD)
    for _ in range(3):
        agent.invoke({"messages": [("user", "And?")]}, THREAD)
    check(model.requests)
    assert model.requests[0][0].text.startswith("You dig with care.\n\nDig deep.\n\n")
    assert [[m.text for m in request[1:]] for request in model.requests] == [
        ["Dig."],
        ["In short: much.", "And?"],
        ["In short: much.", "And?", "two", "And?"],
        ["In short: much.", "And?", "two", "And?", "three", "And?"],
    ]
    assert [m.type for m in agent.get_state(THREAD).values["messages"]][:3] == ["system", "system", "human"]


@pytest.mark.parametrize(
    ("key", "schema", "lost"),
    [("summarized_messages", Summarised, "summarized_messages"), ("llm_input_messages", None, "context")],
)
def test_a_hook_without_effect_is_refused(key: str, schema: Any, lost: str) -> None:
    """langmem's own key for its result, or no channel for its notes: either would be dropped silently."""
    model = ScriptedModel(*job("cubepi"))
    agent = create_todo_agent(
        model,
        [dig],
        settings="cubepi",
        state_schema=schema,
        pre_model_hook=summarising(summaries(), key),
        checkpointer=InMemorySaver(),
    )
    with pytest.raises(SettingsError, match=f"pre_model_hook returned '{lost}', which is not a channel"):
        agent.invoke({"messages": [("user", "Dig.")]}, THREAD)
    assert len(model.requests) < 10
