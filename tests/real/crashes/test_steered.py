"""Steering under kill -9: what a person said is in the thread exactly once (rule 26)."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from functools import partial
from itertools import repeat
from pathlib import Path
from threading import RLock
from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.postgres.aio import AsyncPostgresStore
from langgraph.store.sqlite import SqliteStore
from runs import in_a_process

from wakeloop import create_todo_agent, steer
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says, wire_faults
from wakeloop.thread.steering import find_next_input, list_waiting

pytestmark = pytest.mark.slow

SAID = ["In mid-turn.", "At the turn's end.", "After the last request."]


def next_reply(request: Any) -> Any:
    """Reply according to the conversation, so that the reply is the same after a kill."""
    said = [message.text for message in request]
    if not any(message.type == "ai" for message in request):
        return calls(("todo_write", {"items": ["a"]}), ("look", {"path": "x"}))
    if "Soon." not in said:
        return says("Soon.")
    called = [call["name"] for message in request for call in getattr(message, "tool_calls", ())]
    if "todo_update" not in called:
        return calls(("todo_update", {"id": 1, "status": "done"}))
    return says(f"Heard {said.count(SAID[2])}.")


SPEAKING = RLock()  # no kill while the person speaks: savers run in their own threads


class Places:
    """Counts the places at which a run may die, and dies at one of them: with SIGKILL, or an exception."""

    def __init__(self, die: int | None, error: type[BaseException] | None = None) -> None:
        self.die, self.error, self.passed = die, error, 0

    def pass_one(self) -> None:
        with SPEAKING:
            self.passed += 1
            if self.passed != self.die:
                return
            if self.error is not None:
                raise self.error
            os.kill(os.getpid(), signal.SIGKILL)


def watched(kind: type[Any], places: Places, *names: str) -> type[Any]:
    """Return a saver or store with a place before and after each call."""

    def wrap(name: str) -> Callable[..., Any]:
        def call(self: Any, *given: Any, **more: Any) -> Any:
            places.pass_one()
            result = getattr(super(made, self), name)(*given, **more)
            places.pass_one()
            return result

        async def acall(self: Any, *given: Any, **more: Any) -> Any:
            places.pass_one()
            result = await getattr(super(made, self), name)(*given, **more)
            places.pass_one()
            return result

        return acall if name.startswith("a") else call

    made = type(f"Watched{kind.__name__}", (kind,), {name: wrap(name) for name in names})
    return made


@contextmanager
def opened(where: str, places: Places) -> Iterator[tuple[Any, Any]]:
    """Open a saver and a store in one database."""
    with ExitStack() as stack:
        if where.startswith("postgresql"):
            saver_kind = watched(PostgresSaver, places, "put", "put_writes")
            store_kind = watched(PostgresStore, places, "batch")
            yield (
                stack.enter_context(saver_kind.from_conn_string(where)),
                stack.enter_context(store_kind.from_conn_string(where)),
            )
            return
        ours = stack.enter_context(closing(sqlite3.connect(where, check_same_thread=False)))
        theirs = sqlite3.connect(where, check_same_thread=False, isolation_level=None, timeout=30)
        stack.enter_context(closing(theirs))
        yield (
            watched(SqliteSaver, places, "put", "put_writes")(ours),
            watched(SqliteStore, places, "batch")(theirs),
        )


@asynccontextmanager
async def aopened(where: str, places: Places) -> AsyncIterator[tuple[Any, Any]]:
    """The same, asynchronous; LangGraph's store on SQLite has no asynchronous form."""
    if where.startswith("postgresql"):
        saver_kind = watched(AsyncPostgresSaver, places, "aput", "aput_writes")
        store_kind = watched(AsyncPostgresStore, places, "abatch")
        async with saver_kind.from_conn_string(where) as saver, store_kind.from_conn_string(where) as store:
            yield saver, store
        return
    saver_kind = watched(AsyncSqliteSaver, places, "aput", "aput_writes")
    with closing(sqlite3.connect(where, check_same_thread=False, isolation_level=None, timeout=30)) as theirs:
        async with saver_kind.from_conn_string(where) as saver:
            yield saver, watched(SqliteStore, places, "batch")(theirs)


def agent_of(form: str, saver: Any, store: Any, say: Callable[[str], None]) -> tuple[Any, ScriptedModel]:
    """Return an agent whose person speaks in mid-turn, as a turn ends, and once the run is over."""

    def look(path: str) -> str:
        """Look at a path."""
        say(SAID[0])
        return f"saw {path}"

    def reply(request: Any) -> Any:
        made = next_reply(request)
        if made.content == "Soon.":
            say(SAID[1])
        return made

    model = ScriptedModel(repeat(reply))
    how: Any = {"checkpointer": saver, "store": store}
    if form == "middleware":
        return create_agent(model, [look], middleware=[WakeLoopMiddleware(settings="wakeloop")], **how), model
    return create_todo_agent(model, [look], **how), model


def run(door: str, *given: Any) -> int:
    """Run a thread to its end, or from where it stopped; return how many places it passed."""
    return run_sync(*given) if door == "sync" else asyncio.run(run_async(*given))


async def run_async(where: str, form: str, thread: str, folder: str, die: int | None) -> int:
    places = Places(die)
    async with aopened(where, places) as (saver, store):
        say = partial(say_once, where, thread, folder)
        agent, model = agent_of(form, saver, store, say)
        begun = await agent.aget_state(at(thread))
        is_new = not begun.values and not begun.next
        given = {"messages": [("user", "Go.")]} if is_new else None
        await agent.ainvoke(given, at(thread), durability="sync")
        say(SAID[2])
        if await asyncio.to_thread(find_next_input, agent, await agent.aget_state(at(thread))):
            await agent.ainvoke({"messages": []}, at(thread), durability="sync")
        assert wire_faults(model.requests) == []
    return places.passed


def run_sync(where: str, form: str, thread: str, folder: str, die: int | None) -> int:
    places = Places(die)
    with opened(where, places) as (saver, store):
        say = partial(say_once, where, thread, folder)
        agent, model = agent_of(form, saver, store, say)
        begun = agent.get_state(at(thread))
        is_new = not begun.values and not begun.next
        agent.invoke({"messages": [("user", "Go.")]} if is_new else None, at(thread), durability="sync")
        say(SAID[2])
        if find_next_input(agent, agent.get_state(at(thread))):
            agent.invoke({"messages": []}, at(thread), durability="sync")
        assert wire_faults(model.requests) == []
    return places.passed


def say_once(where: str, thread: str, folder: str, text: str) -> None:
    """Steer, unless a killed process has already done so: the person says everything once."""
    note = Path(folder, f"{thread}-{SAID.index(text)}")
    with SPEAKING:
        if not note.exists():
            with opened(where, Places(None)) as (_, store):
                steer(store, thread, text)
            note.touch()


def read_words(where: str, form: str, thread: str) -> tuple[Counter[str], int]:
    """Return the person's words in the thread, and how many of them are still waiting."""
    with opened(where, Places(None)) as (saver, store):
        agent, _ = agent_of(form, saver, store, print)
        values = agent.get_state(at(thread)).values
        words = Counter(m.text for m in values["messages"] if m.type == "human" and m.text in SAID)
        return words, len(list_waiting(store, thread, values))


def set_up(where: str) -> None:
    with opened(where, Places(None)) as (saver, store):
        saver.setup()
        store.setup()


def at(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


@pytest.mark.timeout(600)
@pytest.mark.rotating("form", "door")
@pytest.mark.parametrize("door", ["sync", "async"])
@pytest.mark.parametrize("form", ["graph", "middleware"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("bound", [9, 1])
def test_killed_at_every_place(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, form: str, door: str, bound: int
) -> None:
    """Or at every ninth: a kill takes half a second."""
    where = str(tmp_path / "t.db") if kind == "sqlite" else request.getfixturevalue("postgres")
    in_a_process(set_up, where)
    status, places = in_a_process(run, door, where, form, "whole", str(tmp_path), None)
    assert (status, read_words(where, form, "whole")) == (0, (Counter(SAID), 0))
    assert places > 60
    for die in range(1, places + 1, bound):
        how = (where, form, str(die), str(tmp_path))
        assert in_a_process(run, door, *how, die)[0] == -signal.SIGKILL
        assert (die, in_a_process(run, door, *how, None)[0]) == (die, 0)
        assert (die, *read_words(*how[:3])) == (die, Counter(SAID), 0)


@pytest.mark.parametrize("form", ["graph", "middleware"])
def test_an_exception_at_every_place_in_memory(form: str) -> None:
    total = fail_and_resume(form, None)
    for die in range(1, total + 1):
        fail_and_resume(form, die)


def fail_and_resume(form: str, die: int | None) -> int:
    """Run a thread in memory, with an exception at one place of its store; return the number of places."""
    places = Places(die, ConnectionError)
    store, said = watched(InMemoryStore, places, "batch")(), set[str]()

    def say(text: str) -> None:
        if text not in said:
            said.add(text)
            places.passed, passed = -(10**6), places.passed  # the person's own call is not a place
            steer(store, "t", text)
            places.passed = passed

    agent, _ = agent_of(form, InMemorySaver(), store, say)
    given: Any = {"messages": [("user", "Go.")]}
    for _ in range(2):
        with suppress(ConnectionError):
            agent.invoke(given, at("t"), durability="sync")
            say(SAID[2])
            agent.invoke({"messages": []}, at("t"), durability="sync")
        given = None if agent.get_state(at("t")).next else {"messages": []}
    values = agent.get_state(at("t")).values
    words = Counter(m.text for m in values["messages"] if m.type == "human" and m.text in SAID)
    assert (die, words) == (die, Counter(SAID))
    return places.passed
