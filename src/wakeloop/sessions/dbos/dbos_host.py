"""Hosts sessions on DBOS: a worker's life, and its runs."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import timedelta
from functools import partial
from typing import Any, Self
from uuid import uuid4

from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from wakeloop.sessions.dbos.cron_line import following
from wakeloop.sessions.dbos.database import on_postgres
from wakeloop.sessions.dbos.outage import Stopped, insist
from wakeloop.sessions.dbos.post import Post
from wakeloop.sessions.dbos.queues import KEEP
from wakeloop.sessions.dbos.watch import Watch
from wakeloop.sessions.dbos.workflows import apart, launch, stop
from wakeloop.sessions.host import SessionStatus, agent_of, derived_id, now
from wakeloop.sessions.worker import Graph, Runs


class DbosHost(Post):
    """Runs sessions: `start(agents)` or a `with` block, then `send`.

    One host a process. On SQLite one process a database (`wakeloop serve` holds a lock); on Postgres any
    number of workers: a thread runs in one of them at a time, and when one dies the others see that its
    name's lock is free and take over its runs, each under the lock of its thread.

    Args:
        url: `sqlite:///FILE` or `postgresql://…`, for events, schedules and the engine's records.
        agents: The agents by name, compiled with a checkpointer; or give them to `start`.
        worker: This process's name among the workers of the database, which must be its own. By default one
            made of machine, process and chance on Postgres, `local` on SQLite.
        concurrency: How many threads this process runs at once; others wait in the queue. By default 16.
        polling: Seconds between two looks into the queues, so what an event waits at most while a worker is
            free. By default 0.2.
        keep: How long the engine's records of ended runs are kept before they are deleted; None for ever. By
            default an hour.
        report: Called after each run of a thread, in the run's own thread, with how the session stands.
        hold: Given a thread's id, the context in which its runs take place, in the place of the lock of the
            thread (on Postgres) or of none (on SQLite).

    Raises:
        SessionError: SQLite is older than 3.42, and there is no `pysqlite3-binary`.
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
        self.locks, self.worker = None, worker or "local"
        if on_postgres(url):
            from wakeloop.sessions.locks import Locks  # noqa: PLC0415 - SQLite does without

            self.locks = Locks(url)
            self.worker = worker or f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self.concurrency, self.polling = concurrency, polling
        self.hold = hold or (self.locks.thread if self.locks else lambda _: nullcontext())
        told = (lambda thread: report(self.status(thread))) if report else (lambda _: None)
        self.runs = Runs(self.mailbox, self, told)
        self.running: dict[str, RunControl] = {}
        self.draining = threading.Event()
        self.idle = threading.Condition()
        self.open = ExitStack()
        self.watch = Watch(self, self.worker, self.locks, keep, self.draining, self.drain)

    # -- its life ------------------------------------------------------------------------------------------

    def start(self, agents: Mapping[str, Graph] | None = None) -> Self:
        """Begin to run sessions: what a former process left, then what comes.

        Args:
            agents: The agents by name, where they were not given before.

        Returns:
            The host itself. Call `close` when it is to end, or write a `with` block.
        """
        self.agents = agents or self.agents
        if self.locks is not None:
            self.open.enter_context(self.locks.worker(self.worker))
        with self.locks.setting_up() if self.locks is not None else nullcontext():
            apart(self.launch)
        self.mailbox.arrive(self.worker)
        self.catch_up()
        threading.Thread(target=self.watch.run, name="wakeloop-watch", daemon=True).start()
        return self

    def launch(self) -> None:
        """Start the engine over this host's work."""
        insisting = partial(insist, draining=self.draining, agents=lambda: self.agents)
        launch(
            self.url,
            self.mailbox.engine,
            self.worker,
            run=lambda thread: insisting(lambda more: self.take_run(thread, patient=more)),
            fire=lambda schedule, due: insisting(lambda _: self.fire(schedule, due)),
            concurrency=self.concurrency,
            polling=self.polling,
        )

    def catch_up(self) -> None:
        """Ring for what was stored while nobody was there, or was left by a drain; set the timers again."""
        for thread, key in self.mailbox.unsettled():
            self.ring(thread, f"{key}/{uuid4().hex[:8]}")
        self.set_timers()

    def drain(self, timeout: float | None = None) -> bool:
        """Begin no run any more, stop those under way at their next superstep, wait for them.

        Args:
            timeout: Seconds to wait at most; None for as long as it takes.

        Returns:
            Whether all have stopped.
        """
        self.draining.set()
        with self.idle:
            for control in self.running.values():
                control.request_drain()
            return self.idle.wait_for(lambda: not self.running, timeout)

    def close(self) -> None:
        """Stop: what runs is asked to stop and goes on at the next start."""
        self.drain(timeout=10)
        self.mailbox.leave(self.worker)
        apart(stop)
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
        await asyncio.to_thread(self.close)  # runs may be under way in this very loop

    # -- its work ------------------------------------------------------------------------------------------

    def take_run(self, thread: str, *, patient: bool) -> None:
        """Run a thread until nothing is due; the queue lets one run of a thread be at a time."""
        control, key = RunControl(), uuid4().hex
        with self.idle:
            if self.draining.is_set():
                raise Stopped
            self.running[key] = control
        try:
            with self.hold(thread):
                graph = self.agents[agent_of(thread, self.agents)]
                self.runs.take(graph, thread, control, patient=patient)
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
