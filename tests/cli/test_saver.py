"""The command line's saver writes short versions, and every other saver goes on with its threads."""

import sqlite3
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from wakeloop import create_todo_agent
from wakeloop.cli.saver import Numbered
from wakeloop.testing import ScriptedModel, calls, says

THREAD: Any = {"configurable": {"thread_id": "t"}}


def job(item: int) -> list[Any]:
    write, update = calls(("todo_write", {"items": ["a"]})), {"id": item, "status": "done"}
    return [write, says("stop"), calls(("todo_update", update))]


def turn(saver: SqliteSaver, item: int = 1) -> list[str]:
    """Run a job in which the agent is woken once, and tell the versions of the thread."""
    model = ScriptedModel([*job(item), says("done")])
    agent = create_todo_agent(model, checkpointer=saver)
    agent.invoke({"messages": [("user", "go")]}, THREAD)
    model.assert_done()
    stored = saver.get_tuple(THREAD)
    assert stored is not None
    return [str(version) for version in stored.checkpoint["channel_versions"].values()]


def test_a_new_thread_counts() -> None:
    saver = Numbered(sqlite3.connect(":memory:", check_same_thread=False))
    versions = turn(saver)
    assert {len(version) for version in versions} == {9}
    assert max(versions) == "+00000012"


@pytest.mark.parametrize("kinds", [(Numbered, SqliteSaver), (SqliteSaver, Numbered)])
def test_either_saver_goes_on_with_the_other_ones_thread(kinds: tuple[type[SqliteSaver], ...]) -> None:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    for item, kind in enumerate((*kinds, kinds[0]), 1):
        versions = turn(kind(connection), item)
    assert not max(versions).startswith("+")  # in their writing, once they have begun
    values = create_todo_agent(ScriptedModel([]), checkpointer=kinds[0](connection)).get_state(THREAD).values
    assert [todo["status"] for todo in values["todos"]] == ["completed"] * 3
    assert [m.content for m in values["messages"] if m.type == "human" and m.content == "go"] == ["go"] * 3


def test_a_fork_goes_on_from_an_older_checkpoint() -> None:
    saver = Numbered(sqlite3.connect(":memory:", check_same_thread=False))
    turn(saver)
    model = ScriptedModel([says("other"), *job(1)[2:], says("end")])
    agent = create_todo_agent(model, checkpointer=saver)
    point = next(s for s in agent.get_state_history(THREAD) if s.next == ("wake",))
    result = agent.invoke(None, point.config)
    assert [todo["status"] for todo in result["todos"]] == ["completed"]
    model.assert_done()
