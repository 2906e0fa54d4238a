"""The client of a DBOS host: stores events and schedules."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import sqlalchemy as sa
from croniter import CroniterBadDateError, croniter
from dbos import DBOSClient
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from wakeloop.errors import SessionError
from wakeloop.loop.inbox import WakeEvent
from wakeloop.platform.computed_once import computed_once
from wakeloop.platform.database_errors import classify_outage
from wakeloop.platform.outages import wait_out
from wakeloop.sessions.dbos.database import is_postgres, open_engine, open_store
from wakeloop.sessions.dbos.engine import (
    APP_NAME,
    RUN_QUEUE,
    RUN_WORKFLOW,
    TIMER_QUEUE,
    TIMER_WORKFLOW,
    make_client,
)
from wakeloop.sessions.host import (
    CANCELLED_MESSAGE,
    CRON_FIELDS,
    Schedule,
    SessionStatus,
    WaitsForEvents,
    check_name,
    check_text,
    complete_event,
    cron_line_error,
    derive_id,
    find_agent,
    unknown_session_error,
    utc_now,
)
from wakeloop.sessions.host_rules import Graph, make_refusal, name_config
from wakeloop.sessions.mailbox import Mailbox
from wakeloop.sessions.questions import answer_fault, open_questions
from wakeloop.thread.patient_saver import discard_cut_connections
from wakeloop.thread.patient_store import PatientStore
from wakeloop.thread.steering import list_waiting, steer

NEVER_DUE = "its months have no such day, so it would never fire."
KEEP_RECORDS = timedelta(hours=1)
ENDED = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")  # statuses of DBOS
# with ERROR, since the record of a failed timer would keep its id from being used again
PENDING = ("ENQUEUED", "DELAYED", "PENDING", "ERROR")
NO_TABLES = (sa.exc.OperationalError, sa.exc.ProgrammingError)  # raised before the first host has made them
PAGE_SIZE = 1000  # records per deletion
# DBOS documents this table; its client cannot ask for one thread's runs. The second condition on the
# status is that of a partial index.
WAITING_RUN = """SELECT 1 FROM {table} WHERE queue_name = :queue AND queue_partition_key = :thread
    AND status = 'ENQUEUED' AND status IN ('ENQUEUED', 'PENDING') LIMIT 1"""
T = TypeVar("T")


def next_time(cron: str, after: datetime) -> datetime:
    """Return the next time that a cron line fires after `after`, in UTC.

    Raises `SessionError` unless the line has five valid fields and fires at some time.

    Example:
        >>> from datetime import UTC
        >>> next_time("0 9 * * *", datetime(2030, 1, 1, 12, tzinfo=UTC)).isoformat()
        '2030-01-02T09:00:00+00:00'
    """
    if len(cron.split()) != CRON_FIELDS or not croniter.is_valid(cron):
        raise cron_line_error(cron)
    try:
        return croniter(cron, after).get_next(datetime)
    except CroniterBadDateError:
        raise cron_line_error(cron, NEVER_DUE) from None


class SessionClient(WaitsForEvents):
    """Stores events and schedules, even from a process that runs no sessions.

    They wait until a host is up. It has the methods of `SessionHost` except `drain`, and `wait`, `prune` and
    `close`.

    Args:
        url: `sqlite:///FILE` or `postgresql://…`. Missing tables are created.
        agents: The agents by name, compiled with the checkpointer that stores the threads. `send` and
            `schedule` only use the names, so the values may be anything; `status` and `list` read the threads
            through them.

    Raises:
        SessionError: SQLite is older than 3.42 and `pysqlite3-binary` is not installed.

    Example:
        >>> client = SessionClient("sqlite:///events.db", {"main": None})  # doctest: +SKIP
        >>> client.send("main", {"kind": "human", "text": "Good morning."})  # doctest: +SKIP
    """

    check_every = 0.05

    def __init__(self, url: str, agents: Mapping[str, Graph] | None = None) -> None:
        self.url = url
        self.agents: Mapping[str, Graph] = agents or {}
        self.mailbox = Mailbox(open_engine(url))
        self.mailbox.create_tables()

    def close(self) -> None:
        """Close the connections."""
        if (patient := self.__dict__.pop("own_store", None)) is not None:
            patient.store.conn.close()
        if "client" in self.__dict__:
            self.client.destroy()
        self.mailbox.engine.dispose()

    # -- steering ------------------------------------------------------------------------------------------

    def steer(
        self, thread_id: str, message: str | None = None, edits: Mapping[str, Any] | None = None
    ) -> str:
        """Send a person's words, or edits of the list, to the run under way, and return their id.

        Without a run they start one, unless the thread waits for an answer or is on hold.
        """
        key = steer(self.find_store(thread_id), thread_id, message, edits)
        self.mailbox.ensure_session(thread_id)
        self.request_run(thread_id, key)
        return key

    @computed_once
    def own_store(self) -> BaseStore:
        """The store in the database of events, of agents that were compiled without one."""
        return PatientStore(open_store(self.url), self.mailbox.patience.stopped)

    def find_store(self, thread: str) -> BaseStore:
        """Return the store of a thread's agent."""
        return getattr(self.agents[find_agent(thread, self.agents)], "store", None) or self.own_store

    # -- events --------------------------------------------------------------------------------------------

    def send(self, thread_id: str, event: WakeEvent) -> str:
        """Store an event for a thread and return its id. A repeated id is dropped."""
        find_agent(thread_id, self.agents)
        event = complete_event(event)
        behind = self.mailbox.add_event(thread_id, event, self.find_questions_seen(thread_id, event))
        # a run that waits in the queue reads this event, too; one under way may have looked for the last time
        # a repeat asks as well: its sender may have died between the two
        if not behind or not self.has_waiting_run(thread_id):
            self.request_run(thread_id, event["id"])
        return event["id"]

    def find_questions_seen(self, thread: str, event: WakeEvent) -> Sequence[str]:
        """Return the questions that are open when a person sends an event.

        Raises `SessionError` if the event answers another one. Returns nothing if the agents are only names,
        or the thread cannot be read from here: the host then checks the event when it comes to it.
        """
        agent = self.agents[find_agent(thread, self.agents)]
        if event["kind"] != "human" or not hasattr(agent, "get_state"):
            return ()
        try:
            questions = open_questions(self.read_thread(thread))
        except Exception:  # noqa: BLE001 - damaged, away, or this is the event loop of an asynchronous saver
            return ()
        why = answer_fault(event, questions)
        if why is not None and not self.mailbox.has_event(thread, event["id"]):
            raise SessionError(why)
        return questions

    def cancel(self, key: str) -> bool:
        """Remove a schedule, or an event that no run has taken, from all its threads."""
        if self.mailbox.remove_schedule(check_name("id", key)):
            return True
        found, answers = self.mailbox.withdraw(key, self.make_cancellation)
        for thread, event in answers:
            self.request_run(thread, event["id"])
        return found

    def make_cancellation(self, thread: str, event: WakeEvent) -> tuple[str, WakeEvent] | None:
        """Return the thread that waits for a cancelled event, and the event that informs it, if any."""
        refusal = make_refusal(event, thread, CANCELLED_MESSAGE)
        if refusal is None:
            return None
        with suppress(SessionError):  # the asker's agent is gone: there is nobody to inform
            find_agent(refusal.thread, self.agents)
            return refusal.thread, complete_event(refusal.event)
        return None

    def has_unsettled(self, thread_id: str | None) -> bool:
        """Tell whether an event waits, or is in a run, for a thread or for any (None)."""
        return bool(self.mailbox.list_unsettled(thread_id))

    # -- schedules -----------------------------------------------------------------------------------------

    def schedule(self, thread_id: str, cron: str, text: str) -> str:
        """Store a cron line for a thread and return the schedule's id."""
        find_agent(thread_id, self.agents)
        due, text = next_time(cron, utc_now()), check_text("text", text).replace("\0", "")
        key = derive_id("schedule", thread_id, cron, text)
        self.mailbox.add_schedule(key, thread_id, cron, text, due)
        self.set_timer(key, self.next_due(self.mailbox.find_schedules(id=key)[0]))
        return key

    def next_due(self, row: Any) -> datetime:
        """Return when a schedule fires next: no later than the next time of its line from now.

        Otherwise a clock that was ahead for a while, or a time that cannot be read, would stop it.
        """
        latest = next_time(row.cron, utc_now())
        with suppress(ValueError, TypeError):  # a damaged row, a time without a zone
            stored = datetime.fromisoformat(row.due)
            if stored <= latest:
                return stored
        self.mailbox.set_due(row.id, latest)
        return latest

    def schedules(self, thread_id: str | None = None) -> Sequence[Schedule]:
        """Return the schedules of one thread or of all."""
        which = {} if thread_id is None else {"thread": check_name("thread's id", thread_id)}
        rows = self.mailbox.find_schedules(**which)
        return [Schedule(row.id, row.thread, row.cron, row.text, row.due) for row in rows]

    def set_timer(self, schedule: str, due: datetime) -> None:
        """Let a schedule fire at its time, or at once if that has passed."""
        delay, when = max((due - utc_now()).total_seconds(), 0.0), due.isoformat()
        timer = {"workflow_name": TIMER_WORKFLOW, "workflow_id": f"{schedule}@{when}"}
        self._enqueue({**timer, "queue_name": TIMER_QUEUE}, delay, schedule, when)

    def set_timers(self) -> None:
        """Set a timer for each schedule without one, and note an error for each that would never fire."""
        for row in self.mailbox.find_schedules():
            try:
                self.set_timer(row.id, self.next_due(row))
            except SessionError as error:
                self.mailbox.note_error(row.thread, str(error))

    # -- the engine ----------------------------------------------------------------------------------------

    @computed_once
    def client(self) -> DBOSClient:
        """The client of the engine's tables."""
        return make_client(self.mailbox.engine)

    def _ask_engine(self, ask: Callable[[], T]) -> T | None:
        """Use the engine's tables, if a host has made them; wait while the database is away."""

        def attempt() -> T | None:
            try:
                return ask()
            except NO_TABLES as error:
                if classify_outage(error) is not None:
                    raise
                return None

        return wait_out(attempt, self.mailbox.patience, self.mailbox.engine.dispose)

    def _enqueue(self, options: dict[str, Any], delay: float, *args: str) -> None:
        """Put a workflow into a queue, at most once per id. A host that starts looks for what waits."""
        given: Any = {**options, "delay_seconds": delay} if delay else options
        self._ask_engine(lambda: self.client.enqueue(given, *args))

    def request_run(self, thread: str, key: str, delay: float = 0) -> None:
        """Queue a run of a thread. The same key for the same thread is the same run."""
        run = {"workflow_name": RUN_WORKFLOW, "workflow_id": f"{key}@{derive_id(thread)}"}
        queue = {"queue_name": RUN_QUEUE, "queue_partition_key": thread}
        self._enqueue({**run, **queue}, delay, thread)

    def has_waiting_run(self, thread: str) -> bool:
        """Tell whether a run of a thread is queued that no worker has taken yet.

        A run looks for events after a worker has taken it, so it finds each one that was stored before this
        call. If that worker is killed, the run is queued again and looks again.
        """
        schema = f"{APP_NAME}." if is_postgres(self.url) else ""
        query = sa.text(WAITING_RUN.format(table=f"{schema}workflow_status"))

        def find_run() -> bool:
            with self.mailbox.engine.connect() as c:
                return c.execute(query, {"queue": RUN_QUEUE, "thread": thread}).first() is not None

        return bool(self._ask_engine(find_run))

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

    def drop_unreadable_records(self) -> None:
        """Delete the engine's pending records that are not valid JSON.

        Nothing is lost: a record only asks for a run. The events are in the mailbox, and a starting host asks
        for a run of each thread that has some.
        """
        ours: Any = {"status": [*PENDING], "queue_name": [RUN_QUEUE, TIMER_QUEUE], "load_output": False}
        records = self._ask_engine(lambda: self.client.list_workflows(**ours)) or []
        damaged = [record.workflow_id for record in records if not isinstance(record.input, dict)]
        for first in range(0, len(damaged), PAGE_SIZE):
            self.client.delete_workflows(damaged[first : first + PAGE_SIZE])

    # -- status --------------------------------------------------------------------------------------------

    def status(self, thread_id: str) -> SessionStatus:
        """Return the status of a session."""
        found = self.mailbox.list_sessions(check_name("thread's id", thread_id))
        if not found:
            raise unknown_session_error(thread_id)
        return self._status(*found[0])

    def list(self) -> Sequence[SessionStatus]:
        """Return the status of every session, ordered by thread id."""
        return [self._status(*row) for row in self.mailbox.list_sessions()]

    def read_thread(self, thread: str) -> StateSnapshot:
        """Return the newest checkpoint of a thread; wait while its database is away."""
        graph = self.agents[find_agent(thread, self.agents)]
        return wait_out(
            lambda: graph.get_state(name_config(thread)),
            self.mailbox.patience,
            lambda: discard_cut_connections(graph.checkpointer),
        )

    def _status(self, thread: str, queued: int, error: str | None) -> SessionStatus:
        try:
            agent = find_agent(thread, self.agents)
            snapshot = self.read_thread(thread)
            sent = len(list_waiting(self.find_store(thread), thread, snapshot.values))
            found = replace(SessionStatus.from_snapshot(thread, agent, snapshot, queued), sent=sent)
            return replace(found, error=error) if error else found
        except Exception as fault:  # one unreadable session must not hide the others
            if classify_outage(fault) is not None:
                raise
            return SessionStatus.from_error(thread, fault, queued)
