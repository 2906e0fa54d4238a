"""Where events wait: rows by thread, in order, each id once."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from wakeloop.inbox import WakeEvent
from wakeloop.sessions.tables import EVENTS, SCHEDULES, SESSIONS, TABLES, WORKERS
from wakeloop.text.characters import storable

Answer = Callable[[str, WakeEvent], tuple[str, WakeEvent] | None]


@dataclass(frozen=True)
class Letter:
    """An event that waits, the run that has taken it, if one has, and why it was given up, if it was."""

    event: WakeEvent
    run: str | None
    error: str | None = None

    @property
    def id(self) -> str:
        """The event's id."""
        return self.event["id"]


@dataclass(frozen=True)
class Mailbox:
    """The events, sessions and schedules of one database; every method is one transaction."""

    engine: sa.Engine

    def create(self) -> None:
        """Make the tables that are not there yet; several processes may try at once."""
        try:
            TABLES.create_all(self.engine)
        except (IntegrityError, sa.exc.OperationalError, sa.exc.ProgrammingError):
            TABLES.create_all(self.engine)  # another process was making them: now they are there

    # -- events ------------------------------------------------------------------------------------------

    def put(self, thread: str, event: WakeEvent) -> bool:
        """Store an event behind the others of its thread; False if its id was here before."""
        try:
            with self.engine.begin() as c:
                c.execute(self._insert(SESSIONS).values(thread=thread).on_conflict_do_nothing())
                text = json.dumps(event, ensure_ascii=False)
                c.execute(EVENTS.insert().values(id=event["id"], thread=thread, event=text))
        except IntegrityError:
            return False
        return True

    def waiting(self, thread: str) -> list[Letter]:
        """Return what waits for a thread, in the order in which it came."""
        query = (
            sa.select(EVENTS.c.event, EVENTS.c.turn, EVENTS.c.error)
            .where(EVENTS.c.thread == thread, EVENTS.c.event.is_not(None))
            .order_by(EVENTS.c.seq)
        )
        with self.engine.connect() as c:
            return [Letter(json.loads(event), turn, error) for event, turn, error in c.execute(query)]

    def unsettled(self, thread: str | None = None) -> list[tuple[str, str]]:
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

    def begin(self, run: str, events: Sequence[WakeEvent]) -> bool:
        """Note which events a run takes, and as what, before it does anything with them.

        False, with nothing noted, where one of them was withdrawn since it was read.
        """
        with self.engine.connect() as c, c.begin() as noting:
            for event in events:
                text = json.dumps(event, ensure_ascii=False)
                free = (EVENTS.c.id == event["id"], EVENTS.c.event.is_not(None), EVENTS.c.turn.is_(None))
                taken = EVENTS.update().where(*free).values(turn=run, event=text, error=None)
                if not c.execute(taken).rowcount:
                    noting.rollback()
                    return False
        return True

    def settle(self, thread: str, run: str, error: str | None = None) -> None:
        """Let go of a run's events: their ids stay, so that a repeat is known."""
        error = None if error is None else storable(error)  # it may quote anything
        with self.engine.begin() as c:
            c.execute(EVENTS.update().where(EVENTS.c.turn == run).values(event=None, error=error))
            c.execute(SESSIONS.update().where(SESSIONS.c.thread == thread).values(error=error))

    def put_back(self, thread: str, keys: Collection[str], error: str | None) -> None:
        """Note for what error events were given up, and keep them: the next event takes them along."""
        error = None if error is None else storable(error)
        with self.engine.begin() as c:
            these = EVENTS.update().where(EVENTS.c.thread == thread, EVENTS.c.id.in_([*keys]))
            c.execute(these.values(turn=None, error=error))
            c.execute(self._insert(SESSIONS).values(thread=thread).on_conflict_do_nothing())
            c.execute(SESSIONS.update().where(SESSIONS.c.thread == thread).values(error=error))

    def withdraw(self, key: str, answer: Answer | None = None) -> tuple[str, WakeEvent] | None:
        """Take back an event that no run has taken; return its thread and it, or None.

        What `answer` makes of it for whoever waits for it, thread and event, is stored with that, or neither.
        """
        free = (EVENTS.c.id == key, EVENTS.c.turn.is_(None), EVENTS.c.event.is_not(None))
        with self.engine.begin() as c:
            row = c.execute(sa.select(EVENTS.c.thread, EVENTS.c.event).where(*free)).first()
            if row is None or not c.execute(EVENTS.update().where(*free).values(event=None)).rowcount:
                return None
            thread, event = row[0], cast("WakeEvent", json.loads(row[1]))
            if answer is not None and (letter := answer(thread, event)) is not None:
                to, text = letter[0], json.dumps(letter[1], ensure_ascii=False)
                c.execute(self._insert(SESSIONS).values(thread=to).on_conflict_do_nothing())
                values = {"id": letter[1]["id"], "thread": to, "event": text}
                c.execute(self._insert(EVENTS).values(values).on_conflict_do_nothing())
        return thread, event

    # -- sessions ----------------------------------------------------------------------------------------

    def sessions(self, thread: str | None = None) -> list[tuple[str, int, str | None]]:
        """Return thread, number of events that no run has taken, and the newest run's error."""
        queued = (
            sa.select(EVENTS.c.thread, sa.func.count().label("n"))
            .where(EVENTS.c.event.is_not(None), EVENTS.c.turn.is_(None))
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

    def plan(self, key: str, thread: str, cron: str, text: str, due: datetime) -> bool:
        """Store a schedule; False if it is here already."""
        row = {
            "id": key,
            "thread": thread,
            "cron": cron,
            "text": text,
            "due": due.astimezone(UTC).isoformat(),
        }
        with self.engine.begin() as c:
            return bool(c.execute(self._insert(SCHEDULES).values(row).on_conflict_do_nothing()).rowcount)

    def schedules(self, thread: str | None = None, key: str | None = None) -> Sequence[sa.Row[Any]]:
        """Return the schedules, of one thread or one id or all, by id."""
        query = sa.select(SCHEDULES).order_by(SCHEDULES.c.id)
        if thread is not None:
            query = query.where(SCHEDULES.c.thread == thread)
        if key is not None:
            query = query.where(SCHEDULES.c.id == key)
        with self.engine.connect() as c:
            return c.execute(query).all()

    def next_due(self, key: str, due: datetime) -> None:
        """Note when a schedule is due next."""
        with self.engine.begin() as c:
            when = due.astimezone(UTC).isoformat()
            c.execute(SCHEDULES.update().where(SCHEDULES.c.id == key).values(due=when))

    def unplan(self, key: str) -> bool:
        """Remove a schedule; False where there is none."""
        with self.engine.begin() as c:
            return bool(c.execute(SCHEDULES.delete().where(SCHEDULES.c.id == key)).rowcount)

    # -- workers -----------------------------------------------------------------------------------------

    def arrive(self, worker: str) -> None:
        """Note that a worker runs sessions."""
        row = {"worker": worker, "since": datetime.now(UTC).isoformat(), "draining": False}
        with self.engine.begin() as c:
            c.execute(WORKERS.delete().where(WORKERS.c.worker == worker))
            c.execute(WORKERS.insert().values(row))

    def leave(self, worker: str) -> None:
        """Note that a worker is gone."""
        with self.engine.begin() as c:
            c.execute(WORKERS.delete().where(WORKERS.c.worker == worker))

    def workers(self) -> list[tuple[str, str, bool]]:
        """Return name, start and whether it is to drain, of each worker; one that died stands there, too."""
        with self.engine.connect() as c:
            rows = c.execute(sa.select(WORKERS).order_by(WORKERS.c.since))
            return [(r.worker, r.since, r.draining) for r in rows]

    def ask_drain(self) -> None:
        """Ask all workers to come to rest."""
        with self.engine.begin() as c:
            c.execute(WORKERS.update().values(draining=True))

    def _insert(self, table: sa.Table) -> Any:
        own = sqlite if self.engine.dialect.name == "sqlite" else postgresql  # each engine has its own
        return own.insert(table)
