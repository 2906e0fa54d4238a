"""A long job, run with and without a hook that shortens its conversation."""

from collections.abc import Iterator
from itertools import repeat
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately
from langmem.short_term import SummarizationNode

from wakeloop import TodoState, create_todo_agent
from wakeloop.testing import ScriptedModel, calls, says

ITEMS = 12
PLAN = [f"step {number}" for number in range(1, ITEMS + 1)]
REQUESTS = 1 + 2 * ITEMS  # the plan, then for each item its call and the end of a turn
SUMMARIES = 6
THREAD: Any = {"configurable": {"thread_id": "thread"}}
COUNTERS = (
    *("wake_cycles", "idle_wakes", "todo_stale_iterations", "todo_guard_retries", "todo_guard_blocked"),
    *("ruling", "bad_replies", "waking", "worked", "peak"),
    *("open_at_wake", "last_wake", "next_id", "refusals"),
)


class Summarised(TodoState):
    """A state with the channel in which langmem keeps its summary."""

    context: dict[str, Any]


def job() -> Iterator[AIMessage]:
    """Plan, then close one item per turn, ending each turn too early and with many words.

    Its calls have ids of equal length in any process, because tokens are counted with them.
    """
    yield calls(("todo_write", {"items": PLAN}, "call_00"))
    for number in range(1, ITEMS + 1):
        yield calls(("todo_update", {"id": number, "status": "done"}, f"call_{number:02}"))
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


def comparable(state: Any) -> dict[str, Any]:
    """Return what must be the same with and without compaction."""
    ledger = state.get("todo_ledger") or {}
    return {
        "session": {**state["todo_session"], "spent": None},
        "todos": [{key: todo.get(key) for key in ("id", "content", "status")} for todo in state["todos"]],
        "counters": {key: ledger.get(key) for key in COUNTERS},
    }


def request_text(request: list[BaseMessage]) -> str:
    """Return the request after its system prompt, as a string."""
    return "\n".join(f"{message.type}: {message.content}" for message in request[1:])


def play(hook: Any) -> tuple[ScriptedModel, dict[str, Any]]:
    """Play the whole job, and return its final state."""
    model = ScriptedModel(job())
    state = agent(model, hook).invoke(started(), THREAD)
    model.assert_done()
    return model, state


def uncompacted() -> dict[str, Any]:
    """Return the final state of the same job without compaction."""
    model, state = play(None)
    assert len(model.requests) == REQUESTS
    assert state["todo_session"]["wakes"] == ITEMS - 1
    return comparable(state)
