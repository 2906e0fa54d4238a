"""The engine's queues, as any process reaches them."""

import contextlib
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from dbos import DBOSClient

from wakeloop.platform.computed_once import computed_once
from wakeloop.sessions.dbos.database import open_engine
from wakeloop.sessions.dbos.engine import make_client
from wakeloop.sessions.host import utc_now
from wakeloop.sessions.mailbox import Mailbox

# stored names: a run is a workflow "turn"
RUN_WORKFLOW, RUN_QUEUE = "turn", "wakeloop-turns"
TIMER_WORKFLOW, TIMER_QUEUE = "timer", "wakeloop-timers"
KEEP_RECORDS = timedelta(hours=1)
ENDED = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")  # the engine's words
PENDING = ("ENQUEUED", "DELAYED", "PENDING", "ERROR")  # an error holds the id of a timer
PAGE_SIZE = 1000  # records that are deleted at once


class WorkflowQueues:
    """A mailbox, and the engine's queues beside it in the same database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.mailbox = Mailbox(open_engine(url))
        self.mailbox.create_tables()

    @computed_once
    def client(self) -> DBOSClient:
        """The way to the engine's tables."""
        return make_client(self.mailbox.engine)

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

    def prune(self, age: timedelta = KEEP_RECORDS) -> int:
        """Delete the engine's records of runs and timers that ended so long ago; return their number.

        A host does it by itself (`keep`). Nothing is read there again: ids against repeats are the inbox's.

        Args:
            age: How long ago they ended at least; by default an hour.
        """
        before, number = (utc_now() - age).isoformat(), 0
        of: Any = {"status": list(ENDED), "queue_name": [RUN_QUEUE, TIMER_QUEUE], "completed_before": before}
        while ended := self.client.list_workflows(**of, limit=PAGE_SIZE, load_input=False, load_output=False):
            self.client.delete_workflows([record.workflow_id for record in ended])
            number += len(ended)
        return number

    def drop_unreadable_records(self) -> int:
        """Delete the engine's records that are to come and are no JSON of ours; return their number.

        Nothing is lost: a record only asks for a run. The events are in the mailbox, and a starting host asks
        for a run of each thread that has some.
        """
        of: Any = {
            "status": [*PENDING],
            "queue_name": [RUN_QUEUE, TIMER_QUEUE],
            "load_output": False,
            "limit": PAGE_SIZE,
        }
        found, number = list[str](), 0
        with contextlib.suppress(sa.exc.OperationalError, sa.exc.ProgrammingError):  # no host yet: no records
            while page := self.client.list_workflows(**of, offset=number):
                number += len(page)
                found += [record.workflow_id for record in page if not isinstance(record.input, dict)]
        for first in range(0, len(found), PAGE_SIZE):
            self.client.delete_workflows(found[first : first + PAGE_SIZE])
        return len(found)

    def close(self) -> None:
        """Close the connections."""
        if "client" in self.__dict__:
            self.client.destroy()
        self.mailbox.engine.dispose()
