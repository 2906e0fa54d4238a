"""Connections are cut while a thread runs: it has one owner, and its effects happen once."""

from __future__ import annotations

import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from processes import start_python
from test_outage import hosted, patiently, throw_out
from waiting import until

from wakeloop import SessionError, create_todo_agent
from wakeloop.sessions.dbos import DbosHost
from wakeloop.sessions.dbos.dbos_host import fence_graph
from wakeloop.sessions.host import TakenOverError
from wakeloop.sessions.postgres_locks import (
    THREAD,
    WORKER,
    LockObservation,
    Locks,
    lock_number,
)
from wakeloop.testing import ScriptedModel, calls, says

NUMBER = lock_number(THREAD("x"))
GRACE = 1.0


def cut(locks: Locks, url: str) -> None:
    """End the connection of these locks."""
    assert locks.connection is not None
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s)", [locks.connection.info.backend_pid])


@contextmanager
def kept(locks: Locks) -> Iterator[Locks]:
    """Locks with a thread that keeps the connection alive."""
    with closing(locks):
        threading.Thread(target=locks.keep_alive, daemon=True).start()
        yield locks


def entering(locks: Locks, thread: str = "x") -> threading.Event:
    """Wait for a thread's lock in the background; the event is set once it is held."""
    entered = threading.Event()

    def wait() -> None:
        with suppress(psycopg.OperationalError), locks.hold_thread(thread):
            entered.set()

    threading.Thread(target=wait, daemon=True).start()
    return entered


def mine() -> bool:
    raise AssertionError("nobody asks: it was not away for long")


# -- locks -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_c51_an_owner_with_a_broken_connection_regains_its_locks_before_others_may_take_them(
    postgres: str,
) -> None:
    with closing(Locks(postgres, grace=5.0)) as there, kept(Locks(postgres, grace=5.0)) as here:
        with here.hold_thread("x"):
            entered = entering(there)
            until(lambda: here.find_holder(NUMBER))
            time.sleep(0.5)  # the other sees who has it
            for _ in range(3):
                former = here.connection
                cut(here, postgres)
                until(lambda former=former: here.connection is not former and here.find_holder(NUMBER))
                here.confirm_held("x", mine)
                time.sleep(0.5)  # it sees who has it now
                assert not entered.is_set()
        assert entered.wait(4)  # given back, so without the grace period


def test_c51_a_lock_is_taken_over_only_after_the_grace_period(postgres: str) -> None:
    there, here = Locks(postgres, grace=GRACE), Locks(postgres, grace=GRACE)
    with closing(there), closing(here), here.hold_thread("x"):
        entered = entering(there)
        time.sleep(0.5)
        begun = time.monotonic()
        cut(here, postgres)  # nobody looks after it, as in a process that hangs
        assert entered.wait(30)
        assert time.monotonic() - begun >= GRACE
    assert here.held == set()


def test_c51_a_run_gives_up_only_after_its_thread_was_taken_over(postgres: str) -> None:
    asked: list[bool] = []

    def is_mine(answer: bool) -> bool:
        asked.append(answer)
        return answer

    there, here = Locks(postgres, grace=0.3), Locks(postgres, grace=0.3)
    with closing(there), closing(here), here.hold_thread("x"):
        cut(here, postgres)
        time.sleep(0.4)
        here.confirm_held("x", lambda: is_mine(True))  # away for long, and nobody came
        here.confirm_held("x", mine)  # that is known now
        cut(here, postgres)
        time.sleep(0.4)
        with pytest.raises(TakenOverError, match="has taken over thread 'x'"):
            here.confirm_held("x", lambda: is_mine(False))  # another had it, and gave it back
        cut(here, postgres)
        assert there.acquire(NUMBER)
        time.sleep(0.4)
        with pytest.raises(TakenOverError):
            here.confirm_held("x", lambda: is_mine(True))
        with pytest.raises(TakenOverError):
            here.confirm_held("x", lambda: is_mine(True))
    assert asked == [True, False]


def test_a_half_dead_former_connection_blocks_nothing(postgres: str) -> None:
    with closing(Locks(postgres)) as here, here.hold_thread("x"):
        former, here.connection = here.connection, None  # the client gave it up, but the server still has it
        here.confirm_held("x", lambda: True)
        assert here.find_holder(NUMBER) is not None
        assert here.lost == set()
        assert former is not None
        with pytest.raises(psycopg.OperationalError):
            former.execute("SELECT 1")


def test_a_workers_name_comes_back_when_another_lets_go(postgres: str) -> None:
    number = lock_number(WORKER("one"))
    with (
        closing(Locks(postgres)) as there,
        closing(Locks(postgres)) as here,
        here.hold_worker("one") as taken,
    ):
        assert taken
        cut(here, postgres)
        until(lambda: there.acquire(number))
        here.check_connection()
        assert here.lost == {number}
        there.release(number)
        here.check_connection()
        assert (here.lost, there.acquire(number)) == (set(), False)


@pytest.mark.slow
def test_a_worker_counts_as_dead_once_its_name_was_free_for_the_grace_period(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wakeloop.sessions.dbos.watchdog.CHECK_EVERY", 3600.0)
    with DbosHost(postgres, {}, worker="here", grace=0.5) as host, closing(Locks(postgres)) as there:

        def left() -> list[str]:
            host.watchdog.take_over()
            return [name for name, *_ in host.mailbox.list_workers()]

        both = ["here", "other"]
        host.mailbox.register_worker("other")
        with there.hold_worker("other"):
            assert [left(), time.sleep(0.6), left()] == [both, None, both]
        assert left() == both  # its name is free from now on
        with there.hold_worker("other"):
            assert [time.sleep(0.6), left()] == [None, both]  # it is back
        assert left() == both
        assert host.locks is not None
        cut(host.locks, postgres)
        assert [time.sleep(0.6), left()] == [None, both]  # nobody looked in between
        assert [time.sleep(0.6), left()] == [None, ["here"]]


@pytest.mark.parametrize(
    ("seen", "lives", "free"),
    [
        ([None, None], True, [False, True]),  # never seen held: it may have broken
        ([(1, "a"), None], True, [False, True]),  # given back
        ([(1, "a"), None, None], False, [False, False, True]),  # its holder is gone
        ([(1, "a"), None, (2, "b"), None], False, [False, False, False, False]),  # it came back
    ],
)
def test_when_a_lock_may_be_taken(
    seen: list[Any], lives: bool, free: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 100, 10))
    monkeypatch.setattr("wakeloop.sessions.postgres_locks.time.monotonic", lambda: next(clock))
    found = LockObservation()
    assert [found.is_free(holder, lambda _: lives, 10.0) for holder in seen] == free


# -- what ended while the database was away -----------------------------------------------------------------


class Away(InMemorySaver):
    """A saver whose database is away for some calls."""

    left = 0

    def put_writes(self, *args: Any, **kwargs: Any) -> None:
        if self.left:
            self.left -= 1
            raise psycopg.OperationalError("the connection is closed")
        super().put_writes(*args, **kwargs)


@pytest.mark.parametrize("door", ["sync", "async"])
async def test_c51_a_result_waits_for_the_database_and_the_call_is_not_run_again(
    door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wakeloop.platform.outages.PAUSES", (0.01,))
    saver, ran = Away(), list[str]()

    def work() -> str:
        """Work."""
        ran.append("work")
        saver.left = 3
        return "done"

    model = ScriptedModel([calls(("work", {})), says("bye")])
    graph = fence_graph(create_todo_agent(model, [work], checkpointer=saver), lambda: None, threading.Event())
    thread: Any = {"configurable": {"thread_id": "t"}}
    given = {"messages": [("user", "go")]}
    if door == "sync":
        result = graph.invoke(given, thread, durability="sync")
    else:
        result = await graph.ainvoke(given, thread, durability="sync")
    assert [m.text for m in result["messages"]] == ["go", "", "done", "bye"]
    assert (ran, saver.left) == (["work"], 0)


def test_c51_a_run_whose_thread_was_taken_over_stops_before_its_next_superstep() -> None:
    gone = list[str]()

    def confirm() -> None:
        if gone:
            raise TakenOverError("t")

    def work() -> str:
        """Work."""
        gone.append("taken over")
        return "done"

    model = ScriptedModel([calls(("work", {}))])
    agent = create_todo_agent(model, [work], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "t"}}
    with pytest.raises(TakenOverError):
        fence_graph(agent, confirm, threading.Event()).invoke(
            {"messages": [("user", "go")]}, thread, durability="sync"
        )
    model.assert_done()
    snapshot = agent.get_state(thread)
    assert snapshot.next == ("run_tools",)
    assert snapshot.tasks[0].result is None  # the former owner's result is not written


@pytest.mark.slow
def test_c51_a_cut_in_a_tool_under_two_workers_doubles_nothing(postgres: str, tmp_path: Path) -> None:
    """The other worker sees that the first one's name is free, and still leaves its run alone."""
    ran, both = list[int](), threading.Event()

    def work(n: int) -> str:
        """Work."""
        ran.append(n)
        assert both.wait(60)
        throw_out(postgres)
        time.sleep(3)  # two of these are longer than the time between two checks for dead workers
        return f"{n} done"

    log = tmp_path / "elsewhere"
    idle, pipe = Path(__file__).with_name("idle_worker.py"), subprocess.PIPE
    model = ScriptedModel([*(calls(("work", {"n": n})) for n in range(3)), says("all done")])
    with hosted(postgres, model, work) as host:
        host.send("main", {"kind": "human", "text": "go"})
        until(lambda: ran)
        with start_python(idle, postgres, str(log), stdin=pipe, stdout=pipe) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "up\n"
            both.set()
            until(lambda: ran[-1:] == [2] or log.exists())
            assert patiently(lambda: host.wait("main", timeout=60))
            assert patiently(lambda: host.status("main").reason) == "answered"
            other.communicate()
    assert (ran, log.exists()) == ([0, 1, 2], False)
    model.assert_done()


# -- a SQLite file, a name ----------------------------------------------------------------------------------


def test_a_second_host_on_a_sqlite_file_is_refused_and_the_first_continues(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    model = ScriptedModel([says("here I am")])
    agent = create_todo_agent(model, checkpointer=InMemorySaver())
    (tmp_path / "link.db").symlink_to(tmp_path / "sessions.db")
    with DbosHost(url, {"main": agent}, polling=0.05) as host:
        for same in (url, f"sqlite:///{tmp_path / 'link.db'}"):
            with pytest.raises(
                SessionError, match=r"Another host is using the sessions of '.*\.db'\. Stop it"
            ):
                DbosHost(same, {"main": agent}).start()
        host.send("main", {"kind": "human", "text": "go"})
        assert host.wait("main", timeout=60)
        assert host.status("main").reason == "answered"
    with DbosHost(url, {"main": agent}):  # it is free again
        pass
    assert stat.S_IMODE((tmp_path / "sessions.db-host").stat().st_mode) == 0o600
    model.assert_done()


def test_a_second_worker_with_the_same_name_is_refused(postgres: str) -> None:
    with closing(Locks(postgres)) as locks, locks.hold_worker("one"):
        with pytest.raises(SessionError, match=r"Worker name 'one' is already taken\. Give each worker"):
            DbosHost(postgres, {}, worker="one").start()
        assert locks.find_worker("one") is not None
