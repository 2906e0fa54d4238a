"""One run of a thread, whoever runs it, however often."""

import asyncio
import sqlite3
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp, GraphDrained
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl
from langgraph.types import StateSnapshot

from wakeloop.loop.inbox import WakeEvent
from wakeloop.sessions.host import SessionHost, TakenOverError, derive_id, describe_error
from wakeloop.sessions.host_rules import (
    RUN_KEY,
    NextInput,
    choose_next_input,
    close_run,
    find_unread_events,
    make_refusal,
    must_resume,
    send_answer,
)
from wakeloop.sessions.mailbox import Mailbox
from wakeloop.sessions.questions import find_early_events, open_questions
from wakeloop.sessions.stored_events import StoredEvent
from wakeloop.text.secrets import redact_text
from wakeloop.thread.thread_status import is_unfinished, session_of

Graph = CompiledStateGraph[Any, Any, Any, Any]
CONNECTION_ERROR_CODES = (
    "57P01",
    "57P02",
    "57P03",
    "53300",
)  # Postgres shuts down, crashed, starts; too many connections


def outage_errors() -> tuple[type[Exception], ...]:
    """Return the errors of a database that is away; those of Postgres only where its driver is in use."""
    driver = sys.modules.get("psycopg")
    known = (sqlite3.OperationalError, sa.exc.OperationalError)
    return (*known, driver.OperationalError) if driver else known


def is_connection_error(error: BaseException) -> bool:
    """Tell whether an error speaks of the connection, or of a file in use, and not of what was asked for."""
    driver = sys.modules.get("psycopg")
    if driver and isinstance(error, driver.OperationalError):
        return (
            error.sqlstate is None
            or error.sqlstate in CONNECTION_ERROR_CODES
            or error.sqlstate.startswith("08")
        )
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@dataclass(frozen=True)
class ThreadRunner:
    """Takes what waits for a thread through its graph, a run at a time.

    A run is named by its first event, and the name stands in every checkpoint that it writes. So a run that
    is made again, after a kill, sees what of it is done: its input is in the thread or it is not, the graph
    has come to its end or goes on with None. What it sends has derived ids, and a repeat is dropped. Nothing
    is done twice, as long as the saver writes each step before the next one begins (`durability="sync"`).
    """

    mailbox: Mailbox
    host: SessionHost
    report: Callable[[str], None] = field(default=lambda _thread: None)

    def run_waiting(self, graph: Graph, thread: str, control: RunControl, *, patient: bool = False) -> None:
        """Make runs until nothing waits that the thread can take now.

        Raises `GraphDrained` for a drain, and one of `away()` where a database did not answer: call it again.
        A run that met that is given up, as for any other error, unless `patient`.
        """
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        while (given := self.plan_next_run(graph, thread, config, control)) is not None:
            named = graph.with_config(metadata={RUN_KEY: given.name})
            failure = self.execute(named, config, given, control, patient=patient)
            after = graph.get_state(config)
            self.mailbox.note_questions(thread, open_questions(after))
            if failure is not None:  # noted before the thread is ended, which no longer shows it then
                back = find_unread_events(after, given.taken, given.question)
                if given.question is not None:
                    self.mailbox.drop_question(thread, back)
                self.mailbox.requeue(thread, back, failure)
            close_run(named, thread, self.host, failure)
            if failure is None and (given.nothing or control.drain_requested):  # else no drain has ended it
                self.wake_after_drain(named, thread, given.name)
            self.mailbox.settle_run(thread, given.name, failure)
            try:
                self.report(thread)
            except Exception as error:  # noqa: BLE001 - the run has ended well: it is not made again
                self.mailbox.settle_run(thread, given.name, f"report: {describe_error(error)}")

    def give_up(self, thread: str, error: Exception) -> None:
        """Note what was raised around a run; what waits is kept, and tried again with the next event.

        Who waits for an answer to it is told.
        """
        words = describe_error(error)
        left = [letter.event for letter in self.mailbox.list_waiting(thread) if letter.error is None]
        for event in left:
            send_answer(self.host, make_refusal(event, thread, words))
        self.mailbox.requeue(thread, [event["id"] for event in left], words)

    def plan_next_run(
        self, graph: Graph, thread: str, config: RunnableConfig, control: RunControl
    ) -> "PlannedRun | None":
        """Say what the thread is run with next; note what is taken before it is done."""
        while True:
            if control.drain_requested:
                raise GraphDrained
            letters = self.mailbox.list_waiting(thread)
            if letters and all(letter.error is not None for letter in letters):
                return None  # what was given up waits for the next event
            snapshot = graph.get_state(config)
            if begun := [letter.event for letter in letters if letter.run is not None]:
                return self.plan_begun_run(begun, snapshot)
            chosen = self.choose_input(thread, letters, snapshot)
            if not chosen.run:
                return None
            if not chosen.taken:  # a run that somebody else left
                return PlannedRun(
                    derive_id("left", str(snapshot.config["configurable"].get("checkpoint_id")))
                )
            taken = [letter for letter in letters if letter.event in chosen.taken]
            if question := chosen.question:  # noted with the answer
                taken = [replace(taken[0], event={**taken[0].event, "correlation_id": question})]
            if self.mailbox.claim(taken[0].id, taken):  # else one of them was withdrawn meanwhile
                return PlannedRun(
                    taken[0].id, chosen.input, tuple(letter.event for letter in taken), question
                )

    def choose_input(self, thread: str, letters: list[StoredEvent], snapshot: StateSnapshot) -> NextInput:
        """Choose what the next run takes; refuse answers to what is not asked."""
        notes = self.mailbox.note_questions(thread, open_questions(snapshot))
        numbered = [(letter.number, letter.event) for letter in letters]
        chosen = choose_next_input(
            snapshot, [event for _, event in numbered], find_early_events(notes, numbered)
        )
        for event, why in chosen.refused:
            self.mailbox.refuse_event(thread, event["id"], why)
        if chosen.refused and not chosen.run:
            with suppress(Exception):  # whoever is told may fail: nothing has run
                self.report(thread)
        return chosen

    def plan_begun_run(self, taken: list[WakeEvent], snapshot: StateSnapshot) -> "PlannedRun":
        """See how far a run came that was begun before."""
        nothing = PlannedRun(taken[0]["id"], nothing=True)
        if (snapshot.metadata or {}).get(RUN_KEY) == nothing.name:
            goes_on = is_unfinished(snapshot) and not snapshot.interrupts
            return replace(nothing, nothing=False, taken=tuple(taken)) if goes_on else nothing
        chosen = choose_next_input(snapshot, taken)
        if not chosen.run:  # it is answered: elsewhere, or the run came to another question
            return nothing
        return PlannedRun(nothing.name, chosen.input, tuple(taken), chosen.question)

    def execute(
        self, graph: Graph, config: RunnableConfig, given: "PlannedRun", control: RunControl, *, patient: bool
    ) -> str | None:
        """Run the graph; return the words of the error for which the run is given up."""
        if given.nothing:
            return None
        try:
            run_graph(graph, given.input, config, control)
        except (GraphBubbleUp, TakenOverError):
            raise
        except (
            Exception,
            SystemExit,
            KeyboardInterrupt,
        ) as failure:  # no signal comes to a worker's thread
            if control.drain_requested:  # it may be the end that failed it: the next start tries again
                raise GraphDrained from failure
            if patient and isinstance(failure, outage_errors()):
                raise
            return redact_text(f"{type(failure).__name__}: {failure}")
        return None

    def wake_after_drain(self, graph: Graph, thread: str, name: str) -> None:
        """Wake a thread whose run was ended by a drain, once there is a host again."""
        session = session_of(graph.get_state({"configurable": {"thread_id": thread}}))
        if must_resume(session):
            self.host.send(thread, {"kind": "kick", "id": derive_id("drained", thread, name)})


@dataclass(frozen=True)
class PlannedRun:
    """What a run is called, and what its graph is run with, or that there is nothing left to run.

    `taken` are its events, `question` is the one that is answered.
    """

    name: str
    input: Any = None
    taken: tuple[WakeEvent, ...] = ()
    question: str | None = None
    nothing: bool = False


def run_graph(graph: Graph, given: Any, config: RunnableConfig, control: RunControl) -> None:
    """Run a graph; one whose saver is asynchronous in the event loop of that saver, by its other door."""
    loop = getattr(graph.checkpointer, "loop", None)
    if not isinstance(loop, asyncio.AbstractEventLoop):
        graph.invoke(given, config, durability="sync", control=control)
        return
    playing = graph.ainvoke(given, config, durability="sync", control=control)
    asyncio.run_coroutine_threadsafe(playing, loop).result()
