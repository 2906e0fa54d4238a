"""The store of events, sessions, schedules and workers."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import REGCLASS
from sqlalchemy.exc import IntegrityError

from wakeloop.loop.inbox import WakeEvent, find_event_fault
from wakeloop.platform.outages import Patience, wait_out
from wakeloop.sessions.questions import ANY_QUESTION, update_question_notes
from wakeloop.text.characters import shorten, storable_text

METADATA = sa.MetaData()
EVENTS = sa.Table(
    "wakeloop_events",
    METADATA,
    sa.Column(
        "seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True
    ),
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("thread", sa.Text, nullable=False),
    sa.Column("event", sa.Text),  # JSON; NULL once its run has ended
    sa.Column("run", sa.Text),  # the run that took it
    sa.Column("error", sa.Text),  # why its run failed, or why it was refused
    sa.UniqueConstraint("thread", "id"),
    sqlite_autoincrement=True,  # never reuse a number: the numbers give the order of events and questions
)
WAITING = sa.Index(
    "wakeloop_events_waiting",
    EVENTS.c.thread,
    EVENTS.c.seq,
    sqlite_where=EVENTS.c.event.is_not(None),
    postgresql_where=EVENTS.c.event.is_not(None),
)
SESSIONS = sa.Table(
    "wakeloop_sessions",
    METADATA,
    sa.Column("thread", sa.Text, primary_key=True),
    sa.Column("error", sa.Text),  # why the newest run failed, or why an answer was refused
    sa.Column("asked", sa.Text),  # JSON: each open question, and the newest event when it was asked
)
SCHEDULES = sa.Table(
    "wakeloop_schedules",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("thread", sa.Text, nullable=False),
    sa.Column("cron", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("due", sa.Text, nullable=False),  # ISO 8601, UTC
)
TRUSTED = sa.Table(
    "wakeloop_trusted",
    METADATA,
    sa.Column("agent", sa.Text, primary_key=True),
    sa.Column("files", sa.Text, nullable=False),  # JSON: hashes of the files that start code
)
WORKERS = sa.Table(
    "wakeloop_workers",
    METADATA,
    sa.Column("worker", sa.Text, primary_key=True),
    sa.Column("since", sa.Text, nullable=False),  # ISO 8601, UTC
    sa.Column("draining", sa.Boolean, nullable=False, default=False),
)
NOT_TAKEN = (EVENTS.c.event.is_not(None), EVENTS.c.run.is_(None))  # events that no run has taken
AddressedEvent = tuple[str, WakeEvent]
"""A thread, and an event for it."""
Kind = TypeVar("Kind", bound=type)


@dataclass(frozen=True)
class StoredEvent:
    """An event that waits in a store.

    Attributes:
        event: The event.
        run: The run that has taken it; None if none has.
        number: Its number in the store's order.
        error: Why a run gave it back; None if none has.
    """

    event: WakeEvent
    run: str | None
    number: int
    error: str | None = None

    @property
    def id(self) -> str:
        """The event's id."""
        return self.event["id"]


def dump_event(event: Mapping[str, Any]) -> str:
    """Return an event as JSON for a row."""
    return json.dumps(event, ensure_ascii=False)


def load_event(text: str, key: str) -> WakeEvent | None:
    """Read the event with this id from a row; None if the row is damaged."""
    event = parse_json(text)
    if not isinstance(event, dict) or event.get("id") != key or find_event_fault(event) is not None:
        return None
    return cast("WakeEvent", event)


def parse_json(text: str) -> Any:
    """Parse the JSON of a row; None if it is damaged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_text(value: object) -> str:
    """Return a column of text; a damaged SQLite row may hold anything there."""
    return value if isinstance(value, str) else ascii(value)


def waits_for_database(kind: Kind) -> Kind:
    """Let each public method of a class with an `engine` wait while the database is away."""

    def patiently(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(box: Any, *given: Any, **more: Any) -> Any:
            # a connection to a server that has become read-only never recovers
            return wait_out(lambda: method(box, *given, **more), box.patience, box.engine.dispose)

        return call

    for name, method in [*vars(kind).items()]:
        if callable(method) and not name.startswith("_"):
            setattr(kind, name, patiently(method))
    return kind


@waits_for_database
@dataclass(frozen=True)
class Mailbox:
    """The events, sessions, schedules and workers of one database.

    Every method is one transaction, which is repeated while the database is away.
    """

    engine: sa.Engine
    patience: Patience = field(default_factory=Patience)

    def create_tables(self) -> None:
        """Create the tables that do not exist yet. Several processes may try at once."""
        try:
            METADATA.create_all(self.engine)
        except (IntegrityError, sa.exc.OperationalError, sa.exc.ProgrammingError):
            METADATA.create_all(self.engine)  # another process was creating them: now they exist

    # -- events ------------------------------------------------------------------------------------------

    def add_event(self, thread: str, event: WakeEvent, questions: Sequence[str] = ()) -> bool:
        """Store an event after the others of its thread, unless its id was stored before.

        Return whether it was stored behind another event that no run has taken yet.

        `questions` are the ids of the questions that its sender saw in the thread, so it came after them.
        """
        other = EVENTS.alias()
        waits = (other.c.thread == thread, other.c.event.is_not(None), other.c.run.is_(None))
        behind = sa.exists().where(*waits, other.c.id != event["id"])
        row = EVENTS.insert().values(id=event["id"], thread=thread, event=dump_event(event))
        try:
            with self.engine.begin() as c:
                self._ensure_session(c, thread)
                if questions:
                    before = self._read_notes(c, thread, alone=True)
                    seen = update_question_notes(before, questions, self._newest_number(c))
                    self._write_notes(c, thread, {**before, **seen})
                return bool(c.execute(row.returning(behind)).scalar())
        except IntegrityError:
            return False

    def list_waiting(self, thread: str) -> list[StoredEvent]:
        """Return the events that wait for a thread, in order of arrival, skipping unreadable ones."""
        columns = (EVENTS.c.id, EVENTS.c.event, EVENTS.c.run, EVENTS.c.seq, EVENTS.c.error)
        waiting = (EVENTS.c.thread == thread, EVENTS.c.event.is_not(None))
        rows = self._read(sa.select(*columns).where(*waiting).order_by(EVENTS.c.seq))
        events: list[StoredEvent] = []
        for key, text, run, number, error in rows:
            event = load_event(text, key)
            if event is not None:
                events.append(StoredEvent(event, run, number, error))
            elif error is None:  # damaged, and not reported yet
                why = "cannot be read. It waits until its row is repaired or it is cancelled."
                self.requeue(thread, [key], f"Event {shorten(repr(key))} {why}")
        return events

    def has_event(self, thread: str, key: str) -> bool:
        """Tell whether an event with this id was ever accepted for a thread."""
        query = sa.select(EVENTS.c.seq).where(EVENTS.c.thread == thread, EVENTS.c.id == key)
        return bool(self._read(query))

    def list_unsettled(self, thread: str | None = None) -> list[tuple[str, str]]:
        """Return the thread and id of the newest waiting event of each thread.

        The newest, because older ones may be held by an interrupt. Events of failed runs do not count: they
        wait for the next event of their thread.
        """
        waits: list[sa.ColumnElement[bool]] = [EVENTS.c.event.is_not(None), EVENTS.c.error.is_(None)]
        if thread is not None:
            waits.append(EVENTS.c.thread == thread)
        newest = sa.select(sa.func.max(EVENTS.c.seq)).where(*waits).group_by(EVENTS.c.thread)
        query = sa.select(EVENTS.c.thread, EVENTS.c.id).where(EVENTS.c.seq.in_(newest)).order_by(EVENTS.c.seq)
        return [(where, key) for where, key in self._read(query)]

    def claim(self, run: str, events: Sequence[StoredEvent]) -> bool:
        """Note which events a run takes, before it does anything with them.

        Return False and note nothing if one of them was withdrawn since it was read.
        """
        with self.engine.connect() as c, c.begin() as transaction:
            for one in events:
                if not self._update_free(c, one.number, run=run, event=dump_event(one.event), error=None):
                    transaction.rollback()
                    return False
        return True

    def settle_run(self, thread: str, run: str, error: str | None = None) -> None:
        """Delete a run's events but keep their ids, so that a repeat is recognized."""
        self._end_events(thread, EVENTS.c.run == run, error, event=None)

    def refuse(self, thread: str, key: str, why: str) -> None:
        """Delete an event that no run takes, and note why in its session."""
        self._end_events(thread, EVENTS.c.id == key, why, event=None)

    def requeue(self, thread: str, keys: Collection[str], error: str | None) -> None:
        """Give back the events of a failed run, with its error. The next event takes them along."""
        self._end_events(thread, EVENTS.c.id.in_([*keys]), error, run=None)

    def note_error(self, thread: str, error: str | None) -> None:
        """Note an error in a session without touching its events."""
        with self.engine.begin() as c:
            self._write_error(c, thread, None if error is None else storable_text(error))

    def _update_free(self, c: sa.Connection, number: int, **change: str | None) -> bool:
        """Change an event, unless a run has taken it."""
        update = EVENTS.update().where(EVENTS.c.seq == number, *NOT_TAKEN).values(**change)
        return bool(c.execute(update).rowcount)

    def _end_events(
        self, thread: str, which: sa.ColumnElement[bool], error: str | None, **change: None
    ) -> None:
        error = None if error is None else storable_text(error)  # it may quote anything
        with self.engine.begin() as c:
            c.execute(EVENTS.update().where(EVENTS.c.thread == thread, which).values(error=error, **change))
            self._write_error(c, thread, error)

    def _write_error(self, c: sa.Connection, thread: str, error: str | None) -> None:
        row = self._insert_into(SESSIONS).values(thread=thread, error=error)
        c.execute(row.on_conflict_do_update(index_elements=[SESSIONS.c.thread], set_={"error": error}))

    def drop_question(self, thread: str, keys: Collection[str]) -> None:
        """Turn answers into plain messages: the question they name ended with the run that failed."""
        for one in self.list_waiting(thread):
            if one.id in keys:
                event = {key: value for key, value in one.event.items() if key != "correlation_id"}
                update = EVENTS.update().where(EVENTS.c.seq == one.number)
                self._write(update.values(event=dump_event(event)))

    def withdraw(
        self, key: str, answer: Callable[[str, WakeEvent], AddressedEvent | None]
    ) -> tuple[bool, list[AddressedEvent]]:
        """Delete the events with this id that no run has taken. Return whether any was, and the answers.

        `answer` makes the event that informs whoever waits for the deleted one. Deletion and answers share
        one transaction, so neither happens without the other.
        """
        found, answers = False, list[AddressedEvent]()
        with self.engine.begin() as c:
            query = sa.select(EVENTS.c.seq, EVENTS.c.thread, EVENTS.c.event).where(
                EVENTS.c.id == key, *NOT_TAKEN
            )
            for number, thread, text in c.execute(query.order_by(EVENTS.c.seq)).all():
                if not self._update_free(c, number, event=None):
                    continue
                found, event = True, load_event(text, key)
                reply = None if event is None else answer(thread, event)
                if reply is not None:
                    asker, event = reply
                    self._ensure_session(c, asker)
                    row = {"id": event["id"], "thread": asker, "event": dump_event(event)}
                    c.execute(self._insert_into(EVENTS).values(row).on_conflict_do_nothing())
                    answers.append(reply)
        return found, answers

    # -- questions ---------------------------------------------------------------------------------------

    def note_questions(self, thread: str, questions: Sequence[str]) -> dict[str, int]:
        """Note the open questions of a thread and return the notes. The caller must hold the thread.

        Each question gets the number of the newest event at the time it was first noted. Events with this
        number or a smaller one came before the question.
        """
        with self.engine.connect() as c:
            before = self._read_notes(c, thread)
        if list(before) == list(questions):
            return before
        with self.engine.begin() as c:
            before = self._read_notes(c, thread, alone=True)
            notes = update_question_notes(before, questions, self._newest_number(c))
            self._write_notes(c, thread, notes)
        return notes

    def _read_notes(self, c: sa.Connection, thread: str, *, alone: bool = False) -> dict[str, int]:
        mine = SESSIONS.c.thread == thread
        if alone:  # on either database, a write keeps other writers out until this transaction ends
            c.execute(SESSIONS.update().where(mine).values(thread=thread))
        text = c.execute(sa.select(SESSIONS.c.asked).where(mine)).scalar()
        notes = parse_json(text) if text else {}
        if isinstance(notes, dict) and all(isinstance(number, int) for number in notes.values()):
            return notes
        return {ANY_QUESTION: self._newest_number(c)}  # damaged: no event that is here answers anything

    def _write_notes(self, c: sa.Connection, thread: str, notes: dict[str, int]) -> None:
        c.execute(SESSIONS.update().where(SESSIONS.c.thread == thread).values(asked=json.dumps(notes)))

    def _newest_number(self, c: sa.Connection) -> int:
        """Return the newest number given to an event, even one that is not committed yet."""
        if self.engine.dialect.name == "sqlite":
            return int(c.execute(sa.select(sa.func.max(EVENTS.c.seq))).scalar() or 0)
        # on Postgres a transaction may still commit a smaller number than the largest one in the table
        sequence = sa.func.pg_get_serial_sequence(EVENTS.name, EVENTS.c.seq.name)
        last = sa.func.pg_sequence_last_value(sa.cast(sequence, REGCLASS))
        return int(c.execute(sa.select(last)).scalar() or 0)

    # -- sessions ----------------------------------------------------------------------------------------

    def ensure_session(self, thread: str) -> None:
        """Note that there is a session, so that it has a status."""
        with self.engine.begin() as c:
            self._ensure_session(c, thread)

    def list_sessions(self, thread: str | None = None) -> list[tuple[str, int, str | None]]:
        """Return for each session its thread, the number of events no run has taken, and its last error."""
        count = sa.func.count().label("n")
        queued = sa.select(EVENTS.c.thread, count).where(*NOT_TAKEN).group_by(EVENTS.c.thread).subquery()
        query = (
            sa.select(SESSIONS.c.thread, sa.func.coalesce(queued.c.n, 0), SESSIONS.c.error)
            .outerjoin(queued, queued.c.thread == SESSIONS.c.thread)
            .order_by(SESSIONS.c.thread)
        )
        if thread is not None:
            query = query.where(SESSIONS.c.thread == thread)
        rows = self._read(query)
        return [(read_text(key), n, None if error is None else read_text(error)) for key, n, error in rows]

    # -- schedules ---------------------------------------------------------------------------------------

    def add_schedule(self, key: str, thread: str, cron: str, text: str, due: datetime) -> bool:
        """Store a schedule. Return False if it exists already."""
        row = {"id": key, "thread": thread, "cron": cron, "text": text, "due": _format_utc(due)}
        return self._write(self._insert_into(SCHEDULES).values(row).on_conflict_do_nothing())

    def find_schedules(self, **which: str) -> Sequence[sa.Row[Any]]:
        """Return the schedules of one thread (`thread`), with one id (`id`), or all, ordered by id."""
        return self._read(sa.select(SCHEDULES).filter_by(**which).order_by(SCHEDULES.c.id))

    def set_due(self, key: str, due: datetime) -> None:
        """Note when a schedule fires next."""
        self._write(SCHEDULES.update().where(SCHEDULES.c.id == key).values(due=_format_utc(due)))

    def remove_schedule(self, key: str) -> bool:
        """Remove a schedule. Return False if it does not exist."""
        return self._write(SCHEDULES.delete().where(SCHEDULES.c.id == key))

    # -- files -------------------------------------------------------------------------------------------

    def note_trusted(self, agent: str, files: Mapping[str, Sequence[str]]) -> None:
        """Note the hashes of the files that start an agent's code."""
        with self.engine.begin() as c:
            c.execute(TRUSTED.delete().where(TRUSTED.c.agent == agent))
            c.execute(TRUSTED.insert().values(agent=agent, files=json.dumps(files)))

    def read_trusted(self) -> dict[str, dict[str, list[str]]]:
        """Return the noted hashes by agent."""
        rows = self._read(sa.select(TRUSTED.c.agent, TRUSTED.c.files))
        return {agent: files for agent, text in rows if isinstance(files := parse_json(text), dict)}

    # -- workers -----------------------------------------------------------------------------------------

    def register_worker(self, worker: str) -> None:
        """Note that a worker runs sessions."""
        row = {"worker": worker, "since": datetime.now(UTC).isoformat(), "draining": False}
        with self.engine.begin() as c:
            c.execute(WORKERS.delete().where(WORKERS.c.worker == worker))
            c.execute(WORKERS.insert().values(row))

    def unregister_worker(self, worker: str) -> None:
        """Note that a worker has left."""
        self._write(WORKERS.delete().where(WORKERS.c.worker == worker))

    def list_workers(self) -> list[tuple[str, str, bool]]:
        """Return each worker's name, start, and whether it is to drain, including workers that died."""
        rows = self._read(sa.select(WORKERS).order_by(WORKERS.c.since))
        return [(row.worker, row.since, row.draining) for row in rows]

    def request_drain(self) -> None:
        """Ask all workers to drain."""
        self._write(WORKERS.update().values(draining=True))

    def _read(self, query: Any) -> Sequence[Any]:
        with self.engine.connect() as c:
            return c.execute(query).all()

    def _write(self, statement: Any) -> bool:
        """Execute one statement, and tell whether it changed a row."""
        with self.engine.begin() as c:
            return bool(c.execute(statement).rowcount)

    def _ensure_session(self, c: sa.Connection, thread: str) -> None:
        c.execute(self._insert_into(SESSIONS).values(thread=thread).on_conflict_do_nothing())

    def _insert_into(self, table: sa.Table) -> Any:
        dialect = sqlite if self.engine.dialect.name == "sqlite" else postgresql  # ON CONFLICT is not generic
        return dialect.insert(table)


def _format_utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
