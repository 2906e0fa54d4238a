"""Rule 29 on a host: the end of a wait wakes the thread, even after a kill."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply, Server
from langgraph.checkpoint.memory import InMemorySaver
from limited_worker import open_saver
from processes import start_python
from waiting import until

from wakeloop import create_todo_agent, hold_thread, wait
from wakeloop.sessions.dbos import DbosHost, SessionClient
from wakeloop.testing import ScriptedModel, calls
from wakeloop.tools import wait_for_work

pytestmark = pytest.mark.slow

WORKER = Path(__file__).parent / "limited_worker.py"
GO: Any = {"kind": "human", "id": "go", "text": "Go."}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'sessions.db'}"


def ended(host: SessionClient, reason: str) -> bool:
    return host.status("main").reason == reason


def test_a_condition_is_checked_repeatedly_without_a_request(url: str) -> None:
    verdicts: list[Any] = [wait("the build", 0.3), wait("the build", 0.3), None]
    model = ScriptedModel("Done.")
    agent: Any = create_todo_agent(model, checkpointer=InMemorySaver(), done_when=lambda _: verdicts.pop(0))
    with DbosHost(url, {"main": agent}, polling=0.05) as host:
        host.send("main", GO)
        until(lambda: ended(host, "goal_met"))
        assert (len(model.requests), verdicts) == (1, [])


@pytest.mark.parametrize("held", [False, True])
def test_missing_work_is_reported_once_but_no_clock_moves_a_hold(url: str, *, held: bool) -> None:
    asks = calls(("wait_for_work", {"what": "the build", "seconds": 1}))
    model = ScriptedModel(asks, "I wait.", "Then without it.")
    agent: Any = create_todo_agent(model, [wait_for_work], checkpointer=InMemorySaver())
    with DbosHost(url, {"main": agent}, polling=0.05) as host:
        host.send("main", GO)
        until(lambda: ended(host, "waiting"))
        if held:
            hold_thread(agent, {"configurable": {"thread_id": "main"}})
            time.sleep(2.5)
            assert (host.status("main").on, len(model.requests)) == ("hold", 2)
            return
        until(lambda: ended(host, "answered"))
        assert "has not come:\n\n- the build" in model.requests[2][-1].text


@contextmanager
def worker(database: str, server: Server) -> Iterator[subprocess.Popen[str]]:
    """A worker that is killed at the end."""
    with start_python(WORKER, database, server.url, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            yield process
        finally:
            process.kill()


WORK = Reply(calls=[("wait_for_work", {"what": "the build", "seconds": 4})])
WAITS = {  # the server's answers until the thread waits, and the first words of the request after that
    "limit": ([Reply(status=429, headers={"Retry-After": "2"})], "Go."),
    "work": ([WORK, Reply("I wait.")], "(automatic) You were waiting for this, and it has not come:"),
}


@pytest.mark.loopback
@pytest.mark.timeout(400)
@pytest.mark.rotating("on")
@pytest.mark.parametrize("on", WAITS)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_worker_that_was_killed_while_its_thread_waited_is_replaced(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, on: str
) -> None:
    """Either by itself after a restart, or by another one; the wait does not start again.

    The client is OpenAI's real one, and the refusal is a 429 with a time.
    """
    replies, asked = WAITS[on]
    server = Server([*replies, Reply("Hello.")])
    database = f"sqlite:///{tmp_path / 'sessions.db'}"
    if kind == "postgres":
        database = request.getfixturevalue("postgres")
    times = set[float | None]()
    try:
        with (
            closing(SessionClient(database)) as client,
            open_saver(database) as saver,
            ExitStack() as workers,
        ):
            client.agents = {"main": create_todo_agent(ScriptedModel([]), checkpointer=saver)}

            def has_ended() -> bool:
                status = client.status("main")
                times.update({status.until} if status.reason == "waiting" else ())
                return status.reason == "answered"

            with worker(database, server):
                client.send("main", GO)
                until(lambda: ended(client, "waiting"), 180)  # a worker may take long to start
                assert client.status("main").on == on
                assert not has_ended()
                if kind == "postgres":
                    workers.enter_context(worker(database, server))
            if kind == "sqlite":
                workers.enter_context(worker(database, server))
            until(has_ended, 180)
        assert len(times) == 1
        assert time.time() >= (times.pop() or 0)
        assert len(server.requests) == len(replies) + 1
        assert server.requests[-1]["messages"][-1]["content"].startswith(asked)
    finally:
        server.close()
