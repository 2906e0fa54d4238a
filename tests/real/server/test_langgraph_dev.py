"""The graph and the host on `langgraph dev`, through langgraph-sdk."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest
from langgraph_sdk.errors import ConflictError
from waiting import until

from wakeloop import SessionError, session_of
from wakeloop.sessions.host import SessionHost
from wakeloop.sessions.langgraph_server import ServerHost

pytest.importorskip("langgraph_api", reason="the extra `server` is not installed")
pytestmark = [pytest.mark.loopback, pytest.mark.timeout(180), pytest.mark.xdist_group("langgraph-dev")]
GO = {"messages": [{"role": "user", "content": "plan"}]}


def said(values: Any) -> list[tuple[str, str]]:
    return [(m["type"], m["content"]) for m in values["messages"]]


# -- the server's own strategies -------------------------------------------------------------------------


def test_a_thread_keeps_list_and_session(client: Any, thread: str) -> None:
    values = client.runs.wait(thread, "main", input=GO)
    assert values["todos"] == [{"id": 1, "content": "one", "status": "completed"}]
    assert (values["todo_session"]["state"], values["todo_session"]["reason"]) == ("dormant", "settled")
    assert client.threads.get_state(thread)["values"]["todos"] == values["todos"]
    again = client.runs.wait(thread, "main", input={"messages": [{"role": "user", "content": "and now?"}]})
    assert said(again)[-1] == ("ai", "read: and now?")


def test_events_are_streamed(client: Any, thread: str) -> None:
    parts = list(client.runs.stream(thread, "main", input=GO, stream_mode=["custom", "updates"]))
    events = [part.data["type"] for part in parts if part.event == "custom"]
    assert events == ["activated", "spent", "todos", "spent", "todos", "spent", "parked"]
    nodes = [node for part in parts if part.event == "updates" for node in part.data]
    assert nodes == [
        "activate",
        "call_model",
        "validate_todos",
        "call_model",
        "validate_todos",
        "call_model",
        "finalization_guard",
    ]


def started(client: Any, thread: str) -> Any:
    """Start a run, and wait until it is in the middle of its tool."""
    run = client.runs.create(thread, "main", input={"messages": [{"role": "user", "content": "slow"}]})
    until(lambda: client.threads.get_state(thread)["next"] == ["run_tools"])
    return run


SECOND = {"messages": [{"role": "user", "content": "second"}]}


def test_reject_refuses_the_second_run(client: Any, thread: str) -> None:
    run = started(client, thread)
    with pytest.raises(ConflictError):
        client.runs.create(thread, "main", input=SECOND, multitask_strategy="reject")
    values = client.runs.join(thread, run["run_id"])
    assert said(values) == [("human", "slow"), ("ai", ""), ("tool", "waited"), ("ai", "read: waited")]


def test_enqueue_runs_it_afterwards(client: Any, thread: str) -> None:
    started(client, thread)
    run = client.runs.create(thread, "main", input=SECOND, multitask_strategy="enqueue")
    values = client.runs.join(thread, run["run_id"])
    assert said(values)[-3:] == [("ai", "read: waited"), ("human", "second"), ("ai", "read: second")]


def test_interrupt_closes_what_was_open_before_the_second_message(client: Any, thread: str) -> None:
    first = started(client, thread)
    run = client.runs.create(thread, "main", input=SECOND, multitask_strategy="interrupt")
    values = client.runs.join(thread, run["run_id"])
    assert client.runs.get(thread, first["run_id"])["status"] == "interrupted"
    kinds = [m["type"] for m in values["messages"]]
    assert kinds == ["human", "ai", "tool", "ai", "human", "ai"]  # one result for the call, a closing line
    assert said(values)[-1] == ("ai", "read: second")


def test_rollback_forgets_the_first_run(client: Any, thread: str) -> None:
    started(client, thread)
    run = client.runs.create(thread, "main", input=SECOND, multitask_strategy="rollback")
    values = client.runs.join(thread, run["run_id"])
    assert said(values) == [("human", "second"), ("ai", "read: second")]


def test_c71_a_cancelled_run_says_so(client: Any, thread: str) -> None:
    run = started(client, thread)
    client.runs.cancel(thread, run["run_id"], wait=True)
    found = client.threads.get(thread)
    session = session_of(found)
    assert (session["state"], session["reason"], session["open"]) == ("cancelled", "cancelled", 0)
    assert session_of(client.threads.get_state(thread))["state"] == "running"  # a checkpoint does not say so
    values = client.runs.wait(thread, "main", input=SECOND)
    assert values["todo_session"]["reason"] == "answered"


def test_an_assistant_has_its_own_settings(client: Any, thread: str) -> None:
    leave = {"messages": [{"role": "user", "content": "leave"}]}
    patient = client.assistants.create(
        "main", context={"todo_settings": {"max_wake_cycles": 0, "guard_retries": 0}}
    )
    session = client.runs.wait(thread, patient["assistant_id"], input=leave)["todo_session"]
    assert (session["reason"], session["budget"], session["wakes"]) == ("disabled", 0, 0)
    other = str(client.threads.create()["thread_id"])
    session = client.runs.wait(other, "main", input=leave)["todo_session"]
    assert (session["reason"], session["budget"], session["wakes"]) == ("stalled", 25, 5)


def test_a_cron_posts_to_the_inbox(client: Any, thread: str) -> None:
    event = {"todo_inbox": [{"kind": "cron", "text": "It is time."}]}
    cron = client.crons.create_for_thread(thread, "main", schedule="* * * * *", input=event)
    [found] = client.crons.search(thread_id=thread)
    assert found["cron_id"] == cron["cron_id"]
    assert found["payload"]["input"] == event
    client.crons.delete(cron["cron_id"])
    values = client.runs.wait(thread, "main", input=found["payload"]["input"])  # what the clock will run
    assert said(values) == [("human", "[cron] It is time."), ("ai", "read: [cron] It is time.")]


# -- the host --------------------------------------------------------------------------------------------


def quiet(host: ServerHost, thread: str) -> None:
    until(lambda: not host.store.list_waiting(thread))


def texts(host: ServerHost, thread: str) -> list[str]:
    return [m.text for m in host.snapshot(thread).values.get("messages", ())]


def test_it_is_a_host(host: ServerHost) -> None:
    assert isinstance(host, SessionHost)


@pytest.mark.slow
def test_the_host_wakes_a_session_in_order_and_once(host: ServerHost, name: str) -> None:
    assert host.send(name, {"kind": "human", "id": "e1", "text": "slow"}) == "e1"
    host.send(name, {"kind": "human", "id": "e2", "text": "second"})
    assert host.send(name, {"kind": "human", "id": "e1", "text": "slow"}) == "e1"
    host.send(name, {"kind": "human", "id": "e3", "text": "third"})
    quiet(host, name)
    assert [t for t in texts(host, name) if t in ("slow", "second", "third")] == ["slow", "second", "third"]
    status = host.status(name)
    assert (status.state, status.reason, status.queued, status.error) == ("dormant", "answered", 0, None)
    assert status in host.list()


def test_c98_a_session_is_not_at_rest_while_an_event_is_under_way(host: ServerHost, name: str) -> None:
    for text in ("hello", "slow", "hello again"):
        host.send(name, {"kind": "human", "text": text})
        assert not host.wait(name, timeout=0)
        looks = 0
        while True:
            status = host.status(name)
            if text in texts(host, name):
                break
            looks += 1
            assert status.state == "running" or status.queued == 1
        assert looks
        assert host.wait(name, timeout=30)
        assert (host.status(name).state, host.status(name).queued) == ("dormant", 0)
    assert host.wait(timeout=30)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["exit", "panic", "cancel"])
def test_c94_a_tool_that_would_end_the_server_is_its_own_error(host: ServerHost, name: str, how: str) -> None:
    host.send(name, {"kind": "human", "text": how})
    assert host.wait(name, timeout=30)
    status = host.status(name)
    assert (status.state, status.reason, status.error) == ("dormant", "answered", None)
    told = {"exit": "SystemExit: bye", "panic": "Panic: bye", "cancel": "CancelledError: bye"}
    assert f"Error: {told[how]}" in texts(host, name)
    host.send(name, {"kind": "human", "text": "hello"})
    assert host.wait(name, timeout=30)
    assert texts(host, name)[-1] == "read: hello"


@pytest.mark.slow
def test_many_events_for_one_thread_keep_one_worker_busy(host: ServerHost, name: str) -> None:
    for number in range(12):
        host.send(name, {"kind": "human", "text": "slow" if number == 0 else f"text {number}"})
        assert list(host.background.at_work) in ([name], [])
    other = f"{name}-other"
    host.send(other, {"kind": "human", "text": "hello"})
    until(lambda: texts(host, other))
    quiet(host, name)
    assert [t for t in texts(host, name) if t.startswith("text ")] == [f"text {n}" for n in range(1, 12)]
    until(lambda: host.background.at_work == {})


@pytest.mark.slow
def test_the_host_holds_anything_but_an_answer(host: ServerHost, name: str) -> None:
    host.send(name, {"kind": "human", "text": "ask"})
    until(lambda: host.status(name).reason == "interrupted")
    host.send(name, {"kind": "peer_message", "text": "tick", "sender": "main:other"})
    time.sleep(0.5)
    assert (host.status(name).on, host.status(name).queued) == ("human", 1)
    host.send(name, {"kind": "human", "text": "this"})
    quiet(host, name)
    told = texts(host, name)
    assert told[2:4] == ["this", "read: this"]
    assert "tick" in told[4]


@pytest.mark.slow
def test_an_answer_is_for_the_question_that_it_names_or_follows(
    url: str, host: ServerHost, name: str
) -> None:
    host.send(name, {"kind": "human", "text": "slow"})
    host.send(name, {"kind": "human", "id": "ask", "text": "ask"})
    until(lambda: host.status(name).reason == "interrupted")
    [question] = host.status(name).asks
    host.background.draining.set()  # what follows is judged by the next host
    for key in ("first", "again"):
        host.send(name, {"kind": "human", "id": key, "text": "this", "correlation_id": question})
    with pytest.raises(SessionError, match=f"question 'another', but the session asks {question}"):
        host.send(name, {"kind": "human", "text": "yes", "correlation_id": "another"})
    with ServerHost(url, {"main": "main"}) as other:
        quiet(other, name)
        assert texts(other, name)[-2:] == ["this", "read: this"]
        assert "the session asks nothing now" in str(other.status(name).error)
        other.background.draining.set()
        other.send(name, {"kind": "human", "text": "ask"})
        item = other.store.list_waiting(name)[0]
        early = {
            **item,
            "event": {**item["event"], "id": "early", "text": "this"},
            "order": item["order"] + 1,
        }
    with ServerHost(url, {"main": "main"}) as third:
        until(lambda: third.status(name).reason == "interrupted")
        third.store.put_event(name, early)  # like one that was sent during the run
        third.background.request_run(name)
        time.sleep(0.5)
        assert (third.status(name).state, third.status(name).queued) == ("waiting", 1)
        third.send(name, {"kind": "human", "text": "that"})
        quiet(third, name)
        assert texts(third, name)[-4:] == ["that", "read: that", "this", "read: this"]


@pytest.mark.slow
def test_a_failed_run_is_an_answer_to_whoever_asked(host: ServerHost, name: str) -> None:
    asker = f"{name}-asker"
    host.send(name, {"kind": "human", "text": "fail"})
    host.send(
        name, {"kind": "peer_message", "id": f"q-{name}", "text": "?", "sender": asker, "correlation_id": "q"}
    )
    quiet(host, name)
    assert (host.status(name).state, host.status(name).reason) == ("dormant", "stalled")
    until(lambda: texts(host, asker))
    assert texts(host, asker)[0].startswith("[peer_reply from ")
    assert "You still owe a reply" in texts(host, asker)[0]  # the parrot's last text: it says what it read


@pytest.mark.slow
def test_tools_and_verifiers_may_be_asynchronous(host: ServerHost, name: str) -> None:
    thread = f"waiting:{name}"
    host.send(thread, {"kind": "human", "text": "look"})
    quiet(host, thread)
    assert texts(host, thread) == ["look", "", "seen", "read: seen"]
    host.send(thread, {"kind": "human", "text": "plan"})
    quiet(host, thread)
    [item] = host.snapshot(thread).values["todos"]
    assert (item["content"], item["status"], host.status(thread).error) == ("one", "completed", None)


@pytest.mark.slow
def test_schedules_and_what_is_refused(host: ServerHost, name: str) -> None:
    key = host.schedule(name, "0 9 * * *", "nine")
    assert host.schedule(name, "0 9 * * *", "nine") == key
    [found] = host.schedules(name)
    assert (found.thread, found.cron, found.text) == (name, "0 9 * * *", "nine")
    assert host.cancel(key) is True
    assert list(host.schedules(name)) == []
    for wrong in ("soon", "* * * *", "0 0 30 2 *", "61 * * * *"):
        with pytest.raises(SessionError, match="Invalid cron line"):
            host.schedule(name, wrong, "text")
    with pytest.raises(SessionError, match="nothing was ever sent"):
        host.status(f"{name}-nobody")
    with pytest.raises(SessionError, match="kind must be one of"):
        host.send(name, {"kind": "shout"})
    assert host.cancel("nothing") is False


class Killed(BaseException):
    """The simulated death of a host in the middle of a run."""


def cut(host: ServerHost, monkeypatch: pytest.MonkeyPatch, *ends: BaseException) -> list[BaseException]:
    """Let the next calls of `runs.join` fail while the server continues the run."""
    left, join = list(ends), host.client.runs.join

    def cut_off(*given: Any) -> Any:
        if left:
            raise left.pop(0)
        return join(*given)

    monkeypatch.setattr(host.client.runs, "join", cut_off)
    return left


def asked(host: ServerHost, name: str) -> str:
    """Send a question, and return the thread that waits for the answer."""
    asker = f"{name}-asker"
    question: Any = {"kind": "peer_message", "id": f"q-{name}", "text": "?", "sender": asker}
    host.send(name, {**question, "correlation_id": "q"})
    return asker


@pytest.mark.slow
def test_a_server_that_is_away_in_the_middle_of_a_run_ends_nothing(
    host: ServerHost, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = cut(host, monkeypatch, httpx.ConnectError("away"))
    asker = asked(host, name)
    quiet(host, name)  # the answer is sent before the question is released
    until(lambda: texts(host, asker))
    assert texts(host, asker)[0].startswith("[peer_reply from ")
    assert (left, [t.startswith("[peer_message ") for t in texts(host, name)].count(True)) == ([], 1)


@pytest.mark.slow
def test_the_run_of_a_dead_host_is_completed_by_the_next(
    url: str, host: ServerHost, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut(host, monkeypatch, Killed())
    asker = asked(host, name)
    until(lambda: host.background.at_work == {} and host.snapshot(name).values.get("owed_replies"))
    assert [item["taken"] for item in host.store.list_waiting(name)] == [True]
    with pytest.raises(SessionError, match="nothing was ever sent"):
        host.status(asker)
    with ServerHost(url, {"main": "main"}) as other:
        quiet(other, name)
        until(lambda: texts(other, asker))
        assert texts(other, asker)[0].startswith("[peer_reply from ")
        assert [t.startswith("[peer_message ") for t in texts(other, name)].count(True) == 1
        quiet(other, asker)
