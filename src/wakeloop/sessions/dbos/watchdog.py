"""Looks after dead workers, overdue runs and old records."""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from threading import Event
from typing import TYPE_CHECKING, Any

from dbos import DBOS

from wakeloop.platform.database_errors import classify_outage
from wakeloop.sessions.dbos.engine import RUN_QUEUE, TIMER_QUEUE
from wakeloop.sessions.dbos.session_client import SessionClient
from wakeloop.sessions.host import describe_error

if TYPE_CHECKING:  # Postgres alone needs its driver
    from wakeloop.sessions.postgres_locks import Locks

LOG = logging.getLogger("wakeloop")
CHECK_EVERY = 1.0  # seconds between two rounds
LEFT_GRACE = 3.0  # seconds until a worker that left counts as dead; one that lives registers again by then
TAKE_OVER_CHECKS = 5  # rounds between two searches for dead workers
REMIND_CHECKS = 60  # rounds between two searches for events that nobody takes
WITHOUT_DATA: Any = {"load_input": False, "load_output": False}
PRUNE_CHECKS = 60  # rounds between two deletions of old records


@dataclass
class Watchdog:
    """The checks that a worker repeats until it drains."""

    client: SessionClient
    worker: str
    locks: "Locks | None"
    keep: timedelta | None
    draining: Event
    drain: Callable[[float], object]
    at_work: list[str]
    waited: set[tuple[str, str]] = field(default_factory=set)
    free: dict[str, float] = field(default_factory=dict)  # since when a worker's lock was seen free
    connection: int = 0  # the connection over which that was seen
    stray: set[str] = field(default_factory=set)  # runs of this worker that nothing here is running

    def run(self) -> None:
        """Repeat the checks. One that fails is retried and does not stop the others."""
        logged = set[str]()
        for number in count(1):
            if self.draining.wait(CHECK_EVERY):
                return
            for task in self.due_tasks(number):
                try:
                    task()
                except Exception as error:  # noqa: BLE001 - the other checks must continue
                    words = f"{task.__name__} failed and will be retried: {describe_error(error)}"
                    if classify_outage(error) is None and words not in logged:
                        logged.add(words)
                        LOG.error(words)  # noqa: TRY400 - a traceback may contain secrets

    def due_tasks(self, number: int) -> Iterator[Callable[[], object]]:
        """Yield the checks of this round."""
        yield self.check_in
        if number % TAKE_OVER_CHECKS == 0 or self.free:
            yield self.take_over
        if number % TAKE_OVER_CHECKS == 0:
            yield self.requeue_strays
        if number % REMIND_CHECKS == 0:
            yield self.request_overdue_runs
        if number % PRUNE_CHECKS == 0:
            yield self.prune_records

    def check_in(self) -> None:
        """Drain if asked to, and register this worker again if another took it for dead."""
        workers = {name: draining for name, _, draining in self.client.mailbox.list_workers()}
        if workers.get(self.worker):
            self.drain(0)
        if self.worker not in workers:
            self.client.mailbox.register_worker(self.worker)

    def prune_records(self) -> None:
        """Delete the engine's old records."""
        if self.keep is not None:
            self.client.prune(self.keep)

    def request_overdue_runs(self) -> None:
        """Set timers, and request runs for events that waited last time too: their sender may have died."""
        self.client.set_timers()
        waiting = set(self.client.mailbox.list_unsettled())
        for thread, key in waiting & self.waited:
            self.client.request_run(thread, f"{key}/again")
        self.waited = waiting

    def take_over(self) -> None:
        """Put the runs of dead workers back into their queues.

        A worker is dead if it has left, or if the lock of its name was seen free for the time of grace: a
        worker whose connection broke takes the lock again at once.
        """
        if (locks := self.locks) is None:
            return
        mailbox = self.client.mailbox
        registered = {name for name, *_ in mailbox.list_workers()}
        pending = DBOS.list_workflows(status="PENDING", **WITHOUT_DATA)
        names = registered | {record.executor_id for record in pending if record.executor_id}
        free = {name for name in names - {self.worker} if locks.find_worker(name) is None}
        if self.connection != locks.made:
            # a lock that was seen free over an earlier connection may have been taken since: start over
            self.connection, self.free = locks.made, {}
        now = time.monotonic()  # after the questions, which may have waited for the database
        self.free = {name: self.free.get(name, now) for name in free}
        for worker, since in self.free.items():
            grace = locks.grace if worker in registered else min(locks.grace, LEFT_GRACE)
            if now - since < grace:
                continue
            with locks.hold_worker(worker, self.connection) as taken:
                if taken:
                    requeue_runs(worker)
                    mailbox.unregister_worker(worker)

    def requeue_strays(self) -> None:
        """Put this worker's runs back that nothing here is running: it was cut off while it took them."""
        mine = DBOS.list_workflows(status="PENDING", executor_id=self.worker, **WITHOUT_DATA)
        stray = {w.workflow_id for w in mine} - {*self.at_work}
        if again := stray & self.stray:
            requeue_runs(self.worker, again)
        self.stray = stray


def requeue_runs(worker: str, which: set[str] | None = None) -> None:
    """Put the runs of a worker, or those with the given ids, back into their queues."""
    for queue in (RUN_QUEUE, TIMER_QUEUE):
        left = DBOS.list_workflows(status="PENDING", executor_id=worker, queue_name=queue, **WITHOUT_DATA)
        ids = {record.workflow_id for record in left}
        if which is not None:
            ids &= which
        if ids:
            DBOS.resume_workflows([*ids], queue_name=queue)
