"""Hosts sessions on DBOS, over SQLite or Postgres."""

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from itertools import count
from typing import Any, Self
from uuid import uuid4

import sqlalchemy as sa
from croniter import croniter
from dbos import DBOS, DBOSClient, DBOSConfig
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from wakeloop.errors import SessionError
from wakeloop.sessions.host import (
    CANCELLED,
    CRON_FIELDS,
    PAUSES,
    Schedule,
    SessionStatus,
    accepted,
    agent_of,
    derived_id,
    no_cron_line,
    no_session,
    now,
)
from wakeloop.sessions.locks import Locks
from wakeloop.sessions.mailbox import Mailbox
from wakeloop.sessions.runs import refusal_of
from wakeloop.sessions.worker import AWAY, Graph, Turns
from wakeloop.state import WakeEvent

NAME = "wakeloop"
QUEUE = "wakeloop-turns"
TIMERS = "wakeloop-timers"
VERSION = "1"  # of the workflows below: a worker of another release takes over what this one left
OLDEST_SQLITE = (3, 42)
WAIT = 0.05  # seconds between two looks at what waits
LOOK = 1.0  # seconds between two looks whether to drain
SWEEP = 5  # looks between two for workers that died
REMIND = 60  # looks between two for events that nobody takes
PRUNE = 60  # looks between two for records that are too old
KEEP = timedelta(hours=1)
ENDED = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")  # the engine's words
MOST = 1000  # records that are deleted at once


class Stopped(BaseException):
    """Ends a workflow without an outcome: it stays pending, and whoever comes next runs it again."""


class Post:
    """The way in: stores events and schedules, also from a process that runs no turn.

    `url` is `sqlite:///FILE` or `postgresql://…`. What is stored waits until a host is up.
    """

    def __init__(self, url: str, agents: Mapping[str, Graph] | None = None) -> None:
        self.url = url
        self.agents: Mapping[str, Graph] = agents or {}
        self.mailbox = Mailbox(engine_on(url))
        self.mailbox.create()

    # -- what a host promises ------------------------------------------------------------------------------

    def send(self, thread_id: str, event: WakeEvent) -> str:
        """Store an event for a thread and return its id; a repeat is dropped."""
        agent_of(thread_id, self.agents)
        event = accepted(event)
        self.mailbox.put(thread_id, event)
        self.ring(thread_id, event["id"])  # a repeat, too: its sender may have died between the two
        return event["id"]

    def ring(self, thread: str, key: str) -> None:
        """Put a turn into the queue of a thread; the same id again is the same turn."""
        self._enqueue("turn", key, QUEUE, thread, partition=thread)

    def schedule(self, thread_id: str, cron: str, text: str) -> str:
        """Store a cron line for a thread and return the schedule's id."""
        agent_of(thread_id, self.agents)
        if len(cron.split()) != CRON_FIELDS or not croniter.is_valid(cron):
            raise no_cron_line(cron)
        key = derived_id("schedule", thread_id, cron, text)
        due = following(cron, now())
        self.mailbox.plan(key, thread_id, cron, text, due)
        self.set_timer(key, datetime.fromisoformat(self.mailbox.schedules(key=key)[0].due))
        return key

    def set_timer(self, schedule: str, due: datetime) -> None:
        """Let a schedule fire when it is due; one that is past due fires at once."""
        delay = max((due - now()).total_seconds(), 0.0)
        self._enqueue(
            "timer", f"{schedule}@{due.isoformat()}", TIMERS, schedule, due.isoformat(), delay=delay
        )

    def schedules(self, thread_id: str | None = None) -> Sequence[Schedule]:
        """Return the schedules of one thread or of all."""
        return [Schedule(r.id, r.thread, r.cron, r.text, r.due) for r in self.mailbox.schedules(thread_id)]

    def cancel(self, key: str) -> bool:
        """Remove a schedule, or take back an event that no turn has taken."""
        if self.mailbox.unplan(key):
            return True
        found = self.mailbox.withdraw(key)
        if found is not None and (letter := refusal_of(found[1], found[0], CANCELLED)) is not None:
            self.send(letter.thread, letter.event)
        return found is not None

    def status(self, thread_id: str) -> SessionStatus:
        """Return how a thread stands."""
        found = self.mailbox.sessions(thread_id)
        if not found:
            raise no_session(thread_id)
        return self._status(*found[0])

    def wait(self, thread_id: str | None = None, timeout: float | None = None) -> bool:
        """Stay until no event waits for a thread, or for any; False when `timeout` seconds have passed.

        What waits for a person's answer goes on waiting, so give a timeout where one may be asked for.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.mailbox.waiting(thread_id) if thread_id is not None else self.mailbox.unsettled():
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(WAIT)
        return True

    def list(self) -> Sequence[SessionStatus]:
        """Return every session, by thread id."""
        return [self._status(*row) for row in self.mailbox.sessions()]

    def _status(self, thread: str, queued: int, error: str | None) -> SessionStatus:
        agent = agent_of(thread, self.agents)
        snapshot = self.agents[agent].get_state({"configurable": {"thread_id": thread}})
        return replace(SessionStatus.of(thread, agent, snapshot, queued), error=error)

    def prune(self, age: timedelta = KEEP) -> int:
        """Delete the engine's records of turns and timers that ended so long ago; return their number.

        A host does it by itself (`keep`). Nothing is read there again: ids against repeats are the inbox's.
        """
        before, number = (now() - age).isoformat(), 0
        of: Any = {"status": list(ENDED), "queue_name": [QUEUE, TIMERS], "completed_before": before}
        while ended := self.client.list_workflows(**of, limit=MOST, load_input=False, load_output=False):
            self.client.delete_workflows([record.workflow_id for record in ended])
            number += len(ended)
        return number

    # -- the engine ----------------------------------------------------------------------------------------

    @cached_property
    def client(self) -> DBOSClient:
        """The way to the engine's tables."""
        return DBOSClient(
            system_database_engine=self.mailbox.engine,
            dbos_system_schema=NAME,
            application_name=NAME,
            retry_connection_errors=False,
        )

    def _enqueue(
        self, workflow: str, key: str, queue: str, *args: str, partition: str | None = None, delay: float = 0
    ) -> None:
        options: Any = {"workflow_name": workflow, "workflow_id": key, "queue_name": queue}
        if partition is not None:
            options["queue_partition_key"] = partition
        if delay:
            options["delay_seconds"] = delay
        with contextlib.suppress(
            sa.exc.OperationalError, sa.exc.ProgrammingError
        ):  # no host yet: it will look
            self.client.enqueue(options, *args)

    def close(self) -> None:
        """Close the connections."""
        if "client" in self.__dict__:
            self.client.destroy()
        self.mailbox.engine.dispose()


class DbosHost(Post):
    """Runs sessions: `start(agents)` or a `with` block, then `send`.

    One host a process. On SQLite one process a database (`wakeloop serve` holds a lock); on Postgres any
    number of workers: a turn of a thread runs in one of them at a time, and when one dies the others see that
    its name's lock is free and take over its turns, each under the lock of its thread. `report` is told after
    each turn how the thread stands; `hold` is what a turn holds in the place of that lock; the engine's
    records of ended turns are deleted after `keep` (None: never).
    """

    def __init__(
        self,
        url: str,
        agents: Mapping[str, Graph] | None = None,
        *,
        worker: str | None = None,
        concurrency: int = 16,
        polling: float = 0.2,
        keep: timedelta | None = KEEP,
        report: Callable[[SessionStatus], None] | None = None,
        hold: Callable[[str], AbstractContextManager[Any]] | None = None,
    ) -> None:
        super().__init__(url, agents)
        unique = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self.worker = worker or (unique if on_postgres(url) else "local")
        self.concurrency, self.polling, self.keep = concurrency, polling, keep
        self.locks = Locks(url) if on_postgres(url) else None
        self.hold = hold or (self.locks.thread if self.locks else lambda _: nullcontext())
        told = (lambda thread: report(self.status(thread))) if report else (lambda _: None)
        self.turns = Turns(self.mailbox, self, told)
        self.running: dict[str, RunControl] = {}
        self.waited: set[tuple[str, str]] = set()
        self.draining = threading.Event()
        self.idle = threading.Condition()
        self.open = ExitStack()

    # -- its life ------------------------------------------------------------------------------------------

    def start(self, agents: Mapping[str, Graph] | None = None) -> Self:
        """Begin to run turns: those that a former process left, then what comes."""
        self.agents = agents or self.agents
        if self.locks is not None:
            self.open.enter_context(self.locks.worker(self.worker))
        with self.locks.setting_up() if self.locks is not None else nullcontext():
            apart(self.launch)
        self.mailbox.arrive(self.worker)
        self.catch_up()
        threading.Thread(target=self.watch, name="wakeloop-watch", daemon=True).start()
        return self

    def launch(self) -> None:
        """Start the engine: its workflows, its queues."""
        config: DBOSConfig = {
            "name": NAME,
            "system_database_url": self.url,
            "system_database_engine": None if on_postgres(self.url) else self.mailbox.engine,
            "dbos_system_schema": NAME,
            "executor_id": self.worker,
            "application_version": VERSION,
            "log_level": "ERROR",
            "console_log_level": "ERROR",
        }
        DBOS(config=config)

        @DBOS.workflow(name="turn", max_recovery_attempts=None)
        def turn(thread: str) -> None:
            self.insist(lambda more: self.take_turn(thread, patient=more))

        @DBOS.workflow(name="timer", max_recovery_attempts=None)
        def timer(schedule: str, due: str) -> None:
            self.insist(lambda _: self.fire(schedule, due))

        DBOS.launch()
        DBOS.register_queue(
            QUEUE,
            partition_concurrency=1,
            worker_concurrency=self.concurrency,
            polling_interval_sec=self.polling,
            on_conflict="always_update",
        )
        DBOS.register_queue(TIMERS, polling_interval_sec=self.polling, on_conflict="always_update")

    def catch_up(self) -> None:
        """Ring for what was stored while nobody was there, or was left by a drain; set the timers again."""
        for thread, key in self.mailbox.unsettled():
            self.ring(thread, f"{key}/{uuid4().hex[:8]}")
        self.set_timers()

    def set_timers(self) -> None:
        """Set a timer for each schedule; one that is set stays as it is."""
        for row in self.mailbox.schedules():
            self.set_timer(row.id, datetime.fromisoformat(row.due))

    def drain(self, timeout: float | None = None) -> bool:
        """Begin no turn any more, stop those under way at their next superstep, wait for them."""
        self.draining.set()
        with self.idle:
            for control in self.running.values():
                control.request_drain()
            return self.idle.wait_for(lambda: not self.running, timeout)

    def close(self) -> None:
        """Stop: what runs is asked to stop and goes on at the next start."""
        self.drain(timeout=10)
        self.mailbox.leave(self.worker)
        apart(partial(DBOS.destroy, destroy_registry=True))
        self.open.close()
        if self.locks is not None:
            self.locks.close()
        super().close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)  # turns may be under way in this very loop

    # -- the workflows -------------------------------------------------------------------------------------

    def insist(self, attempt: Callable[[bool], None]) -> None:
        """Call, and again where a database was away; the attempt is told whether more will follow."""
        for tries in count(1):
            try:
                attempt(tries <= len(PAUSES))
            except AWAY:
                if self.draining.wait(PAUSES[min(tries, len(PAUSES)) - 1]):
                    raise Stopped from None
                for graph in self.agents.values():
                    throw_away_cut_connections(graph.checkpointer)
            else:
                return

    def take_turn(self, thread: str, *, patient: bool) -> None:
        """Run the turns of a thread that are due; the queue lets one of a thread run at a time."""
        control, key = RunControl(), uuid4().hex
        with self.idle:
            if self.draining.is_set():
                raise Stopped
            self.running[key] = control
        try:
            with self.hold(thread):
                graph = self.agents[agent_of(thread, self.agents)]
                self.turns.take(graph, thread, control, patient=patient)
        except GraphDrained:
            raise Stopped from None
        finally:
            with self.idle:
                del self.running[key]
                self.idle.notify_all()

    def fire(self, schedule: str, due: str) -> None:
        """Send a schedule's event and set its timer anew: times that passed meanwhile are not made up for."""
        found = self.mailbox.schedules(key=schedule)
        if not found or found[0].due != due:
            return
        row = found[0]
        key = derived_id("cron", schedule, due)
        self.send(row.thread, {"kind": "cron", "id": key, "text": row.text, "time": due})
        after = following(row.cron, now())
        self.mailbox.next_due(schedule, after)
        self.set_timer(schedule, after)

    # -- other workers -------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Look for workers that died, and whether this one is asked to drain, again and again."""
        for look in count(1):
            if self.draining.wait(LOOK):
                return
            with contextlib.suppress(Exception):  # the database is away for a moment: look again later
                if any(draining for worker, _, draining in self.mailbox.workers() if worker == self.worker):
                    self.drain(0)
                if self.locks is not None and look % SWEEP == 0:
                    self.take_over(self.locks)
                if look % REMIND == 0:
                    self.remind()
                if self.keep is not None and look % PRUNE == 0:
                    self.prune(self.keep)

    def remind(self) -> None:
        """Ring for what waited at the last look already, and set timers: who stored it may have died."""
        self.set_timers()
        waiting = set(self.mailbox.unsettled())
        for thread, key in waiting & self.waited:
            self.ring(thread, f"{key}/again")
        self.waited = waiting

    def take_over(self, locks: Locks) -> list[str]:
        """Put the turns of dead workers back into their queues; return the workers' names."""
        dead = []
        pending = DBOS.list_workflows(status="PENDING", load_input=False, load_output=False)
        names = {w.executor_id for w in pending if w.executor_id} | {
            name for name, *_ in self.mailbox.workers()
        }
        for worker in names - {self.worker}:
            with locks.worker(worker) as free:
                if not free:
                    continue
                for queue in (QUEUE, TIMERS):
                    left = DBOS.list_workflows(status="PENDING", executor_id=worker, queue_name=queue)
                    if left:
                        DBOS.resume_workflows([w.workflow_id for w in left], queue_name=queue)
                self.mailbox.leave(worker)
                dead.append(worker)
        return dead


def throw_away_cut_connections(saver: Any) -> None:
    """Let a saver's pool look through its connections: it would hand out those that were cut, one by one."""
    pool = getattr(saver, "conn", None)
    if isinstance(pool, ConnectionPool):
        pool.check()
    elif isinstance(pool, AsyncConnectionPool):
        asyncio.run_coroutine_threadsafe(pool.check(), saver.loop).result()


def apart(call: Callable[[], None]) -> None:
    """Call in a thread without an event loop: the engine refuses to start in one, as in a notebook."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(call).result()


def following(cron: str, after: datetime) -> datetime:
    """Return a cron line's first time after another one, in UTC."""
    return croniter(cron, after).get_next(datetime)


def on_postgres(url: str) -> bool:
    """Tell whether a database is a Postgres server's; else it is a SQLite file."""
    return url.startswith(("postgres://", "postgresql://"))


def engine_on(url: str) -> sa.Engine:
    """Open a database: Postgres with psycopg 3, or a SQLite file that several processes may write to."""
    if on_postgres(url):
        return sa.create_engine(f"postgresql+psycopg://{url.partition('://')[2]}", pool_pre_ping=True)
    engine = sa.create_engine(url, module=sqlite_module())
    sa.event.listen(engine, "connect", patient)
    return engine


def patient(connection: Any, record: object) -> None:  # noqa: ARG001 - the signature of a listener
    """Let writers wait for each other, and take the lock when they begin: one that reads first would fail."""
    connection.isolation_level = "IMMEDIATE"
    for pragma in ("journal_mode=WAL", "busy_timeout=30000", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def sqlite_module() -> Any:
    """Return a SQLite that is new enough for the engine: Python's own, or the one of `pysqlite3-binary`."""
    import sqlite3  # noqa: PLC0415 - Postgres does without

    if sqlite3.sqlite_version_info >= OLDEST_SQLITE:
        return sqlite3.dbapi2
    try:
        from pysqlite3 import dbapi2  # type: ignore[import-untyped]  # noqa: PLC0415 - only where Python's own is too old
    except ModuleNotFoundError:
        raise SessionError(
            f"SQLite {sqlite3.sqlite_version} is too old for durable sessions, which need "
            f"{'.'.join(map(str, OLDEST_SQLITE))}: pip install pysqlite3-binary, or use Postgres."
        ) from None
    return dbapi2
