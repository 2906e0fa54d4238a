"""Edge cases of the host on `langgraph dev`: long threads, kills, failures, cancelled events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from langgraph_sdk.errors import InternalServerError
from waiting import until

from wakeloop import SessionError
from wakeloop.sessions.host_rules import RUN_KEY
from wakeloop.sessions.langgraph_server import ServerHost
from wakeloop.sessions.langgraph_server.server_store import EVENTS, server_thread_id

pytest.importorskip("langgraph_api", reason="the extra `server` is not installed")
pytestmark = [pytest.mark.loopback, pytest.mark.timeout(180), pytest.mark.xdist_group("langgraph-dev")]
HALF = "half \ud800"
KEPT, BACKGROUND = (
    "wakeloop.sessions.langgraph_server.server_store",
    "wakeloop.sessions.langgraph_server.server_runner",
)
ONE_RUN = "wakeloop.sessions.langgraph_server.server_runner"


def texts(host: ServerHost, thread: str) -> list[str]:
    return [m.text for m in host.snapshot(thread).values.get("messages", ())]


def told(host: ServerHost, thread: str, text: str, key: str) -> None:
    """Send a message, and wait until its run has ended."""
    host.send(thread, {"kind": "human", "id": key, "text": text})
    until(lambda: texts(host, thread)[-1:] == [f"read: {text}"])
    until(lambda: host.background.at_work == {})


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{BACKGROUND}.RETRY_PAUSES", (0.02,) * 5)


# -- steering (rule 26) --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_words_steered_in_at_rest_or_while_no_host_is_up_start_a_run(host: ServerHost, name: str) -> None:
    host.steer(name, "Use tabs.")
    until(lambda: texts(host, name)[-2:] == ["Use tabs.", "read: Use tabs."])
    until(lambda: host.background.at_work == {})
    assert host.status(name).sent == 0
    host.background.draining.set()
    host.steer(name, "And now?", {"add": ["a"]})
    assert host.status(name).sent == 1
    host.background.draining.clear()
    host.catch_up()
    until(lambda: texts(host, name).count("And now?") == 1 and host.status(name).items == 1)
    until(lambda: host.status(name).sent == 0)


# -- further pages -----------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of three entries instead of a thousand."""
    monkeypatch.setattr(f"{KEPT}.PAGE_SIZE", 3)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_an_event_after_a_page_of_settled_ones_is_taken(host: ServerHost, name: str) -> None:
    for number in range(5):
        told(host, name, f"text {number}", f"e{number}")
    # a repeat is still recognised
    assert host.send(name, {"kind": "human", "id": "e0", "text": "text 0"}) == "e0"
    told(host, name, "the last", "last")
    assert texts(host, name).count("text 0") == 1
    assert list(host.store.list_waiting(name)) == []


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_more_than_a_page_waits(host: ServerHost, name: str) -> None:
    host.background.draining.set()
    for number in range(8):
        host.send(name, {"kind": "human", "text": f"text {number}"})
    assert host.status(name).queued == 8
    host.background.draining.clear()
    host.catch_up()
    until(lambda: len([t for t in texts(host, name) if t.startswith("text")]) == 8)


@pytest.mark.usefixtures("small")
def test_more_than_a_page_of_threads_and_schedules_is_listed(host: ServerHost, name: str) -> None:
    threads = [f"{name}-{number}" for number in range(5)]
    for thread in threads:
        host.store.ensure_thread(thread)
    assert set(threads) <= set(host.store.list_threads())
    keys = [host.schedule(name, f"{number} 0 1 1 *", "tick") for number in range(5)]
    assert [schedule.id for schedule in host.schedules(name)] == sorted(keys)
    assert [host.cancel(key) for key in keys] == [True] * 5


# -- kills -------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The simulated death of a host."""


@pytest.fixture
def killed(host: ServerHost, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let a host die right before or right after it starts its next run."""
    create = host.client.runs.create

    def arm(when: str) -> None:
        def begin(*given: Any, **more: Any) -> Any:
            if when == "after":
                create(*given, **more)
            monkeypatch.setattr(host.client.runs, "create", create)
            raise Killed

        monkeypatch.setattr(host.client.runs, "create", begin)

    return arm


@pytest.fixture
def other(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerHost]:
    """Another host, which has not caught up yet."""
    monkeypatch.setattr(f"{ONE_RUN}.BEGIN_CHECKS", 3)
    host = ServerHost(url, {"main": "main"})
    yield host
    host.close()


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_one_answer_is_given_to_one_question(
    host: ServerHost, other: ServerHost, name: str, killed: Callable[[str], None], when: str
) -> None:
    host.send(name, {"kind": "human", "text": "ask"})
    until(lambda: host.status(name).reason == "interrupted")
    until(lambda: host.background.at_work == {})
    killed(when)
    host.send(name, {"kind": "human", "text": "again"})  # the answer makes the model ask once more
    until(lambda: host.background.at_work == {})
    other.catch_up()
    until(lambda: other.background.at_work == {} and not other.store.list_waiting(name))
    snapshot = other.snapshot(name)
    assert [m.text for m in snapshot.values["messages"] if m.type == "tool"] == ["again"]
    assert [one.value for one in snapshot.interrupts] == ["which?"]
    other.send(name, {"kind": "human", "text": "this"})
    until(lambda: texts(other, name)[-1:] == ["read: this"])


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_input_is_used_once(
    host: ServerHost, other: ServerHost, name: str, killed: Callable[[str], None], when: str
) -> None:
    killed(when)
    host.send(name, {"kind": "human", "text": "hello"})
    until(lambda: host.background.at_work == {})
    assert [(item["taken"], item["run"]) for item in host.store.list_waiting(name)] == [
        (True, item["event"]["id"]) for item in host.store.list_waiting(name)
    ]
    other.catch_up()
    until(lambda: not other.store.list_waiting(name))
    assert texts(other, name) == ["hello", "read: hello"]
    runs: Any = other.client.runs.list(server_thread_id(name))
    assert len(runs) == 1


@pytest.mark.slow
def test_two_hosts_that_see_one_event_run_it_once(host: ServerHost, other: ServerHost, name: str) -> None:
    host.background.draining.set()
    for number in range(4):
        host.send(name, {"kind": "human", "text": f"text {number}"})
    host.background.draining.clear()
    for each in (host, other):
        each.background.request_run(name)
    until(lambda: host.background.at_work == {} == other.background.at_work)
    until(lambda: not host.store.list_waiting(name))
    assert [t for t in texts(host, name) if t.startswith("text")] == [f"text {n}" for n in range(4)]


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_failing_model_is_the_sessions_error(host: ServerHost, name: str) -> None:
    host.send(name, {"kind": "human", "text": "fail"})
    until(lambda: host.status(name).error == "ValueError: this model fails")
    until(lambda: host.background.at_work == {})
    told(host, name, "hello", "next")
    assert (host.status(name).error, host.status(name).queued) == (None, 0)


@pytest.mark.slow
def test_an_unknown_assistant_is_the_sessions_error(url: str, other: ServerHost, name: str) -> None:
    with ServerHost(url, {"main": "nobody"}) as wrong:
        wrong.send(name, {"kind": "human", "text": "hello"})
        until(lambda: "Invalid assistant: 'nobody'" in (wrong.status(name).error or ""))
        until(lambda: wrong.background.at_work == {})
        assert wrong.status(name).queued == 1
    other.catch_up()
    until(lambda: other.background.at_work == {})
    assert other.status(name).queued == 1  # not by itself
    other.send(name, {"kind": "kick"})
    until(lambda: texts(other, name) == ["hello", "read: hello"])
    until(lambda: other.status(name).error is None)


def failing(*_: Any, **__: Any) -> Any:
    """A server that answers 500."""
    request = httpx.Request("POST", "http://localhost")
    raise InternalServerError("the disk is full", response=httpx.Response(500, request=request), body=None)


@pytest.mark.usefixtures("quick")
def test_a_server_that_always_fails_is_given_up(
    host: ServerHost, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(host.client.runs, "create", lambda *_, **__: tries.append(1) or failing())
        patch.setattr(f"{ONE_RUN}.BEGIN_CHECKS", 0)
        host.send(name, {"kind": "human", "text": "hello"})
        until(lambda: (host.status(name).error or "").endswith("the disk is full"))
        until(lambda: host.background.at_work == {})
        assert (len(tries), host.status(name).queued) == (6, 1)
    told(host, name, "again", "again")
    assert texts(host, name)[:2] == ["hello", "again"]
    assert host.status(name).error is None


@pytest.mark.slow
def test_an_answer_whose_run_has_failed_waits_as_a_message(
    host: ServerHost, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.send(name, {"kind": "human", "text": "ask"})
    until(lambda: host.status(name).asks and host.background.at_work == {})
    names: list[str] = []
    with monkeypatch.context() as patch:  # a run that ends before its step has read the answer
        create = lambda *_, metadata, **__: names.append(metadata[RUN_KEY]) or {"run_id": "gone"}  # noqa: E731
        patch.setattr(host.client.runs, "create", create)
        patch.setattr(
            host.client.runs, "join", lambda *_: {"__error__": {"error": "KeyError", "message": "'x'"}}
        )
        patch.setattr(host.client.runs, "get", lambda *_: {"status": "error"})
        host.send(name, {"kind": "human", "text": "the blue one"})
        until(lambda: host.status(name).error == "KeyError: 'x'" and host.background.at_work == {})
    assert (host.status(name).queued, host.status(name).asks) == (1, ())
    host.send(name, {"kind": "kick"})
    until(lambda: texts(host, name)[-1:] == ["read: the blue one"])
    assert host.store.find_run(name, names[0]) is None  # it has its own name


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_an_error_that_cannot_be_stored_is_reported_by_the_host(
    host: ServerHost, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(host.client.runs, "create", failing)
        patch.setattr(host.background, "give_up", failing)
        host.send(name, {"kind": "human", "text": "hello"})
        until(lambda: (host.status(name).error or "").endswith("the disk is full"))
    told(host, name, "again", "again")
    assert host.status(name).error is None


@pytest.mark.slow
def test_a_thread_that_cannot_be_read_hides_no_other(
    host: ServerHost, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = f"{name}-good"
    for thread in (name, good):
        told(host, thread, "hello", "e")
    read = host.client.threads.get_state
    monkeypatch.setattr(
        host.client.threads,
        "get_state",
        lambda key: failing() if key == server_thread_id(name) else read(key),
    )
    rows = {status.thread: status for status in host.list()}
    assert (rows[name].state, rows[good].state) == ("damaged", "dormant")
    assert "the disk is full" in (rows[name].error or "")


@pytest.mark.slow
def test_a_damaged_item_blocks_no_other_thread(host: ServerHost, other: ServerHost, name: str) -> None:
    good = f"{name}-good"
    host.background.draining.set()
    for thread in (name, good):
        host.send(thread, {"kind": "human", "text": "hello"})
    host.client.store.put_item(
        (EVENTS, server_thread_id(name)), key="bad", value={"kind": "human"}, index=False
    )
    other.catch_up()
    until(lambda: texts(other, good) == ["hello", "read: hello"])
    rows = {status.thread: status for status in other.list()}
    assert (rows[name].state, rows[good].state) == ("damaged", "dormant")
    host.client.store.delete_item((EVENTS, server_thread_id(name)), key="bad")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda host: host.send("main", {"kind": "kick", "id": HALF}),
            "The event's id",
        ),
        (lambda host: host.send("main", {"kind": "human", "text": HALF}), "The event's text"),
        (lambda host: host.send(HALF, {"kind": "kick"}), "The thread's id"),
        (lambda host: host.schedule(HALF, "0 9 * * *", "x"), "The thread's id"),
        (lambda host: host.status(HALF), "The thread's id"),
        (lambda host: host.schedules(HALF), "The thread's id"),
        (lambda host: host.cancel(HALF), "The id"),
        (lambda host: host.schedule("main", "* * * * *", HALF), "The text"),
        (lambda host: host.schedule("main", f"{HALF} * * *", "x"), "The cron line"),
    ],
)
def test_half_a_character_is_refused_in_one_sentence(host: ServerHost, call: Any, told: str) -> None:
    with pytest.raises(SessionError) as refused:
        call(host)
    assert str(refused.value) == rf"{told} contains a lone surrogate (\ud800), which UTF-8 cannot encode."


def test_a_wrong_address_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    host = ServerHost("http://user:secret-word@127.0.0.1:9", {"main": "main"})

    def away(*_: Any, **__: Any) -> Any:  # what its SDK raises after seven seconds
        raise httpx.ConnectError("[Errno 111] Connection refused")

    for of, method in ((host.client.threads, "create"), (host.client.threads, "search")):
        monkeypatch.setattr(of, method, away)
    for ask in (host.catch_up, host.list, lambda: host.send("main", {"kind": "kick"})):
        with pytest.raises(
            SessionError, match=r"127\.0\.0\.1:9 cannot be reached .*Connection refused"
        ) as seen:
            ask()
        assert "secret-word" not in str(seen.value)
    host.close()


@pytest.mark.parametrize(
    ("path", "graph", "call"),
    [
        ("/elsewhere", "main", lambda host, _: host.catch_up()),
        ("/elsewhere", "main", lambda host, name: host.send(name, {"kind": "kick"})),
        ("", "nobody", lambda host, name: host.schedule(name, "0 0 1 1 *", "text")),
    ],
)
def test_a_missing_address_or_graph_is_reported_in_one_sentence(
    url: str, name: str, path: str, graph: str, call: Any
) -> None:
    host = ServerHost(f"{url}{path}", {"main": graph})
    with pytest.raises(SessionError) as refused:
        call(host, name)
    assert str(refused.value).startswith(
        f"The server at {url}{path} does not know the requested item (NotFound"
    )
    host.close()


@pytest.mark.slow
def test_a_thread_that_disappears_while_all_are_listed_hides_no_other(host: ServerHost, name: str) -> None:
    for thread in ("gone", "here"):
        host.store.ensure_thread(f"{name}-{thread}")
    found = host.store.list_threads()
    host.client.threads.delete(server_thread_id(f"{name}-gone"))
    host.store.threads = lambda: found  # type: ignore[method-assign]
    assert {f"{name}-gone", f"{name}-here"} & {s.thread for s in host.list()} == {f"{name}-here"}
    with pytest.raises(SessionError, match="Unknown session"):
        host.snapshot(f"{name}-gone")


# -- cancelled events --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_event_cancelled_during_a_run_does_not_come_back(
    host: ServerHost, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.background.draining.set()
    host.send(name, {"kind": "human", "id": f"{name}-1", "text": "one"})
    host.send(name, {"kind": "human", "id": f"{name}-2", "text": "two"})
    host.background.draining.clear()
    read, left = host.store.list_waiting, [f"{name}-1"]

    def waiting(thread: str) -> Any:
        found = read(thread)
        if left:
            assert host.cancel(left.pop()) is True
        return found

    monkeypatch.setattr(host.store, "list_waiting", waiting)
    host.background.request_run(name)
    until(lambda: host.background.at_work == {})
    assert texts(host, name) == ["two", "read: two"]
    assert host.send(name, {"kind": "human", "id": f"{name}-1", "text": "one"}) == f"{name}-1"
    assert list(read(name)) == []


@pytest.mark.slow
def test_whoever_waits_for_a_cancelled_event_is_informed_whatever_dies(
    host: ServerHost, other: ServerHost, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asker, key = f"{name}-asker", f"{name}-q"
    asks: Any = {"kind": "peer_message", "id": key, "text": "?", "sender": asker, "correlation_id": "q"}
    host.background.draining.set()
    host.send(name, asks)
    with monkeypatch.context() as patch:
        patch.setattr("wakeloop.sessions.langgraph_server.server_runner.make_refusal", dying)
        with pytest.raises(Killed):
            host.cancel(key)
    other.catch_up()
    until(lambda: other.background.at_work == {} and not other.store.list_waiting(name))
    until(lambda: texts(other, asker)[:1])
    assert "cancelled before it was read" in texts(other, asker)[0]
    assert texts(other, name) == []


def dying(*_: Any) -> Any:
    raise Killed


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["taken", "taken since it was looked up"])
def test_an_event_that_a_run_has_taken_is_not_cancelled(
    host: ServerHost, name: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = f"{name}-1"
    host.send(name, {"kind": "human", "id": key, "text": "slow"})
    until(lambda: host.store.find_run(name, key) is not None)
    if late:
        found = host.store.find_event(name, key)
        assert found is not None
        monkeypatch.setattr(host.store, "find_event", lambda thread, _: {**found, "taken": thread != name})
    assert host.cancel(key) is False
    assert host.store.find_settled(name, key) is None
    until(lambda: texts(host, name)[-1:] == ["read: waited"])


# -- askers ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_three_askers_in_a_cycle_know_each_other_by_name_and_are_answered(host: ServerHost) -> None:
    """The server identifies threads by its own ids."""
    ring = [f"main:circle-{one}" for one in "abc"]
    others = [*ring[1:], ring[0]]
    for one, other in zip(ring, others, strict=True):
        host.send(one, {"kind": "human", "text": f"peer {other}"})

    def replies(one: str) -> list[str]:
        return [t.partition(",")[0] for t in texts(host, one) if t.startswith("[peer_reply")]

    until(lambda: [replies(one) for one in ring] == [[f"[peer_reply from {other}"] for other in others], 60)
    until(lambda: [host.status(one).state for one in ring] == ["dormant"] * 3)
