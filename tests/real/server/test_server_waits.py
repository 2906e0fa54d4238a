"""Rules 26, 28 and 29 on a LangGraph server: questions, holds, subagents, long threads, a host's clock."""

from __future__ import annotations

import time
from typing import Any

import pytest
from waiting import until

from wakeloop import answer_of
from wakeloop.sessions.langgraph_server import ServerHost
from wakeloop.sessions.langgraph_server.server_store import server_thread_id

pytest.importorskip("langgraph_api", reason="the extra `server` is not installed")
pytestmark = [pytest.mark.loopback, pytest.mark.timeout(180), pytest.mark.xdist_group("langgraph-dev")]


def say(host: ServerHost, thread: str, text: str) -> None:
    host.send(thread, {"kind": "human", "text": text})


def ended(host: ServerHost, thread: str, *how: str) -> bool:
    status = host.status(thread)
    return status.queued == 0 and (status.reason, status.on) == (*how, None)[:2]


def requests(host: ServerHost, thread: str) -> int:
    return int(host.snapshot(thread).values["todo_session"]["spent"]["requests"])


@pytest.mark.slow
def test_c58_a_question_in_words_waits_for_the_person(host: ServerHost, name: str) -> None:
    say(host, name, "wonder")
    until(lambda: ended(host, name, "waiting", "human"))
    status = host.status(name)
    assert (status.question, status.until, requests(host, name)) == ("Shall I delete them?", None, 3)
    say(host, name, "yes")
    until(lambda: ended(host, name, "settled"))
    assert answer_of(host.snapshot(name)) == "Deleted."


@pytest.mark.slow
def test_c68_a_session_with_a_working_subagent_waits_for_it_and_answers(host: ServerHost, name: str) -> None:
    say(host, name, "delegate")
    until(lambda: ended(host, name, "settled"))
    snapshot = host.snapshot(name)
    assert answer_of(snapshot) == "Here it is."
    assert (requests(host, name), snapshot.values["todo_session"]["wakes"]) == (5, 2)
    assert snapshot.values["todo_subagents"] == snapshot.values["waiting_on"] == []


@pytest.mark.slow
def test_on_hold_events_queue_up_until_a_person_speaks(host: ServerHost, name: str, client: Any) -> None:
    say(host, name, "hello")
    until(lambda: ended(host, name, "answered"))
    entry = {"id": "hold", "on": "hold", "reason": "answered"}
    client.threads.update_state(server_thread_id(name), {"waiting_on": [entry]}, as_node="finalization_guard")
    host.send(name, {"kind": "cron", "id": "c", "text": "It is nine."})
    time.sleep(1)
    assert host.status(name).queued == 1
    say(host, name, "keep going")

    def heard() -> list[str]:
        return [m.text for m in host.snapshot(name).values["messages"] if m.type == "human"]

    until(lambda: len(heard()) == 3)
    assert heard()[1] == "keep going"
    assert "It is nine." in heard()[2]


@pytest.mark.slow
def test_a_rate_limit_and_work_wake_by_a_hosts_clock(host: ServerHost, name: str) -> None:
    say(host, name, "limit")
    until(lambda: ended(host, name, "answered"))
    assert answer_of(host.snapshot(name)) == "Hello."
    say(host, name, "work")
    until(lambda: ended(host, name, "waiting", "work"))
    until(lambda: ended(host, name, "answered"))
    assert answer_of(host.snapshot(name)) == "Without it."


@pytest.mark.slow
def test_the_next_host_has_the_clock_of_one_that_is_gone(url: str, name: str) -> None:
    agents = {"main": "main"}
    with ServerHost(url, agents) as first:
        say(first, name, "limit")
        until(lambda: ended(first, name, "waiting", "limit"))
    with ServerHost(url, agents) as second:
        until(lambda: ended(second, name, "answered"))


@pytest.mark.slow
def test_a_thread_outlives_its_window_and_is_healed_by_the_next_event(host: ServerHost, name: str) -> None:
    say(host, name, "read")
    until(lambda: ended(host, name, "answered"))
    first = host.snapshot(name).values["todo_ledger"]
    assert (answer_of(host.snapshot(name)), requests(host, name)) == ("All read.", 9)
    assert first["window"][1] == 15_000
    say(host, name, "read on")
    until(lambda: ended(host, name, "context_full"))
    say(host, name, "read")
    until(lambda: ended(host, name, "answered"))
    values = host.snapshot(name).values
    assert (answer_of(values), requests(host, name)) == ("All read.", 9)
    assert values["todo_ledger"]["cleared"] != first["cleared"]
    assert [len(m.text) > 8_000 for m in values["messages"] if m.type == "tool"] == [True] * 17
