"""A thread on SQLite goes on in the midst of what a hook shortens."""

import asyncio
from collections.abc import Iterator
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langmem.short_term import SummarizationNode
from langmem.short_term.summarization import RunningSummary

from wakeloop import TodoState, create_todo_agent
from wakeloop.testing import ScriptedModel, calls, says

ITEMS = 12
REQUESTS = 1 + 2 * ITEMS  # the plan, then for each item its call and the end of a turn
SUMMARIES = 6
THREAD: Any = {"configurable": {"thread_id": "thread"}}
COUNTERS = (
    *("wake_cycles", "idle_wakes", "todo_stale_iterations", "todo_guard_retries", "todo_guard_blocked"),
    *("next", "bad_replies", "waking", "worked", "peak", "open_at_wake", "last_wake", "next_id", "refusals"),
)
STRICT = JsonPlusSerializer(allowed_msgpack_modules=[RunningSummary])


class Summarised(TodoState):
    """What langmem keeps between two requests is a channel of the thread."""

    context: dict[str, Any]


def job() -> Iterator[AIMessage]:
    """Plan; then close one item a turn, and end each turn too early, with many words."""
    yield calls(("todo_write", {"items": [f"step {number}" for number in range(1, ITEMS + 1)]}))
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


def broken(after: int) -> Iterator[AIMessage | type[Exception]]:
    """The job, whose model cannot be reached once it gave `after` replies."""
    yield from islice(job(), after)
    yield TimeoutError


@pytest.fixture(scope="module")
def undisturbed() -> list[list[BaseMessage]]:
    model, _ = play(summarising(summaries()))
    return model.requests


@pytest.mark.parametrize("after", range(REQUESTS))
def test_a_thread_goes_on_in_the_midst(
    after: int, tmp_path: Path, plain: dict[str, Any], undisturbed: list[list[BaseMessage]]
) -> None:
    """At every request: another agent takes the thread up, with counters and summary as they were."""
    summariser = summaries()
    requests: list[list[BaseMessage]] = []
    ledgers = []
    for hook in (None, summarising(summariser)):
        with SqliteSaver.from_conn_string(str(tmp_path / f"{hook is None}.sqlite")) as saver:
            saver.serde = STRICT
            model = ScriptedModel(broken(after))
            with pytest.raises(TimeoutError):
                agent(model, hook, saver).invoke(started(), THREAD, durability="sync")
            ledgers.append(kept(agent(ScriptedModel(), None, saver).get_state(THREAD).values))
            requests = model.requests[:after]
    assert ledgers[0] == ledgers[1]
    with SqliteSaver.from_conn_string(str(tmp_path / "False.sqlite")) as saver:
        saver.serde = STRICT
        model = ScriptedModel(islice(job(), after, None))
        state = agent(model, summarising(summariser), saver).invoke(None, THREAD)
    assert kept(state) == plain
    assert [sent(r) for r in requests + model.requests] == [sent(r) for r in undisturbed]
    # A summary is stored beside the reply that it was made for: what got none is summarised again.
    again = after > 0 and undisturbed[after][: len(undisturbed[after - 1])] != undisturbed[after - 1]
    assert len(summariser.requests) == SUMMARIES + again
