"""The engine's queues, as any process reaches them."""

import contextlib
from datetime import timedelta
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from dbos import DBOSClient

from wakeloop.sessions.dbos.database import engine_on
from wakeloop.sessions.host import now
from wakeloop.sessions.mailbox import Mailbox

NAME = "wakeloop"
# stored names: a run is a workflow "turn"
TURN, QUEUE = "turn", "wakeloop-turns"
TIMER, TIMERS = "timer", "wakeloop-timers"
KEEP = timedelta(hours=1)
ENDED = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")  # the engine's words
MOST = 1000  # records that are deleted at once


class Queues:
    """A mailbox, and the engine's queues beside it in the same database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.mailbox = Mailbox(engine_on(url))
        self.mailbox.create()

    @cached_property
    def client(self) -> DBOSClient:
        """The way to the engine's tables."""
        return DBOSClient(
            system_database_engine=self.mailbox.engine,
            dbos_system_schema=NAME,
            application_name=NAME,
            retry_connection_errors=False,
        )

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

    def close(self) -> None:
        """Close the connections."""
        if "client" in self.__dict__:
            self.client.destroy()
        self.mailbox.engine.dispose()
