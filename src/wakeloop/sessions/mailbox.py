"""Where events wait: rows by thread, in order, each id once."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import REGCLASS
from sqlalchemy.exc import IntegrityError

from wakeloop.loop.inbox import WakeEvent
from wakeloop.sessions.questions import ANY_QUESTION, update_question_notes
from wakeloop.sessions.stored_events import (
    StoredEvent,
    dump_event,
    load_event,
    parse_json,
    unreadable_event_error,
)
from wakeloop.sessions.tables import EVENTS, METADATA, SCHEDULES, SESSIONS, WORKERS
from wakeloop.text.characters import storable_text

NOT_TAKEN = (EVENTS.c.event.is_not(None), EVENTS.c.turn.is_(None))  # what no run has taken
AddressedEvent = tuple[str, WakeEvent]
"""A thread, and an event for it."""


@dataclass(frozen=True)
class Mailbox:
    """The events, sessions and schedules of one database; every method is one transaction."""

    engine: sa.Engine

    def create_tables(self) -> None:
        """Make the tables that do not exist yet; several processes may try at once."""
        try:
            METADATA.create_all(self.engine)
        except (IntegrityError, sa.exc.OperationalError, sa.exc.ProgrammingError):
            METADATA.create_all(self.engine)  # another process was making them: now they are there

    # -- events ------------------------------------------------------------------------------------------

    def add_event(self, thread: str, event: WakeEvent, questions: Sequence[str] = ()) -> bool:
        """Store an event behind the others of its thread; False if its id was here before.

        `questions` are ids of those at which its sender saw the thread stand: it came after them.
        """
        try:
            with self.engine.begin() as c:
                self._ensure_session(c, thread)
                if questions:
                    before = self._read_notes(c, thread, alone=True)
                    self._write_notes(
                        c,
                        thread,
                        {**before, **update_question_notes(before, questions, self._newest_number(c))},
                    )
                c.execute(EVENTS.insert().values(id=event["id"], thread=thread, event=dump_event(event)))
        except IntegrityError:
            return False
        return True

    def list_waiting(self, thread: str) -> list[StoredEvent]:
        """Return what waits for a thread, in the order in which it came; what cannot be read stays behind."""
        columns = (EVENTS.c.id, EVENTS.c.event, EVENTS.c.turn, EVENTS.c.seq, EVENTS.c.error)
        mine = (EVENTS.c.thread == thread, EVENTS.c.event.is_not(None))
        with self.engine.connect() as c:
            rows = c.execute(sa.select(*columns).where(*mine).order_by(EVENTS.c.seq)).all()
        letters = list[StoredEvent]()
        for key, text, run, number, error in rows:
            if (event := load_event(text, key)) is not None:
                letters.append(StoredEvent(event, run, number, error))
            elif error is None:
                self.requeue(thread, [key], unreadable_event_error(key))
        return letters

    def has_event(self, thread: str, key: str) -> bool:
        """Tell whether an event with this id was ever accepted for a thread."""
        query = sa.select(EVENTS.c.seq).where(EVENTS.c.thread == thread, EVENTS.c.id == key)
        with self.engine.connect() as c:
            return c.execute(query).first() is not None

    def list_unsettled(self, thread: str | None = None) -> list[tuple[str, str]]:
        """Return thread and id of the newest event that waits in each thread; those before it may be held.

        What was given up waits for the next event of its thread, and does not count.
        """
        waits: list[sa.ColumnElement[bool]] = [EVENTS.c.event.is_not(None), EVENTS.c.error.is_(None)]
        if thread is not None:
            waits.append(EVENTS.c.thread == thread)
        newest = sa.select(sa.func.max(EVENTS.c.seq)).where(*waits).group_by(EVENTS.c.thread)
        query = sa.select(EVENTS.c.thread, EVENTS.c.id).where(EVENTS.c.seq.in_(newest)).order_by(EVENTS.c.seq)
        with self.engine.connect() as c:
            return [(where, key) for where, key in c.execute(query)]

    def claim(self, run: str, letters: Sequence[StoredEvent]) -> bool:
        """Note which events a run takes, and as what, before it does anything with them.

        False, with nothing noted, where one of them was withdrawn since it was read.
        """
        with self.engine.connect() as c, c.begin() as noting:
            for letter in letters:
                if not self._update_free(
                    c, letter.number, turn=run, event=dump_event(letter.event), error=None
                ):
                    noting.rollback()
                    return False
        return True

    def settle_run(self, thread: str, run: str, error: str | None = None) -> None:
        """Let go of a run's events: their ids stay, so that a repeat is known."""
        self._end_events(thread, EVENTS.c.turn == run, error, event=None)

    def refuse_event(self, thread: str, key: str, why: str) -> None:
        """Let go of an event that no run takes; its session says why."""
        self._end_events(thread, EVENTS.c.id == key, why, event=None)

    def requeue(self, thread: str, keys: Collection[str], error: str | None) -> None:
        """Note for what error events were given up, and keep them: the next event takes them along."""
        self._end_events(thread, EVENTS.c.id.in_([*keys]), error, turn=None)

    def _update_free(self, c: sa.Connection, number: int, **change: str | None) -> bool:
        """Change an event, unless a run has taken it."""
        return bool(
            c.execute(EVENTS.update().where(EVENTS.c.seq == number, *NOT_TAKEN).values(**change)).rowcount
        )

    def _end_events(
        self, thread: str, these: sa.ColumnElement[bool], error: str | None, **change: None
    ) -> None:
        error = None if error is None else storable_text(error)  # it may quote anything
        with self.engine.begin() as c:
            ended = EVENTS.update().where(EVENTS.c.thread == thread, these)
            c.execute(ended.values(error=error, **change))
            self._ensure_session(c, thread)
            c.execute(SESSIONS.update().where(SESSIONS.c.thread == thread).values(error=error))

    def drop_question(self, thread: str, keys: Collection[str]) -> None:
        """Let answers wait as texts that name no question: theirs is gone with the run that was given up."""
        for letter in self.list_waiting(thread):
            if letter.id in keys:
                event = {key: value for key, value in letter.event.items() if key != "correlation_id"}
                mine = EVENTS.update().where(EVENTS.c.seq == letter.number)
                with self.engine.begin() as c:
                    c.execute(mine.values(event=dump_event(event)))

    def withdraw(
        self, key: str, answer: Callable[[str, WakeEvent], AddressedEvent | None]
    ) -> tuple[bool, list[AddressedEvent]]:
        """Take back the events of this id that no run has taken; tell whether there was one.

        What `answer` makes of each for whoever waits for it is stored with that, or neither, and returned.
        """
        found, told = False, list[AddressedEvent]()
        with self.engine.begin() as c:
            query = sa.select(EVENTS.c.seq, EVENTS.c.thread, EVENTS.c.event).where(
                EVENTS.c.id == key, *NOT_TAKEN
            )
            for number, thread, text in c.execute(query.order_by(EVENTS.c.seq)).all():
                if not self._update_free(c, number, event=None):
                    continue
                found, event = True, load_event(text, key)
                if event is not None and (letter := answer(thread, event)) is not None:
                    to, said = letter
                    self._ensure_session(c, to)
                    values = {"id": said["id"], "thread": to, "event": dump_event(said)}
                    c.execute(self._insert_into(EVENTS).values(values).on_conflict_do_nothing())
                    told.append(letter)
        return found, told

    # -- questions ---------------------------------------------------------------------------------------

    def note_questions(self, thread: str, questions: Sequence[str]) -> dict[str, int]:
        """Note at which questions a thread stands, for whoever holds the thread; return the notes.

        Of each the newest event's number is kept, as it was when the question was first noted: what has a
        smaller one, or the same, came before it.
        """
        with self.engine.connect() as c:
            before = self._read_notes(c, thread)
        if list(before) == list(questions):
            return before
        with self.engine.begin() as c:
            now = update_question_notes(
                self._read_notes(c, thread, alone=True), questions, self._newest_number(c)
            )
            self._write_notes(c, thread, now)
        return now

    def _read_notes(self, c: sa.Connection, thread: str, *, alone: bool = False) -> dict[str, int]:
        mine = SESSIONS.c.thread == thread
        if alone:  # a write keeps other writers away until this transaction ends, on either database
            c.execute(SESSIONS.update().where(mine).values(thread=thread))
        text = c.execute(sa.select(SESSIONS.c.asked).where(mine)).scalar()
        notes = parse_json(text) if text else {}
        whole = isinstance(notes, dict) and all(isinstance(number, int) for number in notes.values())
        return (
            notes if whole else {ANY_QUESTION: self._newest_number(c)}
        )  # damaged: what is there answers nothing

    def _write_notes(self, c: sa.Connection, thread: str, notes: dict[str, int]) -> None:
        c.execute(SESSIONS.update().where(SESSIONS.c.thread == thread).values(asked=json.dumps(notes)))

    def _newest_number(self, c: sa.Connection) -> int:
        """Return the newest number that was given to an event, also to one that is not committed yet."""
        if self.engine.dialect.name == "sqlite":
            return int(c.execute(sa.select(sa.func.max(EVENTS.c.seq))).scalar() or 0)
        sequence = sa.func.pg_get_serial_sequence(EVENTS.name, EVENTS.c.seq.name)
        given = sa.func.pg_sequence_last_value(sa.cast(sequence, REGCLASS))
        return int(c.execute(sa.select(given)).scalar() or 0)

    # -- sessions ----------------------------------------------------------------------------------------

    def list_sessions(self, thread: str | None = None) -> list[tuple[str, int, str | None]]:
        """Return thread, number of events that no run has taken, and the newest run's error."""
        queued = (
            sa.select(EVENTS.c.thread, sa.func.count().label("n"))
            .where(*NOT_TAKEN)
            .group_by(EVENTS.c.thread)
            .subquery()
        )
        query = (
            sa.select(SESSIONS.c.thread, sa.func.coalesce(queued.c.n, 0), SESSIONS.c.error)
            .outerjoin(queued, queued.c.thread == SESSIONS.c.thread)
            .order_by(SESSIONS.c.thread)
        )
        if thread is not None:
            query = query.where(SESSIONS.c.thread == thread)
        with self.engine.connect() as c:
            return [(key, queued, error) for key, queued, error in c.execute(query)]

    # -- schedules ---------------------------------------------------------------------------------------

    def add_schedule(self, key: str, thread: str, cron: str, text: str, due: datetime) -> bool:
        """Store a schedule; False if it is here already."""
        row = {
            "id": key,
            "thread": thread,
            "cron": cron,
            "text": text,
            "due": due.astimezone(UTC).isoformat(),
        }
        with self.engine.begin() as c:
            return bool(c.execute(self._insert_into(SCHEDULES).values(row).on_conflict_do_nothing()).rowcount)

    def find_schedules(self, thread: str | None = None, key: str | None = None) -> Sequence[sa.Row[Any]]:
        """Return the schedules, of one thread or one id or all, by id."""
        query = sa.select(SCHEDULES).order_by(SCHEDULES.c.id)
        if thread is not None:
            query = query.where(SCHEDULES.c.thread == thread)
        if key is not None:
            query = query.where(SCHEDULES.c.id == key)
        with self.engine.connect() as c:
            return c.execute(query).all()

    def set_due(self, key: str, due: datetime) -> None:
        """Note when a schedule is due next."""
        with self.engine.begin() as c:
            when = due.astimezone(UTC).isoformat()
            c.execute(SCHEDULES.update().where(SCHEDULES.c.id == key).values(due=when))

    def remove_schedule(self, key: str) -> bool:
        """Remove a schedule; False where there is none."""
        with self.engine.begin() as c:
            return bool(c.execute(SCHEDULES.delete().where(SCHEDULES.c.id == key)).rowcount)

    # -- workers -----------------------------------------------------------------------------------------

    def register_worker(self, worker: str) -> None:
        """Note that a worker runs sessions."""
        row = {"worker": worker, "since": datetime.now(UTC).isoformat(), "draining": False}
        with self.engine.begin() as c:
            c.execute(WORKERS.delete().where(WORKERS.c.worker == worker))
            c.execute(WORKERS.insert().values(row))

    def unregister_worker(self, worker: str) -> None:
        """Note that a worker is gone."""
        with self.engine.begin() as c:
            c.execute(WORKERS.delete().where(WORKERS.c.worker == worker))

    def list_workers(self) -> list[tuple[str, str, bool]]:
        """Return name, start and whether it is to drain, of each worker; one that died stands there, too."""
        with self.engine.connect() as c:
            rows = c.execute(sa.select(WORKERS).order_by(WORKERS.c.since))
            return [(r.worker, r.since, r.draining) for r in rows]

    def request_drain(self) -> None:
        """Ask all workers to come to rest."""
        with self.engine.begin() as c:
            c.execute(WORKERS.update().values(draining=True))

    def _ensure_session(self, c: sa.Connection, thread: str) -> None:
        c.execute(self._insert_into(SESSIONS).values(thread=thread).on_conflict_do_nothing())

    def _insert_into(self, table: sa.Table) -> Any:
        own = sqlite if self.engine.dialect.name == "sqlite" else postgresql  # each engine has its own
        return own.insert(table)
