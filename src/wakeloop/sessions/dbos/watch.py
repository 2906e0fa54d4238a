"""Looks after others: dead workers, late events, old records."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from threading import Event
from typing import TYPE_CHECKING

from dbos import DBOS

from wakeloop.sessions.dbos.post import Post
from wakeloop.sessions.dbos.queues import QUEUE, TIMERS

if TYPE_CHECKING:  # Postgres alone needs its driver
    from wakeloop.sessions.locks import Locks

LOOK = 1.0  # seconds between two looks whether to drain
SWEEP = 5  # looks between two for workers that died
REMIND = 60  # looks between two for events that nobody takes
PRUNE = 60  # looks between two for records that are too old


@dataclass
class Watch:
    """What a worker looks at again and again, until it drains."""

    post: Post
    worker: str
    locks: "Locks | None"
    keep: timedelta | None
    draining: Event
    drain: Callable[[float], object]
    waited: set[tuple[str, str]] = field(default_factory=set)

    def run(self) -> None:
        """Look for workers that died, and whether this one is asked to drain, again and again."""
        for look in count(1):
            if self.draining.wait(LOOK):
                return
            with contextlib.suppress(Exception):  # the database is away for a moment: look again later
                workers = self.post.mailbox.workers()
                if any(draining for worker, _, draining in workers if worker == self.worker):
                    self.drain(0)
                if self.locks is not None and look % SWEEP == 0:
                    self.take_over(self.locks)
                if look % REMIND == 0:
                    self.remind()
                if self.keep is not None and look % PRUNE == 0:
                    self.post.prune(self.keep)

    def remind(self) -> None:
        """Ring for what waited at the last look already, and set timers: who stored it may have died."""
        self.post.set_timers()
        waiting = set(self.post.mailbox.unsettled())
        for thread, key in waiting & self.waited:
            self.post.ring(thread, f"{key}/again")
        self.waited = waiting

    def take_over(self, locks: "Locks") -> list[str]:
        """Put the runs of dead workers back into their queues; return the workers' names."""
        dead, mailbox = [], self.post.mailbox
        pending = DBOS.list_workflows(status="PENDING", load_input=False, load_output=False)
        names = {w.executor_id for w in pending if w.executor_id} | {name for name, *_ in mailbox.workers()}
        for worker in names - {self.worker}:
            with locks.worker(worker) as free:
                if not free:
                    continue
                for queue in (QUEUE, TIMERS):
                    left = DBOS.list_workflows(status="PENDING", executor_id=worker, queue_name=queue)
                    if left:
                        DBOS.resume_workflows([w.workflow_id for w in left], queue_name=queue)
                mailbox.leave(worker)
                dead.append(worker)
        return dead
