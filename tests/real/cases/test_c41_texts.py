"""C41: no text is written that a saver cannot hold, wherever it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from sqlalchemy import create_engine

from wakeloop import TodoState, create_todo_agent, preset, session_of, update_todos
from wakeloop.sessions.mailbox import Mailbox
from wakeloop.testing import ScriptedModel, calls

BAD = "a\x00b \ud83d c"
KEPT = "ab \ufffd c"
THREAD: Any = {"configurable": {"thread_id": "1"}}
LOKI = preset("loki").model_copy(update={"auto_continue": True})


def longer(old: str, new: str) -> str:
    """A reducer of the caller's own."""
    return f"{old}{new}"


class More(TodoState):
    topic: str
    log: Annotated[str, longer]


@tool
def note(text: str) -> Command[Any]:
    """Write the channels."""
    return Command(update={"topic": text, "log": text, "todo_goal": text})


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def saver(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "memory":
        yield InMemorySaver()
    elif request.param == "sqlite":
        with SqliteSaver.from_conn_string(":memory:") as kept:
            yield kept
    else:
        with PostgresSaver.from_conn_string(request.getfixturevalue("postgres")) as kept:
            kept.setup()
            yield kept


def stands(agent: Any, goal: str = KEPT, reason: str = "answered") -> None:
    """Check that the thread is readable, has the goal, and has ended."""
    snapshot = agent.get_state(THREAD)
    assert (snapshot.values["todo_goal"], session_of(snapshot)["reason"]) == (goal, reason)


def test_c41_the_goal_from_the_model(saver: Any) -> None:
    init = calls(("todo__init", {"goal": BAD}), ("todo__add", {"task": BAD}))
    model = ScriptedModel(init, calls(("todo__done", {"id": 1})), "Done.", "Hello.")
    agent = create_todo_agent(model, settings=LOKI, checkpointer=saver)
    agent.invoke({"messages": [("user", "go")]}, THREAD)
    stands(agent, reason="settled")
    assert agent.invoke({"messages": [("user", BAD)]}, THREAD)["todo_session"]["reason"] == "answered"


def test_c41_the_goal_from_an_input_and_by_hand(saver: Any) -> None:
    agent = create_todo_agent(ScriptedModel("Hello."), checkpointer=saver)
    agent.invoke({"messages": [("user", "go")], "todo_goal": BAD}, THREAD)
    stands(agent)
    update_todos(agent, THREAD, goal=f"{BAD}!", add=BAD, done=1)
    stands(agent, f"{KEPT}!")


def test_c41_the_callers_own_channels_from_input_tool_and_hook(saver: Any) -> None:
    model = ScriptedModel(calls(("note", {"text": BAD})), "Done.")
    agent = create_todo_agent(
        model,
        [note],
        state_schema=More,
        pre_model_hook=lambda state: {"topic": f"{BAD}{len(state['messages'])}"},
        checkpointer=saver,
    )
    agent.invoke({"messages": [("user", "go")], "topic": BAD, "log": BAD}, THREAD)
    stands(agent)
    values = agent.get_state(THREAD).values
    assert (values["topic"], values["log"]) == (f"{KEPT}3", KEPT * 2)


async def test_c41_over_the_asynchronous_saver(postgres: str) -> None:
    async with AsyncPostgresSaver.from_conn_string(postgres) as saver:
        await saver.setup()
        model = ScriptedModel(calls(("todo__init", {"goal": BAD})), "Done.")
        agent = create_todo_agent(model, settings=LOKI, checkpointer=saver)
        await agent.ainvoke({"messages": [("user", "go")]}, THREAD)
        assert (await agent.aget_state(THREAD)).values["todo_goal"] == KEPT


def test_c41_a_hosts_note_on_why_a_run_was_given_up(postgres: str) -> None:
    mailbox = Mailbox(create_engine(postgres.replace("postgresql://", "postgresql+psycopg://")))
    mailbox.create_tables()
    mailbox.add_event("1", {"kind": "human", "id": "e", "text": "x\x00y"})
    mailbox.claim("run", mailbox.list_waiting("1"))
    mailbox.settle_run("1", "run", f"ValueError: {BAD}")
    assert mailbox.list_sessions("1") == [("1", 0, f"ValueError: {KEPT}")]
    mailbox.engine.dispose()
