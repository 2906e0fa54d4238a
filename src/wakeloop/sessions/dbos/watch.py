"""Looks after others: dead workers, late events, old records."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from threading import Event
from typing import TYPE_CHECKING, Any

from dbos import DBOS

from wakeloop.sessions.dbos.post import Post
from wakeloop.sessions.dbos.queues import QUEUE, TIMERS

if TYPE_CHECKING:  # Postgres alone needs its driver
    from wakeloop.sessions.locks import Locks

LOOK = 1.0  # seconds between two looks whether to drain
SOON = 3.0  # seconds after which one that said that it left is believed: one that lives says that it came
SWEEP = 5  # looks between two for workers that died
REMIND = 60  # looks between two for events that nobody takes
UNREAD: Any = {"load_input": False, "load_output": False}
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
    at_work: list[str]
    waited: set[tuple[str, str]] = field(default_factory=set)
    free: dict[str, float] = field(default_factory=dict)  # since when a worker's name is seen free
    over: int = 0  # which connection that was seen over
    stray: set[str] = field(default_factory=set)  # runs of this worker that are under way nowhere

    def run(self) -> None:
        """Look for workers that died, and whether this one is asked to drain, again and again."""
        for look in count(1):
            if self.draining.wait(LOOK):
                return
            with contextlib.suppress(Exception):  # the database is away for a moment: look again later
                workers = self.post.mailbox.workers()
                if any(draining for worker, _, draining in workers if worker == self.worker):
                    self.drain(0)
                if self.worker not in [worker for worker, *_ in workers]:  # it was taken for dead
                    self.post.mailbox.arrive(self.worker)
                if self.locks is not None and (look % SWEEP == 0 or self.free):
                    self.take_over(self.locks)
                if look % SWEEP == 0:
                    self.take_back()
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
        """Put the runs of dead workers back into their queues; return the workers' names.

        Dead is one that said that it left, or whose name was seen free for the time of grace: one whose
        connection broke takes it again at once.
        """
        gone, mailbox, now = list[str](), self.post.mailbox, time.monotonic()
        present = {name for name, *_ in mailbox.workers()}
        pending = DBOS.list_workflows(status="PENDING", **UNREAD)
        names = ({w.executor_id for w in pending if w.executor_id} | present) - {self.worker}
        free = {name for name in names if locks.holder_of(name) is None}
        if self.over != locks.made:  # what was seen over another connection says nothing of the time between
            self.over, self.free = locks.made, {}
        self.free = {name: self.free.get(name, now) for name in free}
        soon = min(locks.grace, SOON)
        dead_since = {name: now - (locks.grace if name in present else soon) for name in free}
        for worker in [name for name, since in self.free.items() if since <= dead_since[name]]:
            with locks.worker(worker, self.over) as taken:
                if taken:
                    put_back(worker)
                    mailbox.leave(worker)
                    gone.append(worker)
        return gone

    def take_back(self) -> None:
        """Put runs of this worker back that are under way nowhere: it was cut off while it took them."""
        mine = DBOS.list_workflows(status="PENDING", executor_id=self.worker, **UNREAD)
        stray = {w.workflow_id for w in mine} - {*self.at_work}
        if again := stray & self.stray:
            put_back(self.worker, again)
        self.stray = stray


def put_back(worker: str, which: set[str] | None = None) -> None:
    """Put the runs of a worker, or some of them, back into their queues."""
    for queue in (QUEUE, TIMERS):
        left = DBOS.list_workflows(status="PENDING", executor_id=worker, queue_name=queue, **UNREAD)
        if ids := [w.workflow_id for w in left if which is None or w.workflow_id in which]:
            DBOS.resume_workflows(ids, queue_name=queue)
