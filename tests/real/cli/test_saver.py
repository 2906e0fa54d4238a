"""The command line's saver writes short versions, and every other saver continues its threads."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from wakeloop import create_todo_agent
from wakeloop.cli.store import DatabaseFile, open_to_write
from wakeloop.cli.stored_state import CompactSaver, compact_writes_table
from wakeloop.testing import ScriptedModel, calls, says

THREAD: Any = {"configurable": {"thread_id": "t"}}


def job(item: int) -> list[Any]:
    write, update = calls(("todo_write", {"items": ["a"]})), {"id": item, "status": "done"}
    return [write, says("stop"), calls(("todo_update", update))]


def turn(saver: SqliteSaver, item: int = 1) -> list[str]:
    """Run a job in which the agent is woken once, and return the versions of the thread."""
    model = ScriptedModel([*job(item), says("done")])
    agent = create_todo_agent(model, checkpointer=saver)
    agent.invoke({"messages": [("user", "go")]}, THREAD)
    model.assert_done()
    stored = saver.get_tuple(THREAD)
    assert stored is not None
    return [str(version) for version in stored.checkpoint["channel_versions"].values()]


def test_a_new_thread_counts() -> None:
    saver = CompactSaver(sqlite3.connect(":memory:", check_same_thread=False))
    versions = turn(saver)
    assert {len(version) for version in versions} == {9}
    assert max(versions) == "+00000012"


@pytest.mark.parametrize("kinds", [(CompactSaver, SqliteSaver), (SqliteSaver, CompactSaver)])
def test_either_saver_continues_the_others_thread(kinds: tuple[type[SqliteSaver], ...]) -> None:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    for item, kind in enumerate((*kinds, kinds[0]), 1):
        versions = turn(kind(connection), item)
    assert not max(versions).startswith("+")  # in their own format, once they have begun
    values = create_todo_agent(ScriptedModel([]), checkpointer=kinds[0](connection)).get_state(THREAD).values
    assert [todo["status"] for todo in values["todos"]] == ["completed"] * 3
    assert [m.content for m in values["messages"] if m.type == "human" and m.content == "go"] == ["go"] * 3


def test_a_fork_continues_from_an_older_checkpoint() -> None:
    saver = CompactSaver(sqlite3.connect(":memory:", check_same_thread=False))
    turn(saver)
    model = ScriptedModel([says("other"), *job(1)[2:], says("end")])
    agent = create_todo_agent(model, checkpointer=saver)
    point = next(s for s in agent.get_state_history(THREAD) if s.next == ("wake",))
    result = agent.invoke(None, point.config)
    assert [todo["status"] for todo in result["todos"]] == ["completed"]
    model.assert_done()


def made(connection: sqlite3.Connection) -> str:
    [(sql,)] = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'writes'")
    return str(sql)


def test_a_new_database_keeps_its_writes_in_one_tree_and_langgraphs_saver_continues_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "threads.sqlite"
    with open_to_write(DatabaseFile(file, named=True)) as store:
        assert store.saver is not None
        turn(store.saver)
    with closing(sqlite3.connect(file, check_same_thread=False)) as connection:
        assert made(connection).endswith(") WITHOUT ROWID")
        turn(SqliteSaver(connection), 2)
        before = connection.execute("SELECT count(*) FROM writes").fetchone()
    with open_to_write(DatabaseFile(file, named=True)) as store:  # once more: nothing is lost
        assert store.connection is not None
        assert store.connection.execute("SELECT count(*) FROM writes").fetchone() == before
        agent = create_todo_agent(ScriptedModel([]), checkpointer=store.saver)
        assert [todo["status"] for todo in agent.get_state(THREAD).values["todos"]] == ["completed"] * 2


def test_a_database_with_writes_stays_as_it_is() -> None:
    saver = SqliteSaver(sqlite3.connect(":memory:", check_same_thread=False))
    turn(saver)
    before = made(saver.conn), saver.conn.execute("SELECT * FROM writes").fetchall()
    compact_writes_table(saver.conn)
    assert (made(saver.conn), saver.conn.execute("SELECT * FROM writes").fetchall()) == before
    assert not made(saver.conn).endswith("WITHOUT ROWID")


def test_the_table_has_the_columns_and_the_key_that_langgraph_gave_it() -> None:
    plain, slimmed = (sqlite3.connect(":memory:", check_same_thread=False) for _ in range(2))
    for connection in (plain, slimmed):
        SqliteSaver(connection).setup()
    compact_writes_table(slimmed)
    assert made(slimmed) == f"{made(plain)} WITHOUT ROWID"
    columns = "PRAGMA table_info(writes)"
    assert slimmed.execute(columns).fetchall() == plain.execute(columns).fetchall()
