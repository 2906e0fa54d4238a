"""Agents with asynchronous-only parts on the DBOS host."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from waiting import until

from wakeloop import create_todo_agent
from wakeloop.sessions.communication_tools import session_tools
from wakeloop.sessions.dbos import DbosHost
from wakeloop.testing import ScriptedModel, calls, says


async def look(what: str) -> str:
    """Look it up."""
    await asyncio.sleep(0.01)
    return f"{what}: found"


def only_asynchronous(coroutine: Any = look) -> StructuredTool:
    return StructuredTool.from_function(coroutine=coroutine, name="look", description="Look it up.")


@asynccontextmanager
async def saver_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[tuple[Any, str]]:
    """A saver, and the URL of the events."""
    if kind == "postgres":
        url = str(request.getfixturevalue("postgres"))
        async with AsyncPostgresSaver.from_conn_string(url) as saver:
            await saver.setup()
            yield saver, url
    else:
        async with AsyncSqliteSaver.from_conn_string(str(folder / "threads.db")) as saver:
            yield saver, f"sqlite:///{folder / 'sessions.db'}"


def said(agent: Any, thread: str) -> list[tuple[str, str]]:
    values = agent.get_state({"configurable": {"thread_id": thread}}).values
    return [(m.type, m.text) for m in values.get("messages", ())]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_on_an_asynchronous_saver_tools_and_verifiers_may_be_asynchronous(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    loops = []

    async def verify(todo: Any, state: Any) -> str | None:
        loops.append(asyncio.get_running_loop())
        return None if len(loops) > 1 else "look twice"

    close = calls(("todo_update", {"id": 1, "status": "done"}))
    write = calls(("todo_write", {"items": ["a"]}))
    model = ScriptedModel([write, calls(("look", {"what": "it"})), close, close, says("done")])
    async with saver_of(kind, request, tmp_path) as (saver, url):
        agent = create_todo_agent(model, tools=[only_asynchronous()], verify=verify, checkpointer=saver)
        async with DbosHost(url, {"main": agent}, polling=0.05) as host:
            host.send("main", {"kind": "human", "text": "go"})
            assert await asyncio.to_thread(host.wait, "main", 30)
            status = await asyncio.to_thread(host.status, "main")
        told = await asyncio.to_thread(said, agent, "main")
    assert (status.state, status.reason, status.open, status.error) == ("dormant", "settled", 0, None)
    assert ("tool", "it: found") in told
    assert loops == [asyncio.get_running_loop()] * 2
    model.assert_done()


async def test_session_tools_serve_an_asynchronous_agent(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    ask = calls(("talk_to_agent", {"agent": "bob", "message": "6 x 7?"}))
    ada = ScriptedModel([ask, says("asked"), says("it is 42")])
    bob = ScriptedModel([calls(("reply_to_peer", {"message": "42"})), says("told")])
    async with saver_of("sqlite", request, tmp_path) as (saver, url):
        host = DbosHost(url, polling=0.05)
        agents = {
            name: create_todo_agent(model, tools=session_tools(host), checkpointer=saver)
            for name, model in (("ada", ada), ("bob", bob))
        }
        host.agents = agents
        async with host:
            host.send("ada", {"kind": "human", "text": "ask bob"})
            await asyncio.to_thread(until, lambda: said(agents["ada"], "ada")[-1:] == [("ai", "it is 42")])
            assert await asyncio.to_thread(host.wait, None, 30)
    ada.assert_done()
    bob.assert_done()


@pytest.mark.slow
async def test_a_drain_stops_an_asynchronous_turn_which_continues_at_the_next_start(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    reached: list[str] = []

    async def work(what: str) -> str:
        reached.append(what)
        await asyncio.sleep(0.05)
        return "done"

    model = ScriptedModel([*(calls(("look", {"what": str(n)})) for n in range(30)), says("all done")])
    async with saver_of("sqlite", request, tmp_path) as (saver, url):
        agent = create_todo_agent(model, tools=[only_asynchronous(work)], checkpointer=saver)
        async with DbosHost(url, {"main": agent}, polling=0.05) as host:
            host.send("main", {"kind": "human", "text": "go"})
            await asyncio.to_thread(until, lambda: len(reached) > 2)
        assert len(reached) < 30
        async with DbosHost(url, {"main": agent}, polling=0.05) as host:
            assert await asyncio.to_thread(host.wait, "main", 60)
    assert reached == [str(n) for n in range(30)]
    model.assert_done()


async def never(what: str) -> str:
    raise AssertionError


async def refuse(todo: Any, state: Any) -> str | None:
    raise AssertionError


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (
            {"tools": [only_asynchronous(never)]},
            "ToolError: The tool 'look' is asynchronous only: run this agent with ainvoke or astream.",
        ),
        (
            {"verify": refuse},
            "VerifyError: This agent's verify is asynchronous. Run it with ainvoke or astream.",
        ),
    ],
)
def test_on_a_synchronous_saver_the_turn_is_given_up_with_a_sentence(
    parts: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    model = ScriptedModel([calls(("look", {"what": "it"}))] if "tools" in parts else [])
    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        agent = create_todo_agent(model, checkpointer=SqliteSaver(connection), **parts)
        with DbosHost(f"sqlite:///{tmp_path / 'sessions.db'}", {"main": agent}, polling=0.05) as host:
            host.send("main", {"kind": "human", "text": "go"})
            assert host.wait("main", timeout=30)
            assert host.status("main").error == sentence
    model.assert_done()
