"""The DBOS host as a stage: real engine, mailbox and turns, in the order of the story."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from host_stage import Stage

from wakeloop.loop.inbox import WakeEvent
from wakeloop.sessions import Schedule, SessionStatus, choose_next_input, find_early_events
from wakeloop.sessions.dbos import DbosHost
from wakeloop.sessions.dbos.session_client import RUN_QUEUE, TIMER_QUEUE
from wakeloop.sessions.mailbox import EVENTS, SCHEDULES, SESSIONS
from wakeloop.sessions.questions import open_questions

PATIENCE = 60.0  # seconds; each wait takes well under one


class Gate:
    """Each turn waits here; lets one pass of one thread through at a time."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.allowed: str | None = None
        self.wide_open = False

    @contextmanager
    def __call__(self, thread: str) -> Iterator[None]:
        with self.changed:
            self.changed.wait_for(lambda: self.wide_open or self.allowed == thread)
        try:
            yield
        finally:
            with self.changed:
                self.allowed = None
                self.changed.notify_all()

    def let_through(self, thread: str) -> None:
        """Wait until one pass of this thread is over."""
        with self.changed:
            self.allowed = thread
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: self.allowed is None, PATIENCE)

    def open(self, *, wide: bool) -> None:
        with self.changed:
            self.wide_open = wide
            self.changed.notify_all()


class Engine(DbosHost):
    """A host that serves one story after another."""

    def __init__(self, url: str) -> None:
        self.gate = Gate()
        super().__init__(url, {}, polling=0.02, hold=self.held, report=self.reported)
        self.story: EngineHost | None = None

    @contextmanager
    def held(self, thread: str) -> Iterator[None]:
        with self.gate(thread):
            if self.locks is None:
                yield
                return
            with self.locks.hold_thread(thread):
                yield

    def reported(self, status: SessionStatus) -> None:
        if self.story is not None:
            self.story.turns.append(status.thread)

    def send(self, thread_id: str, event: WakeEvent) -> str:
        key = super().send(thread_id, event)
        if self.story is not None:
            self.story.accepted.setdefault(key, (thread_id, {**event, "id": key}))  # type: ignore[typeddict-item]
        return key

    def make_cancellation(self, thread: str, event: WakeEvent) -> tuple[str, WakeEvent] | None:
        answer = super().make_cancellation(thread, event)
        if self.story is not None and answer is not None:
            self.story.accepted.setdefault(answer[1]["id"], answer)
        return answer

    @contextmanager
    def telling(self, story: EngineHost) -> Iterator[EngineHost]:
        """Run a story, and remove all of it afterwards."""
        self.story, self.agents = story, story.made
        try:
            yield story
        finally:
            self.story = None
            with self.mailbox.engine.begin() as c:
                for table in (EVENTS, SCHEDULES, SESSIONS):
                    c.execute(table.delete())
            self.gate.open(wide=True)
            deadline = time.monotonic() + PATIENCE
            while self.client.list_workflows(
                status=["ENQUEUED", "PENDING"], queue_name=[RUN_QUEUE, TIMER_QUEUE]
            ):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            self.gate.open(wide=False)
            clocks = self.client.list_workflows(status=["DELAYED"], queue_name=[RUN_QUEUE])
            self.client.delete_workflows([record.workflow_id for record in clocks])
            self.prune(timedelta(0))

    def close(self) -> None:
        self.gate.open(wide=True)
        super().close()


class EngineHost(Stage):
    """Implements `SessionHost` with an engine."""

    def __init__(self, engine: Engine, saver: Any) -> None:
        super().__init__(saver)
        self.engine = engine

    def send(self, thread_id: str, event: WakeEvent) -> str:
        named: Any = {"id": f"e{len(self.accepted) + 1}", **event}
        return self.engine.send(thread_id, named)

    def schedule(self, thread_id: str, cron: str, text: str) -> str:
        return self.engine.schedule(thread_id, cron, text)

    def schedules(self, thread_id: str | None = None) -> Sequence[Schedule]:
        return self.engine.schedules(thread_id)

    def status(self, thread_id: str) -> SessionStatus:
        return self.engine.status(thread_id)

    def cancel(self, key: str) -> bool:
        return self.engine.cancel(key)

    def list(self) -> Sequence[SessionStatus]:
        return self.engine.list()

    def turn(self, thread_id: str) -> bool:
        waiting = [(one.number, one.event) for one in self.engine.mailbox.list_waiting(thread_id)]
        notes = self.engine.mailbox.note_questions(thread_id, open_questions(self.snapshot(thread_id)))
        step = choose_next_input(
            self.snapshot(thread_id), [event for _, event in waiting], find_early_events(notes, waiting)
        )
        if not step.run and not step.refused:
            return False
        self.engine.gate.let_through(thread_id)
        return True

    @property
    def queue(self) -> list[tuple[str, WakeEvent]]:  # type: ignore[override,valid-type]
        query = sa.select(EVENTS.c.thread, EVENTS.c.event).where(EVENTS.c.event.is_not(None))
        with self.engine.mailbox.engine.connect() as c:
            return [(thread, json.loads(event)) for thread, event in c.execute(query.order_by(EVENTS.c.seq))]

    @property
    def failures(self) -> list[str]:  # type: ignore[override,valid-type]
        with self.engine.mailbox.engine.connect() as c:
            return [*c.execute(sa.select(EVENTS.c.error).where(EVENTS.c.error.is_not(None))).scalars()]
