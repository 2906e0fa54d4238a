"""Steering sessions on DBOS: into a run, at rest, at a question, while no host is up (rule 26)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from waiting import until

from wakeloop import create_todo_agent, hold_thread, release_thread
from wakeloop.sessions.dbos import DbosHost, SessionClient
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.tools import ask_user

pytestmark = pytest.mark.slow

AT: Any = {"configurable": {"thread_id": "main"}}


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Any]]:
    """The address of an empty database, and a saver in it."""
    if request.param == "sqlite":
        with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
            yield f"sqlite:///{tmp_path / 'sessions.db'}", SqliteSaver(connection)
        return
    server = request.getfixturevalue("postgres_server")
    with server.database() as url, PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        yield url, saver


def agent_on(saver: Any, *replies: Any, tools: Any = ()) -> Any:
    return create_todo_agent(ScriptedModel(list(replies)), [*tools], checkpointer=saver)


def words(graph: Any) -> list[str]:
    return [m.text for m in graph.get_state(AT).values.get("messages", ()) if m.type == "human"]


def rests(host: Any, graph: Any, text: str) -> None:
    until(lambda: text in words(graph) and host.status("main").state in ("dormant", "idle", "waiting"))


def test_into_a_run_at_rest_and_while_no_host_is_up(database: tuple[str, Any]) -> None:
    url, saver = database
    begun, sent = Event(), Event()

    def measure() -> str:
        """Measure."""
        begun.set()
        assert sent.wait(30)
        return "4 m"

    graph = agent_on(saver, calls(("measure", {})), "13 feet.", "Two.", "Three.", tools=[measure])
    with DbosHost(url, {"main": graph}, polling=0.05) as host:
        host.send("main", {"kind": "human", "text": "Measure."})
        assert begun.wait(30)
        with closing(SessionClient(url, {"main": graph})) as client:  # another process
            client.steer("main", "In feet.")
            assert client.status("main").sent == 1
        sent.set()
        rests(host, graph, "In feet.")
        messages = [(m.type, m.text) for m in graph.get_state(AT).values["messages"]]
        assert messages[-3:] == [("ai", "[continued]"), ("human", "In feet."), ("ai", "13 feet.")]
        assert host.status("main").sent == 0
        host.steer("main", "And the other?")
        rests(host, graph, "And the other?")
    with closing(SessionClient(url, {"main": graph})) as client:
        client.steer("main", "And the third?")
    with DbosHost(url, {"main": graph}, polling=0.05) as host:
        rests(host, graph, "And the third?")
    assert words(graph) == ["Measure.", "In feet.", "And the other?", "And the third?"]


def test_a_question_and_a_hold_keep_it(database: tuple[str, Any]) -> None:
    url, saver = database
    ask = calls(("ask_user", {"question": "Which room?"}))
    graph = agent_on(saver, ask, says("The hall."), "Held no more.", tools=[ask_user])
    with DbosHost(url, {"main": graph}, polling=0.05) as host:
        host.send("main", {"kind": "human", "text": "Measure."})
        until(lambda: host.list() and host.status("main").asks)
        host.steer("main", "In feet.")
        until(lambda: host.status("main").sent == 1)
        host.send(
            "main", {"kind": "human", "text": "The hall.", "correlation_id": host.status("main").asks[0]}
        )
        rests(host, graph, "In feet.")
        assert host.wait("main", 30)
        until(lambda: host.status("main").state == "dormant")
        hold_thread(graph, AT)
        host.steer("main", "Go on.")
        assert host.wait("main", 30)
        assert host.status("main").sent == 1
        release_thread(graph, AT)
        host.send("main", {"kind": "kick"})
        rests(host, graph, "Go on.")
    assert words(graph) == ["Measure.", "In feet.", "Go on."]


def test_a_failing_run_is_not_retried_forever(database: tuple[str, Any]) -> None:
    url, saver = database
    graph = agent_on(saver, TimeoutError, "Better.")
    with DbosHost(url, {"main": graph}, polling=0.05) as host:
        host.steer("main", "Hello.")
        until(lambda: host.status("main").state == "failed" and not graph.get_state(AT).tasks)
        assert words(graph) == ["Hello."]
        assert host.status("main").sent == 0
        host.send("main", {"kind": "human", "text": "Again."})
        rests(host, graph, "Again.")
    assert words(graph)[-1] == "Again."
