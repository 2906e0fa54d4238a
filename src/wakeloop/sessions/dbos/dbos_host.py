"""The session host on DBOS, which is one worker."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any, Self
from uuid import uuid4

from dbos import DBOS
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from wakeloop.errors import SessionError
from wakeloop.loop.waits import CLOCK_MARGIN, find_next_wait
from wakeloop.platform.database_errors import classify_outage
from wakeloop.sessions.dbos.database import is_postgres, lock_sqlite_file
from wakeloop.sessions.dbos.engine import (
    RUN_WORKFLOW,
    TIMER_WORKFLOW,
    call_in_thread,
    launch_engine,
    stop_engine,
)
from wakeloop.sessions.dbos.session_client import KEEP_RECORDS, SessionClient, next_time
from wakeloop.sessions.dbos.watchdog import Watchdog
from wakeloop.sessions.host import (
    GRACE,
    RETRY_PAUSES,
    SessionStatus,
    TakenOverError,
    derive_id,
    find_agent,
    utc_now,
)
from wakeloop.sessions.host_rules import Graph
from wakeloop.sessions.thread_runner import ThreadRunner
from wakeloop.thread.patient_saver import PatientSaver, discard_cut_connections
from wakeloop.thread.steering import list_waiting_threads


class WorkflowStopped(BaseException):
    """Ends a workflow without a result, so that it stays pending and the next worker runs it again."""


def fence_graph(
    graph: Graph, confirm: Callable[[], None], draining: threading.Event, store: BaseStore | None = None
) -> Graph:
    """Return a copy of a graph with the store, and with a fenced saver if it has a saver of its own.

    Before each read or write the saver calls `confirm`, which raises if another worker has taken over the
    thread. It waits for its database until the host drains: giving up would run finished calls again.
    """
    saver = graph.checkpointer
    if not isinstance(saver, BaseCheckpointSaver):
        return graph.copy({"store": store})
    patient = PatientSaver(saver, draining, bounded=False, confirm=confirm)
    return graph.copy({"checkpointer": patient, "store": store})


class DbosHost(SessionClient):
    """Runs sessions. Call `start(agents)` or use a `with` block, then `send`.

    Use one host per process. SQLite allows one process per database, and the host locks the file. Postgres
    allows any number of workers, and a thread runs in one of them at a time. When a worker dies, the others
    see that the lock of its name is free and take over its runs, each under the lock of its thread. A worker
    whose connection was cut takes its locks again at once, keeps the results of calls that ended meanwhile,
    and continues.

    Args:
        url: `sqlite:///FILE` or `postgresql://…`, for events, schedules and the records of DBOS.
        agents: The agents by name, compiled with a checkpointer. They may be given to `start` instead.
        worker: This process's name, unique among the workers of the database. Default: `local` on SQLite, and
            on Postgres a name made of host name, process id and a random part.
        concurrency: How many threads this process runs at once; others wait in the queue.
        polling: Seconds between two looks at the queue of runs, which is the longest that an event waits for
            a free worker. Schedules are looked for once a second at most.
        keep: How long DBOS keeps the records of ended runs; None to keep them.
        grace: Seconds that the locks of a worker must be seen free on Postgres before another takes over. The
            threads of a killed worker wait this long and a few seconds more. It must be the same in all
            workers, and longer than a worker needs to reconnect.
        report: Called with the session's status after each run of a thread, in the thread of the run.
        hold: Returns, for a thread's id, the context in which its runs take place. It replaces the thread's
            lock (on Postgres) or nothing (on SQLite).

    Raises:
        SessionError: SQLite is older than 3.42 and `pysqlite3-binary` is not installed.

    Example:
        >>> with DbosHost("sqlite:///events.db", {"main": agent}) as host:  # doctest: +SKIP
        ...     host.send("main", {"kind": "human", "text": "Tidy up the notes."})
        ...     host.wait("main")
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
        reporting = None if report is None else lambda thread: report(self.status(thread))
        self.runner = ThreadRunner(self.mailbox, self, reporting)
        self.running: dict[str, RunControl] = {}
        self.draining = self.mailbox.patience.stopped  # a drain waits for no database
        self.idle = threading.Condition()
        self.open = ExitStack()
        self.at_work: list[str] = []
        self.watchdog = Watchdog(self, self.worker, self.locks, keep, self.draining, self.drain, self.at_work)

    # -- start and stop --------------------------------------------------------------------------------------

    def start(self, agents: Mapping[str, Graph] | None = None) -> Self:
        """Start running sessions, beginning with what an earlier process left.

        Args:
            agents: The agents by name, if they were not given before.

        Returns:
            The host itself. Call `close` to stop it, or use a `with` block.

        Raises:
            SessionError: Another host is using the SQLite file, or another worker has the name.
        """
        self.agents = agents or self.agents
        try:
            self._start_work()
        except BaseException:
            self.release_all()
            raise
        return self

    def _start_work(self) -> None:
        """Take the worker's locks, then start the engine and the watchdog."""
        self.open.enter_context(lock_sqlite_file(self.url))
        if self.locks is not None:
            if not self.open.enter_context(self.locks.hold_worker(self.worker)):
                raise SessionError(
                    f"Worker name {self.worker!r} is already taken. Give each worker its own name."
                )
            threading.Thread(target=self.locks.keep_alive, name="wakeloop-locks", daemon=True).start()
        _ = self.own_store  # opened now, before several runs ask for it at once
        # before it takes anything: other workers regard one that is not registered as gone
        self.mailbox.register_worker(self.worker)
        with self.locks.hold_setup() if self.locks is not None else nullcontext():
            self.drop_unreadable_records()
            call_in_thread(self._launch_engine)
        self.catch_up()
        threading.Thread(target=self.watchdog.run, name="wakeloop-watch", daemon=True).start()

    def _launch_engine(self) -> None:
        """Start the engine with this host's workflows."""
        retry = self.retry_through_outages
        launch_engine(
            self.url,
            self.mailbox.engine,
            self.worker,
            {
                RUN_WORKFLOW: lambda thread: retry(lambda patient: self.run_thread(thread, patient=patient)),
                TIMER_WORKFLOW: lambda schedule, due: retry(lambda _: self.fire_schedule(schedule, due)),
            },
            self.at_work,
            concurrency=self.concurrency,
            polling=self.polling,
        )

    def retry_through_outages(self, attempt: Callable[[bool], None]) -> None:
        """Call `attempt`, and repeat it while a database is away.

        Its argument is True as long as it should raise an outage, to be repeated after a pause. It is False
        from the sixth attempt on; the attempt should then report the outage itself.
        """
        for tries in count(1):
            try:
                return attempt(tries <= len(RETRY_PAUSES))
            except Exception as error:
                if classify_outage(error) is None:
                    raise
                if self.draining.wait(RETRY_PAUSES[min(tries, len(RETRY_PAUSES)) - 1]):
                    raise WorkflowStopped from None
                for graph in self.agents.values():
                    discard_cut_connections(graph.checkpointer)
        return None

    def catch_up(self) -> None:
        """Request runs for whatever waits, such as events stored while no host was up; set the timers."""
        for thread, key in self.mailbox.list_unsettled():
            self.request_run(thread, f"{key}/{uuid4().hex[:8]}")
        for thread in list_waiting_threads(self.own_store):
            self.request_run(thread, f"steered/{uuid4().hex[:8]}")
        self.set_timers()

    def drain(self, timeout: float | None = None) -> bool:
        """Start no more runs, stop the current ones at their next superstep, and wait for them.

        Args:
            timeout: The longest time to wait, in seconds; None for no limit.

        Returns:
            Whether all runs have stopped.
        """
        self.draining.set()
        with self.idle:
            for control in self.running.values():
                control.request_drain()
            return self.idle.wait_for(lambda: not self.running, timeout)

    def close(self) -> None:
        """Stop. Current runs are asked to stop, and continue at the next start."""
        self.drain(timeout=10)
        self.mailbox.unregister_worker(self.worker)
        call_in_thread(stop_engine)
        self.release_all()

    def release_all(self) -> None:
        """Release the worker's locks and close its connections."""
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
        await asyncio.to_thread(self.close)  # runs may be using this very event loop

    # -- runs ------------------------------------------------------------------------------------------------

    def run_thread(self, thread: str, *, patient: bool) -> None:
        """Run a thread until nothing waits for it. The queue allows one run per thread at a time."""
        control, key = RunControl(), uuid4().hex
        with self.idle:
            if self.draining.is_set():
                raise WorkflowStopped
            self.running[key] = control
        try:
            with self.hold(thread):
                confirm = partial(self.confirm_ownership, thread, DBOS.workflow_id)
                agent = self.agents[find_agent(thread, self.agents)]
                graph = fence_graph(agent, confirm, self.draining, self.find_store(thread))
                found = self.runner.run_waiting(graph, thread, control, patient=patient)
                self.set_clock(thread, found)
                confirm()  # the workflow of a thread that was taken over must stay pending
        except (GraphDrained, TakenOverError):
            raise WorkflowStopped from None
        except Exception as failure:
            if patient and classify_outage(failure) is not None:
                raise
            if self.draining.is_set():  # the shutdown may have caused it
                raise WorkflowStopped from failure
            self.runner.give_up(thread, failure)
        finally:
            with self.idle:
                del self.running[key]
                self.idle.notify_all()

    def set_clock(self, thread: str, found: StateSnapshot) -> None:
        """Queue a run for the time when the first wait of a thread is over; the database keeps it.

        One that comes too early, because clocks differ, is followed by another one.
        """
        first = find_next_wait(found.values.get("waiting_on") or ())
        if first is not None:
            left = max(first["until"] - time.time(), 0)
            self.request_run(thread, f"{first['until']}/{int(left)}", left + CLOCK_MARGIN)

    def confirm_ownership(self, thread: str, key: str | None) -> None:
        """Raise `TakenOverError` if the run has lost its thread to another worker."""

        def is_mine() -> bool:
            found = self.client.list_workflows(workflow_ids=[str(key)], load_input=False, load_output=False)
            return [record.executor_id for record in found] == [self.worker]

        if self.locks is not None:
            self.locks.confirm_held(thread, is_mine)

    def fire_schedule(self, schedule: str, due: str) -> None:
        """Send a schedule's event and set its next timer. Times that passed meanwhile are skipped."""
        found = self.mailbox.find_schedules(id=schedule)
        if not found or found[0].due != due:
            return
        row = found[0]
        key = derive_id("cron", schedule, due)
        try:
            self.send(row.thread, {"kind": "cron", "id": key, "text": row.text, "time": due})
        except SessionError as error:  # this host does not have its agent
            self.mailbox.note_error(row.thread, str(error))
        after = next_time(row.cron, utc_now())
        self.mailbox.set_due(schedule, after)
        self.set_timer(schedule, after)
