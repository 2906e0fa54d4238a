"""One agent with many threads at once: each only sees its own data."""

import asyncio
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from wakeloop import create_todo_agent
from wakeloop.testing import calls, prompt_faults, says, wire_faults

NAME = re.compile(r"#\d+#")
# plan, work, one item done, a stop that the graph wakes from, the rest done and the ending below
REQUESTS = 5
TURNS = 1


class Planner(BaseChatModel):
    """One model for all threads, whose reply depends only on the request."""

    counts: Any
    requests: Any
    lock: Any

    @property
    def _llm_type(self) -> str:
        return "planner"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> "Planner":
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        names = Counter(name for message in messages for name in NAME.findall(message.text))
        (name,) = names  # a second one would be another thread's
        with self.lock:
            self.counts[name] += 1
            self.requests.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=reply(name, messages))])


def reply(name: str, messages: Sequence[BaseMessage]) -> AIMessage:
    """Plan two items, work on one, stop too early, work on the other."""
    turn = sum(
        message.type == "human" and "wakeloop" not in message.additional_kwargs for message in messages
    )
    since = [*messages]
    while since[0].text != f"{name} turn {turn}":
        since.pop(0)
    said = sum(message.type == "ai" for message in since)
    first, second = 2 * turn - 1, 2 * turn
    replies = [
        calls(("todo_write", {"items": [f"{name} a{turn}", f"{name} b{turn}"]})),
        calls(("work", {"on": f"{name} a{turn}"}), ("todo_update", {"id": first, "status": "done"})),
        says(f"{name} early {turn}"),
        calls(("work", {"on": f"{name} b{turn}"}), ("todo_update", {"id": second, "status": "done"})),
        says(f"{name} over {turn}"),
    ]
    assert len(replies) == REQUESTS
    return replies[said]


def work(on: str) -> str:
    """Work on something."""
    return f"worked on {on}"


def owned(value: Any) -> set[str]:
    """Return the threads whose text a value contains."""
    return set(NAME.findall(repr(value)))


TYPES = ["activated", *["spent", "todos"] * 2, "spent", "wake", "spent", "todos", "spent", "parked"]


def check(agent: Any, model: Planner, seen: dict[str, list[Any]], states: dict[str, Any], bound: int) -> None:
    """Every thread has its own list, messages, results and events, whole and in order."""
    assert model.counts == dict.fromkeys(seen, REQUESTS * TURNS)
    assert len(seen) == bound
    for name, events in seen.items():
        assert owned(events) == {name}
        assert [event["type"] for event in events] == TYPES * TURNS
        values = states[name]
        items = [f"{name} {item}{turn}" for turn in range(1, TURNS + 1) for item in "ab"]
        assert values["todos"] == [
            {"id": i, "content": item, "status": "completed"} for i, item in enumerate(items, 1)
        ]
        assert owned(values) == {name}
        results = [m.text for m in values["messages"] if m.type == "tool" and m.name == "work"]
        assert results == [f"worked on {item}" for item in items]
        answers = [m.text for m in values["messages"] if m.type == "ai" and m.text]
        assert answers == [
            f"{name} {what} {turn}" for turn in range(1, TURNS + 1) for what in ("early", "over")
        ]
        assert values["todo_session"]["reason"] == "settled"
    assert wire_faults(model.requests) == []
    by_thread: dict[str, list[Any]] = {name: [] for name in seen}
    for request in model.requests:
        (name,) = NAME.findall(request[1].text)
        by_thread[name].append(request)
    for requests in by_thread.values():
        assert prompt_faults(requests) == []


def config_of(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def names(bound: int) -> list[str]:
    return [f"#{i}#" for i in range(bound)]


pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.parametrize("bound", [40, 500])]


@pytest.fixture(params=["memory", "sqlite"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "memory":
        yield InMemorySaver()
        return
    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        yield SqliteSaver(connection)


def planner() -> Planner:
    return Planner(counts=Counter(), requests=[], lock=Lock())


def test_many_threads_in_a_pool(saver: Any, bound: int) -> None:
    model = planner()
    agent = create_todo_agent(model, [work], checkpointer=saver)

    def run(name: str) -> tuple[str, list[Any]]:
        events: list[Any] = []
        for turn in range(1, TURNS + 1):
            given = {"messages": [("user", f"{name} turn {turn}")]}
            events += agent.stream(given, config_of(name), stream_mode="custom")
        return name, events

    with ThreadPoolExecutor(32) as pool:
        seen = dict(pool.map(run, names(bound)))
    check(agent, model, seen, {name: agent.get_state(config_of(name)).values for name in names(bound)}, bound)


@pytest.mark.parametrize("kind", ["memory", "asqlite"])
async def test_many_threads_in_one_loop(kind: str, tmp_path: Path, bound: int) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as asqlite:
        await asqlite.conn.execute("PRAGMA synchronous=OFF")
        model = planner()
        saver = asqlite if kind == "asqlite" else InMemorySaver()
        agent = create_todo_agent(model, [work], checkpointer=saver)

        async def run(name: str) -> tuple[str, list[Any]]:
            events: list[Any] = []
            for turn in range(1, TURNS + 1):
                given = {"messages": [("user", f"{name} turn {turn}")]}
                stream = agent.astream(given, config_of(name), stream_mode="custom")
                events += [event async for event in stream]
            return name, events

        seen = dict(await asyncio.gather(*map(run, names(bound))))
        states = {name: (await agent.aget_state(config_of(name))).values for name in names(bound)}
        check(agent, model, seen, states, bound)
