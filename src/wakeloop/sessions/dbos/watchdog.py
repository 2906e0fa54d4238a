"""Looks after others: dead workers, late events, old records."""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from threading import Event
from typing import TYPE_CHECKING, Any

from dbos import DBOS

from wakeloop.sessions.dbos.session_client import SessionClient
from wakeloop.sessions.dbos.workflow_queues import RUN_QUEUE, TIMER_QUEUE
from wakeloop.sessions.host import describe_error
from wakeloop.sessions.thread_runner import is_connection_error

if TYPE_CHECKING:  # Postgres alone needs its driver
    from wakeloop.sessions.postgres_locks import Locks

LOG = logging.getLogger("wakeloop")
CHECK_EVERY = 1.0  # seconds between two looks whether to drain
LEFT_GRACE = (
    3.0  # seconds after which one that said that it left is believed: one that lives says that it came
)
TAKE_OVER_CHECKS = 5  # looks between two for workers that died
REMIND_CHECKS = 60  # looks between two for events that nobody takes
WITHOUT_DATA: Any = {"load_input": False, "load_output": False}
PRUNE_CHECKS = 60  # looks between two for records that are too old


@dataclass
class Watchdog:
    """What a worker looks at again and again, until it drains."""

    client: SessionClient
    worker: str
    locks: "Locks | None"
    keep: timedelta | None
    draining: Event
    drain: Callable[[float], object]
    at_work: list[str]
    waited: set[tuple[str, str]] = field(default_factory=set)
    free: dict[str, float] = field(default_factory=dict)  # since when a worker's name is seen free
    over: int = 0  # which connection that was seen over
    stray: set[str] = field(default_factory=set)  # runs of this worker that are under way nowhere

    def run(self) -> None:
        """Look again and again; a part that fails is tried again, and stops no other."""
        told = set[str]()
        for look in count(1):
            if self.draining.wait(CHECK_EVERY):
                return
            for part in self.due_tasks(look):
                try:
                    part()
                except Exception as error:  # noqa: BLE001 - whatever it is, the others are looked after
                    words = f"{part.__name__} failed, and is tried again: {describe_error(error)}"
                    if not is_connection_error(getattr(error, "orig", error)) and words not in told:
                        told.add(words)
                        LOG.error(words)  # noqa: TRY400 - a traceback would hold secrets

    def due_tasks(self, look: int) -> Iterator[Callable[[], object]]:
        """Yield what is to be done at this look."""
        yield self.check_in
        if look % TAKE_OVER_CHECKS == 0 or self.free:
            yield self.take_over
        if look % TAKE_OVER_CHECKS == 0:
            yield self.requeue_strays
        if look % REMIND_CHECKS == 0:
            yield self.request_overdue_runs
        if look % PRUNE_CHECKS == 0:
            yield self.prune_records

    def check_in(self) -> None:
        """See whether this worker is asked to drain, and whether its name stands among the others."""
        workers = {name: draining for name, _, draining in self.client.mailbox.list_workers()}
        if workers.get(self.worker):
            self.drain(0)
        if self.worker not in workers:  # it was taken for dead
            self.client.mailbox.register_worker(self.worker)

    def prune_records(self) -> None:
        """Delete the engine's old records."""
        if self.keep is not None:
            self.client.prune(self.keep)

    def request_overdue_runs(self) -> None:
        """Ring for what waited at the last look already, and set timers: who stored it may have died."""
        self.client.set_timers()
        waiting = set(self.client.mailbox.list_unsettled())
        for thread, key in waiting & self.waited:
            self.client.request_run(thread, f"{key}/again")
        self.waited = waiting

    def take_over(self) -> None:
        """Put the runs of dead workers back into their queues.

        Dead is one that said that it left, or whose name was seen free for the time of grace: one whose
        connection broke takes it again at once.
        """
        if (locks := self.locks) is None:
            return
        mailbox, now = self.client.mailbox, time.monotonic()
        present = {name for name, *_ in mailbox.list_workers()}
        pending = DBOS.list_workflows(status="PENDING", **WITHOUT_DATA)
        names = ({w.executor_id for w in pending if w.executor_id} | present) - {self.worker}
        free = {name for name in names if locks.find_worker(name) is None}
        if self.over != locks.made:  # what was seen over another connection says nothing of the time between
            self.over, self.free = locks.made, {}
        self.free = {name: self.free.get(name, now) for name in free}
        soon = min(locks.grace, LEFT_GRACE)
        dead_since = {name: now - (locks.grace if name in present else soon) for name in free}
        for worker in [name for name, since in self.free.items() if since <= dead_since[name]]:
            with locks.hold_worker(worker, self.over) as taken:
                if taken:
                    requeue_runs(worker)
                    mailbox.unregister_worker(worker)

    def requeue_strays(self) -> None:
        """Put runs of this worker back that are under way nowhere: it was cut off while it took them."""
        mine = DBOS.list_workflows(status="PENDING", executor_id=self.worker, **WITHOUT_DATA)
        stray = {w.workflow_id for w in mine} - {*self.at_work}
        if again := stray & self.stray:
            requeue_runs(self.worker, again)
        self.stray = stray


def requeue_runs(worker: str, which: set[str] | None = None) -> None:
    """Put the runs of a worker, or some of them, back into their queues."""
    for queue in (RUN_QUEUE, TIMER_QUEUE):
        left = DBOS.list_workflows(status="PENDING", executor_id=worker, queue_name=queue, **WITHOUT_DATA)
        if ids := [w.workflow_id for w in left if which is None or w.workflow_id in which]:
            DBOS.resume_workflows(ids, queue_name=queue)
