"""The same report from every saver, and from a database with damaged rows."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from wakeloop import create_todo_agent
from wakeloop.cli.offline_graph import write_report
from wakeloop.cli.store import DatabaseFile, open_to_write
from wakeloop.display import athread_report, thread_report
from wakeloop.display.checkpoint_history import read_history
from wakeloop.testing import ScriptedModel, calls, says

THREAD: Any = {"configurable": {"thread_id": "t"}}
GO: Any = {"messages": [("user", "go")]}


def agent_on(saver: Any) -> Any:
    model = ScriptedModel([calls(("todo_write", {"items": ["a", "b"]})), *[says("Later.")] * 7])
    return create_todo_agent(model, checkpointer=saver)


def page_text(page: str) -> list[str]:
    """Return the text of a page, without times and positions."""
    body = re.sub(r"<(style|script)>.*?</\1>|<title>[^<]*</title>", "", page, flags=re.DOTALL)
    texts = re.findall(r">([^<]+)<", body)
    return [text.strip() for text in texts if text.strip() and not re.search(r"\d (s|ms)\b|UTC", text)]


@pytest.fixture(scope="module")
def expected() -> list[str]:
    agent = agent_on(InMemorySaver())
    agent.invoke(GO, THREAD)
    return page_text(thread_report(agent, THREAD))


def test_postgres(postgres: str, expected: list[str]) -> None:
    with PostgresSaver.from_conn_string(postgres) as saver:
        saver.setup()
        agent = agent_on(saver)
        agent.invoke(GO, THREAD)
        assert page_text(thread_report(agent, THREAD)) == expected


async def test_asynchronous_sqlite(tmp_path: Path, expected: list[str]) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        agent = agent_on(saver)
        await agent.ainvoke(GO, THREAD)
        assert page_text(await athread_report(agent, THREAD)) == expected


@pytest.mark.parametrize("above", [0, 1, 3, 9])
def test_postgres_with_a_torn_value(postgres: str, above: int) -> None:
    """The rows above and below are still shown."""
    with PostgresSaver.from_conn_string(postgres) as saver:
        saver.setup()
        agent = agent_on(saver)
        agent.invoke(GO, THREAD)
        rows = [row for row in saver.list(THREAD) if row.pending_writes]
        whole = read_history(agent, THREAD)
        change = "UPDATE checkpoint_writes SET blob = %s WHERE checkpoint_id = %s"
        assert saver.conn.execute(change, [b"\xc1", rows[above].checkpoint["id"]]).rowcount
        past = read_history(agent, THREAD)
        page = thread_report(agent, THREAD)
    assert (past.damaged, len(past.steps)) == (True, len(whole.steps) - 1)
    assert "<h1>go</h1>" in page
    assert "steps cannot be read." in page


@pytest.mark.parametrize(
    ("torn", "says_so"),
    [
        ("checkpoint_id = (SELECT MAX(checkpoint_id) FROM checkpoints)", "The stored thread is damaged."),
        ("json_extract(metadata, '$.step') = 4", "Earlier steps cannot be read."),
    ],
)
def test_rows_next_to_torn_ones_are_shown(tmp_path: Path, torn: str, says_so: str) -> None:
    database = DatabaseFile(tmp_path / "threads.sqlite", named=True)
    with open_to_write(database) as store:
        agent_on(store.saver).invoke(GO, THREAD)
    with closing(sqlite3.connect(database.path)) as connection:
        assert connection.execute(f"UPDATE checkpoints SET checkpoint = x'c1' WHERE {torn}").rowcount == 1
        connection.commit()
    file = tmp_path / "page.html"
    assert write_report(database, "t", file, force=False) == [str(file)]
    page = file.read_text()
    assert says_so in page
    assert "<h1>go</h1>" in page
