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

from dbos import DBOS
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from wakeloop.errors import SessionError
from wakeloop.sessions.dbos.cron import next_time
from wakeloop.sessions.dbos.database import is_postgres, lock_sqlite_file
from wakeloop.sessions.dbos.fenced_saver import Fence, fence_graph
from wakeloop.sessions.dbos.outages import WorkflowStopped, retry_through_outages
from wakeloop.sessions.dbos.session_client import SessionClient
from wakeloop.sessions.dbos.watchdog import Watchdog
from wakeloop.sessions.dbos.workflow_queues import KEEP_RECORDS
from wakeloop.sessions.dbos.workflows import call_in_thread, launch_workflows, stop_engine
from wakeloop.sessions.host import GRACE, SessionStatus, TakenOverError, derive_id, find_agent, utc_now
from wakeloop.sessions.thread_runner import Graph, ThreadRunner, outage_errors


class DbosHost(SessionClient):
    """Runs sessions: `start(agents)` or a `with` block, then `send`.

    One host a process. On SQLite one process a database, whose file it locks; on Postgres any number of
    workers: a thread runs in one of them at a time, and when one dies the others see that its name's lock is
    free and take over its runs, each under the lock of its thread. One whose connection was cut takes its
    locks again at once, keeps the results of calls that ended meanwhile, and goes on.

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
        grace: Seconds that the locks of a worker on Postgres must have been seen free before another takes
            over; so long, and a few seconds more, the threads of a killed worker wait. The same in all
            workers, and longer than one needs to connect again. By default 10.
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
        keep: timedelta | None = KEEP_RECORDS,
        grace: float = GRACE,
        report: Callable[[SessionStatus], None] | None = None,
        hold: Callable[[str], AbstractContextManager[Any]] | None = None,
    ) -> None:
        super().__init__(url, agents)
        self.locks, self.worker = None, worker or "local"
        if is_postgres(url):
            from wakeloop.sessions.postgres_locks import Locks  # noqa: PLC0415 - SQLite does without

            self.locks = Locks(url, grace)
            self.worker = worker or f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self.concurrency, self.polling = concurrency, polling
        self.hold = hold or (self.locks.hold_thread if self.locks else lambda _: nullcontext())
        told = (lambda thread: report(self.status(thread))) if report else (lambda _: None)
        self.runner = ThreadRunner(self.mailbox, self, told)
        self.running: dict[str, RunControl] = {}
        self.draining = threading.Event()
        self.idle = threading.Condition()
        self.open = ExitStack()
        self.at_work: list[str] = []
        self.watchdog = Watchdog(self, self.worker, self.locks, keep, self.draining, self.drain, self.at_work)

    # -- its life ------------------------------------------------------------------------------------------

    def start(self, agents: Mapping[str, Graph] | None = None) -> Self:
        """Begin to run sessions: what a former process left, then what comes.

        Args:
            agents: The agents by name, where they were not given before.

        Returns:
            The host itself. Call `close` when it is to end, or write a `with` block.

        Raises:
            SessionError: Another host has the SQLite file, or another worker the name.
        """
        self.agents = agents or self.agents
        try:
            self._start_work()
        except BaseException:
            self.release_all()
            raise
        return self

    def _start_work(self) -> None:
        """Take what is this worker's alone, then start the engine."""
        self.open.enter_context(lock_sqlite_file(self.url))
        if self.locks is not None:
            if not self.open.enter_context(self.locks.hold_worker(self.worker)):
                raise SessionError(f"Another worker is called {self.worker!r}: give each its own name.")
            threading.Thread(target=self.locks.keep_alive, name="wakeloop-locks", daemon=True).start()
        self.mailbox.register_worker(
            self.worker
        )  # before it takes anything: one that is not there counts as gone
        with self.locks.hold_setup() if self.locks is not None else nullcontext():
            self.drop_unreadable_records()
            call_in_thread(self._launch_engine)
        self.catch_up()
        threading.Thread(target=self.watchdog.run, name="wakeloop-watch", daemon=True).start()

    def _launch_engine(self) -> None:
        """Start the engine over this host's work."""
        insisting = partial(retry_through_outages, draining=self.draining, agents=lambda: self.agents)
        launch_workflows(
            self.url,
            self.mailbox.engine,
            self.worker,
            run=lambda thread: insisting(lambda more: self.run_thread(thread, patient=more)),
            fire=lambda schedule, due: insisting(lambda _: self.fire_schedule(schedule, due)),
            at_work=self.at_work,
            concurrency=self.concurrency,
            polling=self.polling,
        )

    def catch_up(self) -> None:
        """Ring for what was stored while nobody was there, or was left by a drain; set the timers again."""
        for thread, key in self.mailbox.list_unsettled():
            self.request_run(thread, f"{key}/{uuid4().hex[:8]}")
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
        self.mailbox.unregister_worker(self.worker)
        call_in_thread(stop_engine)
        self.release_all()

    def release_all(self) -> None:
        """Let go of all that is this worker's."""
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

    def run_thread(self, thread: str, *, patient: bool) -> None:
        """Run a thread until nothing is due; the queue lets one run of a thread be at a time."""
        control, key = RunControl(), uuid4().hex
        with self.idle:
            if self.draining.is_set():
                raise WorkflowStopped
            self.running[key] = control
        try:
            with self.hold(thread):
                fence = Fence(partial(self.confirm_ownership, thread, DBOS.workflow_id), self.draining)
                graph = fence_graph(self.agents[find_agent(thread, self.agents)], fence)
                self.runner.run_waiting(graph, thread, control, patient=patient)
        except (GraphDrained, TakenOverError):
            raise WorkflowStopped from None
        except Exception as failure:
            if patient and isinstance(failure, outage_errors()):
                raise
            if self.draining.is_set():  # it may be the end that failed it
                raise WorkflowStopped from failure
            self.runner.give_up(thread, failure)
        finally:
            with self.idle:
                del self.running[key]
                self.idle.notify_all()

    def confirm_ownership(self, thread: str, key: str | None) -> None:
        """Make sure that a run still has its thread, however its connection fared; else `TakenOverError`."""

        def is_mine() -> bool:
            found = self.client.list_workflows(workflow_ids=[str(key)], load_input=False, load_output=False)
            return [record.executor_id for record in found] == [self.worker]

        if self.locks is not None:
            self.locks.confirm_held(thread, is_mine)

    def fire_schedule(self, schedule: str, due: str) -> None:
        """Send a schedule's event and set its timer anew: times that passed meanwhile are not made up for."""
        found = self.mailbox.find_schedules(key=schedule)
        if not found or found[0].due != due:
            return
        row = found[0]
        key = derive_id("cron", schedule, due)
        try:
            self.send(row.thread, {"kind": "cron", "id": key, "text": row.text, "time": due})
        except SessionError as error:  # its agent is none of this host's
            self.mailbox.requeue(row.thread, [], str(error))
        after = next_time(row.cron, utc_now())
        self.mailbox.set_due(schedule, after)
        self.set_timer(schedule, after)
