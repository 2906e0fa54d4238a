"""The host on DBOS: SQLite in this process, Postgres with workers that are killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from waiting import until

from wakeloop import create_todo_agent
from wakeloop.errors import SessionError
from wakeloop.sessions.dbos import DbosHost, SessionClient
from wakeloop.sessions.dbos.session_client import next_time
from wakeloop.sessions.host import SessionHost
from wakeloop.testing import ScriptedModel, calls, says

Graph = Any


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'sessions.db'}"


def quiet(host: SessionClient) -> None:
    """Wait until no event waits."""
    assert host.wait(timeout=60)


def said(graph: Graph, thread: str) -> list[tuple[str, str]]:
    values = graph.get_state({"configurable": {"thread_id": thread}}).values
    return [(m.type, m.text) for m in values.get("messages", ())]


def host_on(url: str, **agents: Graph) -> DbosHost:
    return DbosHost(url, agents, polling=0.05)


def test_it_is_a_host(url: str) -> None:
    with closing(SessionClient(url)) as client:
        assert isinstance(client, SessionHost) is False  # it cannot drain
    host = DbosHost(url)
    assert isinstance(host, SessionHost)
    SessionClient.close(host)


@pytest.mark.slow
def test_events_wake_a_session_in_order_and_once(url: str, saver: SqliteSaver) -> None:
    model = ScriptedModel(
        [
            calls(("todo_write", {"items": ["a"]})),
            calls(("todo_update", {"id": 1, "status": "done"})),
            says("one"),
            says("two"),
        ]
    )
    agent = create_todo_agent(model, checkpointer=saver)
    with host_on(url, main=agent) as host:
        assert host.send("x", {"kind": "human", "id": "e1", "text": "first"}) == "e1"
        quiet(host)
        assert host.send("x", {"kind": "human", "id": "e1", "text": "first"}) == "e1"  # a repeat
        host.send("x", {"kind": "human", "id": "e2", "text": "second"})
        quiet(host)
        assert [text for kind, text in said(agent, "x") if kind == "human"] == ["first", "second"]
        status = host.status("x")
        assert (status.state, status.reason, status.open, status.queued, status.error) == (
            "dormant",
            "answered",
            0,
            0,
            None,
        )
        assert host.list() == [status]
    model.assert_done()


@pytest.mark.slow
def test_a_turn_that_fails_is_given_up_with_its_reason(url: str, saver: SqliteSaver) -> None:
    model = ScriptedModel([ValueError("no such thing, key sk-abcdefghijklmnop"), says("fine")])
    agent = create_todo_agent(model, checkpointer=saver)
    with host_on(url, main=agent) as host:
        host.send("x", {"kind": "human", "text": "first"})
        quiet(host)
        assert (host.status("x").error or "").startswith("ValueError: no such thing")
        host.send("x", {"kind": "human", "text": "second"})
        quiet(host)
        assert host.status("x").error is None
    assert said(agent, "x")[-1] == ("ai", "fine")


@pytest.mark.slow
def test_a_schedule_fires_on_time_and_a_past_one_at_once_and_once(url: str, saver: SqliteSaver) -> None:
    model = ScriptedModel([says("ticked")])
    agent = create_todo_agent(model, checkpointer=saver)
    with closing(SessionClient(url, {"main": agent})) as client:
        key = client.schedule("x", "0 0 1 1 *", "happy new year")
        assert client.schedule("x", "0 0 1 1 *", "happy new year") == key  # repeating it changes nothing
        [row] = client.schedules("x")
        assert datetime.fromisoformat(row.due or "") == next_time("0 0 1 1 *", datetime.now(UTC))
        client.mailbox.set_due(key, datetime.now(UTC) - timedelta(days=800))  # two new years were missed
    with host_on(url, main=agent) as host:
        until(lambda: said(agent, "x"))
        quiet(host)
        [row] = host.schedules()
        assert datetime.fromisoformat(row.due or "") > datetime.now(UTC)
        assert host.cancel(key) is True
        assert host.cancel(key) is False
        assert host.schedules() == []
    assert [kind for kind, _ in said(agent, "x")] == ["human", "ai"]


def test_invalid_events_are_refused_in_one_sentence(url: str) -> None:
    with closing(SessionClient(url, {"a": None})) as client:  # type: ignore[dict-item]
        with pytest.raises(SessionError, match="Thread 'x' belongs to no agent"):
            client.send("x", {"kind": "human", "text": "hi"})
        with pytest.raises(SessionError, match="kind must be one of"):
            client.send("a", {"kind": "shout", "text": "hi"})
        with pytest.raises(SessionError, match="Unknown session 'a'"):
            client.status("a")
        assert client.list() == []


@pytest.mark.slow
def test_a_drain_stops_a_turn_and_the_next_start_continues_it(url: str, saver: SqliteSaver) -> None:
    reached: list[int] = []

    def work(n: int) -> str:
        """Work."""
        reached.append(n)
        time.sleep(0.05)
        return "done"

    replies: list[AIMessage] = [calls(("work", {"n": n})) for n in range(40)]
    model = ScriptedModel([*replies, says("all done")])
    agent = create_todo_agent(model, tools=[work], checkpointer=saver)
    with host_on(url, main=agent) as host:
        host.send("x", {"kind": "human", "id": "e", "text": "go"})
        until(lambda: len(reached) > 2)
        assert host.drain(10) is True
        before = list(reached)
    assert len(before) < 40
    with host_on(url, main=agent) as host:
        quiet(host)
    assert reached == list(range(40))  # nothing twice, nothing left out
    assert [kind for kind, _ in said(agent, "x")].count("human") == 1
    model.assert_done()


def test_a_drain_can_be_requested_from_outside(url: str, saver: SqliteSaver) -> None:
    agent = create_todo_agent(ScriptedModel([]), checkpointer=saver)
    with host_on(url, main=agent) as host, closing(SessionClient(url, {"main": agent})) as client:
        [(worker, _, draining)] = client.mailbox.list_workers()
        assert (worker, draining) == ("local", False)
        client.mailbox.request_drain()
        until(host.draining.is_set)
    with closing(SessionClient(url)) as client:
        assert client.mailbox.list_workers() == []


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("bound", [1, 4])
def test_killed_workers_lose_and_repeat_nothing(bound: int) -> None:
    script = Path(__file__).parents[3] / "benchmarks" / "session_kills.py"
    many = {"threads": 2 * bound, "events": 30 * bound, "workers": 2, "kills": bound}
    options = [part for name, number in many.items() for part in (f"--{name}", str(number))]
    done = subprocess.run(
        [sys.executable, str(script), *options], capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert {key: figures[key] for key in ("lost", "repeated", "out of order")} == {
        "lost": 0,
        "repeated": 0,
        "out of order": 0,
    }
