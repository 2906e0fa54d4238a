"""A conversation that langmem summarises: the list, its counters and its wakes go on."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, RemoveMessage
from langchain_core.messages.utils import count_tokens_approximately, trim_messages
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langmem.short_term import SummarizationNode

from wakeloop import TodoState, create_todo_agent
from wakeloop.testing import ScriptedModel, calls, prompt_faults, says, wire_faults

ITEMS = 12
PLAN = [f"step {number}" for number in range(1, ITEMS + 1)]
REQUESTS = 1 + 2 * ITEMS  # the plan, then for each item its call and the end of a turn
SUMMARIES = 6
THREAD: Any = {"configurable": {"thread_id": "thread"}}
COUNTERS = (
    *("wake_cycles", "idle_wakes", "todo_stale_iterations", "todo_guard_retries", "todo_guard_blocked"),
    *(
        "ruling",
        "bad_replies",
        "waking",
        "worked",
        "peak",
        "open_at_wake",
        "last_wake",
        "next_id",
        "refusals",
    ),
)


class Summarised(TodoState):
    """What langmem keeps between two requests is a channel of the thread."""

    context: dict[str, Any]


def job() -> Iterator[AIMessage]:
    """Plan; then close one item a turn, and end each turn too early, with many words."""
    yield calls(("todo_write", {"items": PLAN}))
    for number in range(1, ITEMS + 1):
        yield calls(("todo_update", {"id": number, "status": "done"}))
        yield says(f"Step {number} is behind us. " + "word " * 60)


def summaries() -> ScriptedModel:
    return ScriptedModel(repeat(says("Some steps are behind us.")))


def summarising(model: ScriptedModel) -> SummarizationNode:
    return SummarizationNode(
        model=model,
        max_tokens=400,
        max_summary_tokens=64,
        token_counter=count_tokens_approximately,
        output_messages_key="llm_input_messages",
    )


def trimming(state: Any) -> dict[str, Any]:
    return {"llm_input_messages": last_of(state["messages"])}


def forgetting(state: Any) -> dict[str, Any]:
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *last_of(state["messages"])]}


def last_of(messages: list[AnyMessage]) -> list[BaseMessage]:
    return trim_messages(
        messages, max_tokens=400, token_counter=count_tokens_approximately, start_on="human", strategy="last"
    )


def agent(model: ScriptedModel, hook: Any, saver: Any = None) -> Any:
    return create_todo_agent(model, state_schema=Summarised, pre_model_hook=hook, checkpointer=saver)


def started() -> dict[str, Any]:
    return {"messages": [("user", "Take the twelve steps.")]}


def kept(state: Any) -> dict[str, Any]:
    """What must be the same with and without compaction."""
    ledger = state.get("todo_ledger") or {}
    return {
        "session": {**state["todo_session"], "spent": None},
        "todos": [{key: todo.get(key) for key in ("id", "content", "status")} for todo in state["todos"]],
        "counters": {key: ledger.get(key) for key in COUNTERS},
    }


def sent(request: list[BaseMessage]) -> str:
    """The request behind its system prompt, as text."""
    return "\n".join(f"{message.type}: {message.content}" for message in request[1:])


def assert_list_is_seen(requests: list[list[BaseMessage]]) -> None:
    """Every request behind the plan shows each item that is open then."""
    for number, request in enumerate(requests[1:], start=1):
        closed, seen = number // 2, f"{sent(request)}\n"
        if planned(request):  # the result names the numbers of the texts that stand in the call
            seen += "".join(f"[{i}] {text}\n" for i, text in enumerate(PLAN, 1))
        missing = [i for i in range(closed + 1, ITEMS + 1) if f"[{i}] step {i}\n" not in seen]
        assert missing == [], f"request {number + 1}"


def planned(request: list[BaseMessage]) -> bool:
    """Whether a request holds the plan's call, with its texts and its result."""
    made = [call["args"] for message in request for call in getattr(message, "tool_calls", ())]
    return {"items": PLAN} in made and f"tool: Stored {ITEMS} items, [1] to [{ITEMS}]." in sent(request)


def play(hook: Any, door: str = "invoke", saver: Any = None) -> tuple[ScriptedModel, dict[str, Any]]:
    """The whole job; the state that it ends in."""
    model = ScriptedModel(job())
    built = agent(model, hook, saver)
    state = (
        built.invoke(started(), THREAD) if door == "invoke" else asyncio.run(built.ainvoke(started(), THREAD))
    )
    model.assert_done()
    return model, state


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """What the same job ends in where nothing is compacted."""
    model, state = play(None)
    assert len(model.requests) == REQUESTS
    assert state["todo_session"]["wakes"] == ITEMS - 1
    return kept(state)


@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
def test_a_summary_keeps_the_list_and_its_wakes(door: str, plain: dict[str, Any]) -> None:
    summariser = summaries()
    model, state = play(summarising(summariser), door)
    assert len(model.requests) == REQUESTS
    assert len(summariser.requests) == SUMMARIES
    assert kept(state) == plain
    assert wire_faults(model.requests) == []
    assert len({str(request[0].content) for request in model.requests}) == 1
    assert_list_is_seen(model.requests)
    # Between two summaries each request begins with all of the one before.
    assert len(prompt_faults(model.requests)) == SUMMARIES
    assert max(len(sent(request)) for request in model.requests) < 2_000  # 8,000 without


def test_the_bytes_of_a_request_behind_a_summary() -> None:
    """The list's last showing went into the summary with the nudge that held it: it is shown once more."""
    model, _ = play(summarising(summaries()))
    at = next(n for n, request in enumerate(model.requests) if "Summary of" in sent(request))
    items = "".join(f"\n  [{number}] step {number}" for number in range(3, ITEMS + 1))
    assert sent(model.requests[at]) == (
        "human: Summary of the conversation so far: Some steps are behind us.\n"
        f"human: [The todo list, as it stands now:]\n{items}"
    )
    assert model.requests[at + 1][: len(model.requests[at])] == model.requests[at]


@pytest.mark.parametrize("hook", [trimming, forgetting])
def test_a_trimmed_history_keeps_the_list_and_its_wakes(
    hook: Callable[[Any], dict[str, Any]], plain: dict[str, Any]
) -> None:
    model, state = play(hook)
    assert len(model.requests) == REQUESTS
    assert kept(state) == plain
    assert wire_faults(model.requests) == []
    assert len({str(request[0].content) for request in model.requests}) == 1
    assert_list_is_seen(model.requests)
    assert max(len(sent(request)) for request in model.requests) < 2_000
