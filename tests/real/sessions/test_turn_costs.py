"""The database queries of a session's turn, and how many runs events queue: exact counts."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from dbos import DBOS
from langgraph.checkpoint.sqlite import SqliteSaver
from waiting import until

from wakeloop import create_todo_agent
from wakeloop.sessions.dbos import DbosHost, SessionClient
from wakeloop.sessions.dbos.session_client import RUN_QUEUE, TIMER_QUEUE
from wakeloop.testing import ScriptedModel, says

EVENTS = 301


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres"))
    return f"sqlite:///{tmp_path / 'sessions.db'}"


def say(key: str) -> Any:
    return {"kind": "human", "id": key, "text": f"event {key}"}


def runs(client: SessionClient) -> dict[str, int]:
    """Return the records of runs, by status."""
    return dict(Counter(str(record.status) for record in client.client.list_workflows(queue_name=RUN_QUEUE)))


def in_run() -> bool:
    """Return whether this is the thread of a run."""
    return threading.current_thread().name.startswith("dbos-executor")


class CountingSaver(SqliteSaver):
    """Counts how often runs read the newest checkpoint."""

    reads = 0

    def get_tuple(self, config: Any) -> Any:
        self.reads += in_run()
        return super().get_tuple(config)


@pytest.mark.slow
def test_a_turn_queries_the_database_for_each_thing_once(url: str, saver: SqliteSaver) -> None:
    counting, statements = CountingSaver(saver.conn), list[str]()
    agent = create_todo_agent(ScriptedModel([says("one"), says("two")]), checkpointer=counting)
    with DbosHost(url, {"main": agent}, polling=0.05) as host:

        def note_statement(_: Any, __: Any, statement: str, *___: Any) -> None:
            if in_run() and "wakeloop_" in statement:
                words = statement.split()
                statements.append(f"{words[0]} {next(word for word in words if 'wakeloop_' in word)}")

        sa.event.listen(host.mailbox.engine, "before_cursor_execute", note_statement)
        for key in ("first", "second"):
            statements.clear()
            counting.reads = 0
            host.send("main", say(key))
            until(lambda done=key: runs(host) == {"SUCCESS": 1 if done == "first" else 2})
            assert statements == [
                "SELECT wakeloop_events.id,",  # the waiting events
                "SELECT wakeloop_sessions.asked",  # which questions it may answer
                "UPDATE wakeloop_events",  # it is taken
                "UPDATE wakeloop_events",  # it is settled, with
                "INSERT wakeloop_sessions",  # the session's error
                "SELECT wakeloop_events.id,",  # events that came meanwhile
            ]
            # to plan the run, and after it; two are the graph's own
            assert counting.reads == 4


@pytest.mark.slow
def test_many_events_at_once_queue_one_run(url: str, saver: SqliteSaver) -> None:
    agent = create_todo_agent(ScriptedModel([says("fine")]), checkpointer=saver)
    with DbosHost(url, {"main": agent}):
        pass  # it has created the engine's tables
    with closing(SessionClient(url, {"main": agent})) as client:
        for number in range(EVENTS):
            client.send("main", say(f"e{number}"))
        assert runs(client) == {"ENQUEUED": 1}
        client.send("main", say("e0"))  # a repeat requests the run of its event, which is queued
        assert runs(client) == {"ENQUEUED": 1}
        client.send("main:2", say("other"))  # another thread gets its own run
        assert runs(client) == {"ENQUEUED": 2}
        assert client.cancel("other")
    with DbosHost(url, {"main": agent}, polling=0.05) as host:
        assert host.wait(timeout=60)
        messages = agent.get_state({"configurable": {"thread_id": "main"}}).values["messages"]
        expected = [f"event e{number}" for number in range(EVENTS)]
        assert [m.text for m in messages if m.type == "human"] == expected


@pytest.mark.slow
def test_an_event_during_a_run_queues_the_next_run_and_the_others_share_it(
    url: str, saver: SqliteSaver
) -> None:
    asked, go = threading.Event(), threading.Event()

    def reply(_: Any) -> Any:
        asked.set()
        assert go.wait(60)
        return says("one")

    agent = create_todo_agent(ScriptedModel([reply, says("two")]), checkpointer=saver)
    with DbosHost(url, {"main": agent}, polling=0.05) as host:
        host.send("main", say("a"))
        assert asked.wait(60)
        assert runs(host) == {"PENDING": 1}
        host.send("main", say("b"))  # the run may have looked for events for the last time
        assert runs(host) == {"PENDING": 1, "ENQUEUED": 1}
        for key in "cde":
            host.send("main", say(key))
        assert runs(host) == {"PENDING": 1, "ENQUEUED": 1}
        go.set()
        until(lambda: runs(host) == {"SUCCESS": 2})
        messages = agent.get_state({"configurable": {"thread_id": "main"}}).values["messages"]
        assert [m.text for m in messages if m.type == "human"] == [f"event {key}" for key in "abcde"]


@pytest.mark.parametrize(("polling", "timers"), [(0.05, 1.0), (3.0, 3.0)])
def test_the_queue_of_timers_is_polled_at_most_once_a_second(
    polling: float, timers: float, tmp_path: Path
) -> None:
    with DbosHost(f"sqlite:///{tmp_path / 'sessions.db'}", {}, polling=polling):
        queues = [DBOS.retrieve_queue(name) for name in (RUN_QUEUE, TIMER_QUEUE)]
        assert [queue and queue.polling_interval_sec for queue in queues] == [polling, timers]
