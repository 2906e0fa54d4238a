"""What is kept of a thread does not grow with its rounds, and nothing is kept across threads."""

import json
from itertools import chain, count
from typing import Any

import pytest
from agents import done, settings, todo, write
from langchain_core.messages import AIMessage, RemoveMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from wakeloop import create_todo_agent, preset
from wakeloop.channels.conversation import Messages, merge_messages
from wakeloop.loop.progress import FINGERPRINT_LENGTH, REMEMBERED
from wakeloop.model.request import REMEMBERED_PROMPTS
from wakeloop.prompts import _read_prompt
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.thread.inputs import REMEMBERED_EVENTS
from wakeloop.todos.operations import KEPT_REFUSALS

THREAD: Any = {"configurable": {"thread_id": "1"}}


def look(path: str) -> str:
    """Look."""
    return f"saw {path}"


def size(ledger: dict[str, Any]) -> int:
    """Return the bytes of a ledger, without what grows by a digit or on a slow machine."""
    return len(json.dumps({k: v for k, v in ledger.items() if k not in ("next_id", "wake_cycles", "spent")}))


@pytest.mark.parametrize("bound", [8, REMEMBERED_EVENTS])
def test_the_ledger_of_an_ended_thread_has_a_fixed_size(bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakeloop.thread.inputs.REMEMBERED_EVENTS", bound)
    number = count(1)
    turns = 2 * bound

    def work(_: Any) -> AIMessage:
        return calls(("look", {"path": str(next(number))}))

    replies = [[write("a"), work, done(turn + 1), says("over")] for turn in range(turns)]
    agent = create_todo_agent(ScriptedModel(chain(*replies)), [look], checkpointer=InMemorySaver())
    sizes: list[int] = []
    for turn in range(turns):
        event = {"kind": "human", "id": f"{turn:04}", "text": "go"}
        agent.invoke({"todo_inbox": [event], "todos": []}, THREAD)
        ledger = agent.get_state(THREAD).values["todo_ledger"]
        assert len(ledger["events"]) == min(turn + 1, bound)
        sizes.append(size(ledger))
    assert len(set(sizes[bound:])) == 1


def test_a_run_remembers_a_fixed_number_of_calls() -> None:
    rounds = 3 * REMEMBERED
    kept: list[int] = []

    def seen(state: Any) -> dict[str, Any]:
        kept.append(len(state["messages"].places))
        messages = state["messages"]
        if len(messages) < 12:
            return {}
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *messages[:1], *messages[-6:]]}

    looks = [calls(("look", {"path": str(i)})) for i in range(rounds)]
    model = ScriptedModel([write("a"), says("stop"), *looks, *[says("stop")] * 7])
    agent = create_todo_agent(
        model, [look], settings=settings(nag_after=0), pre_model_hook=seen, checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": [("user", "go")]}, {**THREAD, "recursion_limit": 3 * rounds})
    ledger = agent.get_state(THREAD).values["todo_ledger"]
    assert len(ledger["seen"]) == FINGERPRINT_LENGTH * REMEMBERED
    assert max(kept) == max(kept[:12])  # ids of messages and of the calls that they answer


def test_an_index_holds_only_what_is_in_the_conversation() -> None:
    """Replaced, removed, added again, forked: no id of a removed message is left in it."""
    messages = merge_messages([], [[("user", "go")]])
    for i in range(500):
        one, other = merge_messages(messages, [AIMessage(f"a{i}", id="a")]), merge_messages(messages, [[]])
        assert [m.id for m in other] == [m.id for m in messages]
        gone = [RemoveMessage("b"), AIMessage(f"b{i}", id="b")]
        messages = merge_messages(one, [AIMessage(f"again {i}", id="a"), gone])
    assert isinstance(messages, Messages)
    assert len(messages) == 3
    assert len(messages.places) == 3


def test_refusals_of_removed_items_are_forgotten() -> None:
    """A list is replaced forever, and a verifier refuses its items: only the last ones are remembered."""
    rounds = 3 * KEPT_REFUSALS

    def wrote(i: int) -> AIMessage:
        return calls(("write_todos", {"todos": [{"content": f"item {i}", "status": "completed"}]}))

    agent = create_todo_agent(
        ScriptedModel([*[wrote(i) for i in range(rounds)], *[says("stop")] * 5]),
        settings=preset("cubepi").model_copy(update={"in_progress": "any"}),
        verify=lambda item, state: "not yet",
        checkpointer=InMemorySaver(),
    )
    agent.invoke({"messages": [("user", "go")]}, {**THREAD, "recursion_limit": 3 * rounds})
    values = agent.get_state(THREAD).values
    assert values["todos"] == [todo(rounds, f"item {rounds - 1}", "in_progress")]
    assert list(values["todo_ledger"]["refusals"]) == [
        str(i) for i in range(rounds - KEPT_REFUSALS, rounds + 1)
    ]


@pytest.mark.slow
def test_nothing_is_kept_across_threads() -> None:
    """One agent, many threads, each with its own system message: its prompts are bounded."""
    threads = 2 * REMEMBERED_PROMPTS
    agent = create_todo_agent(ScriptedModel([says("ok")] * threads), [look], checkpointer=InMemorySaver())
    systems: dict[Any, Any] = agent.nodes["call_model"].bound.systems  # type: ignore[union-attr]
    texts: set[int] = set()
    for i in range(threads):
        given: Any = {"messages": [SystemMessage(f"You are number {i}."), ("user", "go")]}
        agent.invoke(given, {"configurable": {"thread_id": str(i)}})
        assert len(systems) == i % (REMEMBERED_PROMPTS + 1) + 1
        texts.add(_read_prompt.cache_info().currsize)
    assert len(texts) == 1
