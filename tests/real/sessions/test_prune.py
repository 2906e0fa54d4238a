"""The engine's records of ended turns are deleted; the ids in the mailbox stay."""

from __future__ import annotations

import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from waiting import until

from wakeloop import create_todo_agent
from wakeloop.sessions.dbos import DbosHost, SessionClient
from wakeloop.testing import ScriptedModel, says

pytestmark = pytest.mark.slow

NOW = timedelta(0)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres"))
    return f"sqlite:///{tmp_path / 'sessions.db'}"


def states(client: SessionClient) -> list[str]:
    """Return the statuses of the engine's records."""
    return sorted(str(record.status) for record in client.client.list_workflows())


def test_ended_turns_are_deleted_by_age_and_a_repeat_is_still_dropped(url: str, saver: SqliteSaver) -> None:
    model = ScriptedModel([says("one"), says("two"), says("three")])
    with DbosHost(url, {"main": create_todo_agent(model, checkpointer=saver)}, polling=0.05) as host:
        for number in range(3):
            host.send(f"main:{number}", {"kind": "human", "id": f"e{number}", "text": "go"})
        host.schedule("main:0", "0 0 29 2 *", "a leap day")
        until(lambda: states(host) == ["DELAYED", "SUCCESS", "SUCCESS", "SUCCESS"])
        assert host.prune() == 0  # they are not an hour old
        assert host.prune(NOW) == 3
        assert states(host) == ["DELAYED"]  # future ones stay
        assert host.prune(NOW) == 0
        host.send("main:0", {"kind": "human", "id": "e0", "text": "go"})
        until(lambda: states(host) == ["DELAYED", "SUCCESS"])
        assert [(s.thread, s.queued) for s in host.list()] == [(f"main:{n}", 0) for n in range(3)]
    model.assert_done()


def test_records_can_be_deleted_from_another_process_than_the_hosts(url: str, saver: SqliteSaver) -> None:
    agent = create_todo_agent(ScriptedModel([says("one")]), checkpointer=saver)
    with DbosHost(url, {"main": agent}, polling=0.05) as host, closing(SessionClient(url)) as client:
        host.send("main", {"kind": "human", "text": "go"})
        until(lambda: states(client) == ["SUCCESS"])
        assert client.prune(NOW) == 1
        assert states(host) == []


@pytest.mark.parametrize("keep", [NOW, None])
def test_a_host_deletes_records_older_than_its_limit(
    keep: timedelta | None, tmp_path: Path, saver: SqliteSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wakeloop.sessions.dbos.watchdog.CHECK_EVERY", 0.02)
    monkeypatch.setattr("wakeloop.sessions.dbos.watchdog.PRUNE_CHECKS", 2)
    looks: list[timedelta] = []

    class Host(DbosHost):
        def prune(self, age: timedelta = NOW) -> int:
            looks.append(age)
            return super().prune(age)

    agent = create_todo_agent(ScriptedModel([says("one")]), checkpointer=saver)
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    with Host(url, {"main": agent}, polling=0.05, keep=keep) as host:
        host.send("main", {"kind": "human", "text": "go"})
        assert host.wait("main", timeout=30)
        if keep is None:
            until(lambda: states(host) == ["SUCCESS"])
            time.sleep(0.5)  # many checks
            assert (looks, states(host)) == ([], ["SUCCESS"])
        else:
            until(lambda: states(host) == [])
            assert set(looks) == {NOW}
