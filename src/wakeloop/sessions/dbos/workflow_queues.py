"""The queues of DBOS, as any process reaches them."""

import contextlib
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from dbos import DBOSClient

from wakeloop.platform.computed_once import computed_once
from wakeloop.platform.database_errors import classify_outage
from wakeloop.platform.outages import wait_out
from wakeloop.sessions.dbos.database import is_postgres, open_engine
from wakeloop.sessions.dbos.engine import APP_NAME, make_client
from wakeloop.sessions.host import utc_now
from wakeloop.sessions.mailbox import Mailbox

RUN_WORKFLOW, RUN_QUEUE = "run", "wakeloop-runs"
TIMER_WORKFLOW, TIMER_QUEUE = "timer", "wakeloop-timers"
KEEP_RECORDS = timedelta(hours=1)
ENDED = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")  # statuses of DBOS
# with ERROR, since the record of a failed timer would keep its id from being used again
PENDING = ("ENQUEUED", "DELAYED", "PENDING", "ERROR")
NO_TABLES = (sa.exc.OperationalError, sa.exc.ProgrammingError)  # raised before the first host has made them
PAGE_SIZE = 1000  # records per page, and per deletion
# DBOS documents this table; its client cannot ask for one thread's runs. The second condition on the
# status is that of a partial index.
WAITING_RUN = """SELECT 1 FROM {table} WHERE queue_name = :queue AND queue_partition_key = :thread
    AND status = 'ENQUEUED' AND status IN ('ENQUEUED', 'PENDING') LIMIT 1"""


class WorkflowQueues:
    """A mailbox, and the queues of DBOS in the same database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.mailbox = Mailbox(open_engine(url))
        self.mailbox.create_tables()

    @computed_once
    def client(self) -> DBOSClient:
        """The client of the engine's tables."""
        return make_client(self.mailbox.engine)

    def enqueue(
        self, workflow: str, key: str, queue: str, *args: str, partition: str | None = None, delay: float = 0
    ) -> None:
        """Put a workflow into a queue, at most once per key. Does nothing before the first host starts."""
        options: Any = {"workflow_name": workflow, "workflow_id": key, "queue_name": queue}
        if partition is not None:
            options["queue_partition_key"] = partition
        if delay:
            options["delay_seconds"] = delay

        def enqueue_once() -> None:
            try:
                self.client.enqueue(options, *args)
            except NO_TABLES as error:  # a host that starts looks for what waits
                if classify_outage(error) is not None:
                    raise

        wait_out(enqueue_once, self.mailbox.patience, self.mailbox.engine.dispose)

    def has_waiting_run(self, thread: str) -> bool:
        """Tell whether a run of a thread is queued that no worker has taken yet.

        A run looks for events after a worker has taken it, so it finds each one that was stored before this
        call. If that worker is killed, the run is queued again and looks again.
        """
        schema = f"{APP_NAME}." if is_postgres(self.url) else ""
        query = sa.text(WAITING_RUN.format(table=f"{schema}workflow_status"))

        def find_run() -> bool:
            try:
                with self.mailbox.engine.connect() as c:
                    return c.execute(query, {"queue": RUN_QUEUE, "thread": thread}).first() is not None
            except NO_TABLES as error:
                if classify_outage(error) is not None:
                    raise
                return False

        return wait_out(find_run, self.mailbox.patience, self.mailbox.engine.dispose)

    def prune(self, age: timedelta = KEEP_RECORDS) -> int:
        """Delete the engine's records of ended runs and timers, and return how many there were.

        A host does it by itself (`keep`). Nothing needs the records: the mailbox has the ids that recognize
        repeated events.

        Args:
            age: How long ago a run or timer must have ended.
        """
        before, number = (utc_now() - age).isoformat(), 0
        ours: Any = {"status": [*ENDED], "queue_name": [RUN_QUEUE, TIMER_QUEUE], "completed_before": before}
        page: Any = {"limit": PAGE_SIZE, "load_input": False, "load_output": False}
        while ended := self.client.list_workflows(**ours, **page):
            self.client.delete_workflows([record.workflow_id for record in ended])
            number += len(ended)
        return number

    def drop_unreadable_records(self) -> int:
        """Delete the engine's pending records that are not valid JSON, and return how many there were.

        Nothing is lost: a record only asks for a run. The events are in the mailbox, and a starting host asks
        for a run of each thread that has some.
        """
        ours: Any = {"status": [*PENDING], "queue_name": [RUN_QUEUE, TIMER_QUEUE], "load_output": False}
        found, number = list[str](), 0
        with contextlib.suppress(*NO_TABLES):
            while page := self.client.list_workflows(**ours, limit=PAGE_SIZE, offset=number):
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
