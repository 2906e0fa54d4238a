"""Ids are unique per thread, and text that cannot be stored is refused in one sentence."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from host_stage import Stage
from memory_host import MemoryHost

from wakeloop import SessionError
from wakeloop.sessions.dbos import SessionClient
from wakeloop.testing import calls

HALF = "half \ud800"
TOLD = r"contains a lone surrogate (\ud800), which UTF-8 cannot encode."
AGENTS: Any = {"main": None, "ada": None}


# -- unique by thread and id -----------------------------------------------------------------------------


def test_c49_one_id_for_two_threads_reaches_both(host: Stage) -> None:
    host.agent("ada", "Heard.").agent("bob", "Heard, too.")
    for thread in ("ada", "bob", "ada"):  # the third is a repeat
        assert host.send(thread, {"kind": "human", "id": "news", "text": f"News for {thread}."}) == "news"
    host.settle()
    assert [host.last(name) for name in ("ada", "bob")] == ["News for ada.", "News for bob."]
    assert [host.asked(name) for name in ("ada", "bob")] == [1, 1]
    assert host.turns == ["ada", "bob"]
    host.done()


@pytest.mark.slow
def test_c49_two_threads_with_one_id_settle_and_are_cancelled_separately(host: Stage) -> None:
    host.agent("ada", ConnectionError("dead"), "Again.").agent("bob", "Fine.")
    for thread in ("ada", "bob"):
        host.send(thread, {"kind": "human", "id": "news", "text": "news"})
    host.turn("ada")
    assert [status.queued for status in host.list()] == [0, 1]
    host.settle()
    assert host.ending("bob") == ("dormant", "answered")
    if not isinstance(host, MemoryHost):
        assert [bool(status.error) for status in host.list()] == [True, False]
    for thread in ("ada", "bob"):
        host.send(thread, {"kind": "kick", "id": "kick"})
    assert host.cancel("kick")
    assert not host.cancel("kick")
    assert [status.queued for status in host.list()] == [0, 0]
    host.say("ada", "hello?")
    host.done()


def test_two_askers_with_one_id_are_both_answered(host: Stage) -> None:
    answer = calls(("reply_to_peer", {"message": "To you alone."}))
    host.agent("ada", answer, "To the other.", auto_continue=False).agent("bob", "Heard.").agent(
        "cy", "Heard."
    )
    for asker in ("bob", "cy"):
        asks: Any = {"kind": "peer_message", "text": "Well?", "sender": asker, "correlation_id": "1"}
        host.send("ada", asks)
    host.settle()
    assert [host.sent("peer_reply", to) for to in ("bob", "cy")] == [["To you alone."], ["To the other."]]
    assert host.values("ada")["owed_replies"] == []
    host.done()


# -- what cannot be stored -------------------------------------------------------------------------------

EVENTS_WITH_HALVES: list[dict[str, Any]] = [
    {"kind": "human", "text": HALF},
    {"kind": "human", "text": "x", "id": HALF},
    {"kind": "human", "text": "x", "correlation_id": HALF},
    {"kind": "human", "text": "x", "time": HALF},
    {"kind": "peer_message", "text": "x", "sender": HALF},
    {"kind": "peer_message", "text": "x", "chain": ["a", HALF]},
]


@pytest.mark.parametrize("event", EVENTS_WITH_HALVES, ids=lambda event: list(event)[-1])
def test_half_a_character_in_an_event_is_refused_in_one_sentence(host: Stage, event: Any) -> None:
    host.agent("ada")
    with pytest.raises(SessionError) as refused:
        host.send("ada", event)
    assert str(refused.value) == f"The event's {list(event)[-1]} {TOLD}"
    assert host.list() == []


def test_half_a_character_in_a_thread_is_refused_in_one_sentence(host: Stage) -> None:
    host.agent("main")
    with pytest.raises(SessionError) as refused:
        host.send(HALF, {"kind": "kick"})
    assert str(refused.value) == f"The thread's id {TOLD}"
    with pytest.raises(SessionError):
        host.schedule(HALF, "* * * * *", "x")
    with pytest.raises(SessionError):
        host.status(HALF)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda client: client.schedule("main", "* * * * *", HALF), f"The text {TOLD}"),
        (
            lambda client: client.schedule("main", HALF, "x"),
            r"Invalid cron line 'half \ud800': expected five fields",
        ),
        (lambda client: client.schedules(HALF), f"The thread's id {TOLD}"),
        (lambda client: client.wait(HALF), f"The thread's id {TOLD}"),
        (lambda client: client.cancel(HALF), f"The id {TOLD}"),
    ],
)
def test_half_a_character_anywhere_is_refused_in_one_sentence(
    call: Any, sentence: str, tmp_path: Path
) -> None:
    with closing(SessionClient(f"sqlite:///{tmp_path / 'events.db'}", AGENTS)) as client:
        with pytest.raises(SessionError) as refused:
            call(client)
        assert str(refused.value).startswith(sentence)
        assert (client.schedules(), client.mailbox.list_sessions()) == ([], [])


NUL, LONG = "contains a NUL, which Postgres cannot store.", "is longer than 1,000 bytes."


@pytest.mark.parametrize(("name", "why"), [("ada:\0", NUL), ("ada:" + "é" * 499, LONG)], ids=["nul", "long"])
def test_a_name_that_postgres_cannot_hold_is_refused_in_one_sentence(
    host: Stage, name: str, why: str
) -> None:
    host.agent("ada")
    calls: dict[str, Any] = {
        "thread's id": lambda: host.send(name, {"kind": "kick"}),
        "event's id": lambda: host.send("ada", {"kind": "kick", "id": name}),
        "event's sender": lambda: host.send("ada", {"kind": "peer_message", "text": "x", "sender": name}),
    }
    for what, call in calls.items():
        with pytest.raises(SessionError) as refused:
            call()
        assert str(refused.value) == f"The {what} {why}"
    assert host.list() == []


def test_the_longest_names_are_stored(postgres: str) -> None:
    """Random letters, which an index cannot compress."""
    thread, key = (
        "".join(Random(seed).choices("0123456789abcdefghijklmnopqrstuvwxyz", k=995)) for seed in "ab"
    )
    with closing(SessionClient(postgres, AGENTS)) as client:
        assert client.send(f"ada:{thread}", {"kind": "kick", "id": key}) == key
        assert client.schedule("main", "0 0 1 1 *", "with a \0 in it")
        assert client.schedules()[0].text == "with a  in it"
        for call in (client.cancel, client.schedules, client.wait, client.status):
            with pytest.raises(SessionError, match="contains a NUL"):
                call("a\0b")
