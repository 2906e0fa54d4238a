"""The engine's queues, as any process reaches them."""

import contextlib
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from dbos import DBOSClient

from wakeloop.platform.computed_once import computed_once
from wakeloop.sessions.dbos.database import engine_on
from wakeloop.sessions.dbos.engine import client_on
from wakeloop.sessions.host import now
from wakeloop.sessions.mailbox import Mailbox

# stored names: a run is a workflow "turn"
TURN, QUEUE = "turn", "wakeloop-turns"
TIMER, TIMERS = "timer", "wakeloop-timers"
KEEP = timedelta(hours=1)
ENDED = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")  # the engine's words
COMING = ("ENQUEUED", "DELAYED", "PENDING", "ERROR")  # an error holds the id of a timer
MOST = 1000  # records that are deleted at once


class Queues:
    """A mailbox, and the engine's queues beside it in the same database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.mailbox = Mailbox(engine_on(url))
        self.mailbox.create()

    @computed_once
    def client(self) -> DBOSClient:
        """The way to the engine's tables."""
        return client_on(self.mailbox.engine)

    def enqueue(
        self, workflow: str, key: str, queue: str, *args: str, partition: str | None = None, delay: float = 0
    ) -> None:
        """Put a workflow into a queue, at most once by its key; nothing where no host has made the queue."""
        options: Any = {"workflow_name": workflow, "workflow_id": key, "queue_name": queue}
        if partition is not None:
            options["queue_partition_key"] = partition
        if delay:
            options["delay_seconds"] = delay
        with contextlib.suppress(
            sa.exc.OperationalError, sa.exc.ProgrammingError
        ):  # no host yet: it will look
            self.client.enqueue(options, *args)

    def prune(self, age: timedelta = KEEP) -> int:
        """Delete the engine's records of runs and timers that ended so long ago; return their number.

        A host does it by itself (`keep`). Nothing is read there again: ids against repeats are the inbox's.

        Args:
            age: How long ago they ended at least; by default an hour.
        """
        before, number = (now() - age).isoformat(), 0
        of: Any = {"status": list(ENDED), "queue_name": [QUEUE, TIMERS], "completed_before": before}
        while ended := self.client.list_workflows(**of, limit=MOST, load_input=False, load_output=False):
            self.client.delete_workflows([record.workflow_id for record in ended])
            number += len(ended)
        return number

    def drop_unreadable(self) -> int:
        """Delete the engine's records that are to come and are no JSON of ours; return their number.

        Those of a release that kept pickles are among them. Nothing is lost: a record only rings, what it
        rings for is in the mailbox, and whoever starts rings for that anew.
        """
        of: Any = {"status": [*COMING], "queue_name": [QUEUE, TIMERS], "load_output": False, "limit": MOST}
        found, number = list[str](), 0
        with contextlib.suppress(sa.exc.OperationalError, sa.exc.ProgrammingError):  # no host yet: no records
            while page := self.client.list_workflows(**of, offset=number):
                number += len(page)
                found += [record.workflow_id for record in page if not isinstance(record.input, dict)]
        for first in range(0, len(found), MOST):
            self.client.delete_workflows(found[first : first + MOST])
        return len(found)

    def close(self) -> None:
        """Close the connections."""
        if "client" in self.__dict__:
            self.client.destroy()
        self.mailbox.engine.dispose()
