"""One run of a thread, whoever runs it, however often."""

import asyncio
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp, GraphDrained
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl
from langgraph.types import StateSnapshot

from wakeloop.errors import SessionError
from wakeloop.inbox import WakeEvent
from wakeloop.sessions.host import SessionHost, TakenOverError, derived_id, words_of
from wakeloop.sessions.mailbox import Letter, Mailbox
from wakeloop.sessions.runs import RUN, close_run, must_go_on, next_input, refusal_of, unread
from wakeloop.text.secrets import without_secrets
from wakeloop.thread.standing import session_of, unfinished

Graph = CompiledStateGraph[Any, Any, Any, Any]
CUT = ("57P01", "57P02", "57P03", "53300")  # Postgres shuts down, crashed, starts; too many connections


def away() -> tuple[type[Exception], ...]:
    """Return the errors of a database that is away; those of Postgres only where its driver is in use."""
    driver = sys.modules.get("psycopg")
    known = (sqlite3.OperationalError, sa.exc.OperationalError)
    return (*known, driver.OperationalError) if driver else known


def is_cut(error: BaseException) -> bool:
    """Tell whether an error speaks of the connection, or of a file in use, and not of what was asked for."""
    driver = sys.modules.get("psycopg")
    if driver and isinstance(error, driver.OperationalError):
        return error.sqlstate is None or error.sqlstate in CUT or error.sqlstate.startswith("08")
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@dataclass(frozen=True)
class Runs:
    """Takes what waits for a thread through its graph, a run at a time.

    A run is named by its first event, and the name stands in every checkpoint that it writes. So a run that
    is made again, after a kill, sees what of it is done: its input is in the thread or it is not, the graph
    has come to its end or goes on with None. What it sends has derived ids, and a repeat is dropped. Nothing
    is done twice, as long as the saver writes each step before the next one begins (`durability="sync"`).
    """

    mailbox: Mailbox
    host: SessionHost
    report: Callable[[str], None] = field(default=lambda _thread: None)

    def take(self, graph: Graph, thread: str, control: RunControl, *, patient: bool = False) -> None:
        """Make runs until nothing waits that the thread can take now.

        Raises `GraphDrained` for a drain, and one of `away()` where a database did not answer: call it again.
        A run that met that is given up, as for any other error, unless `patient`.
        """
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        while True:
            if control.drain_requested:
                raise GraphDrained
            letters = self.mailbox.waiting(thread)
            if letters and all(letter.error is not None for letter in letters):
                return  # what was given up waits for the next event
            snapshot = graph.get_state(config)
            begun = [letter.event for letter in letters if letter.run is not None]
            name, given = self.begun(begun, snapshot) if begun else self.begin(letters, snapshot)
            if given.withdrawn:
                continue
            if name is None:
                return
            named = graph.with_config(metadata={RUN: name})
            failure = self.play(named, config, given, control, patient=patient)
            if failure is not None:  # noted before the thread is ended, which no longer shows it then
                back = unread(graph.get_state(config), given.taken, given.question)
                self.mailbox.put_back(thread, back, failure)
            close_run(named, thread, self.host, failure)
            if failure is None and (given.nothing or control.drain_requested):  # else no drain has ended it
                self.go_on_later(named, thread, name)
            self.mailbox.settle(thread, name, failure)
            try:
                self.report(thread)
            except Exception as error:  # noqa: BLE001 - the run has ended well: it is not made again
                self.mailbox.settle(thread, name, f"report: {words_of(error)}")

    def give_up(self, thread: str, error: Exception) -> None:
        """Note what was raised around a run; what waits is kept, and tried again with the next event.

        Who waits for an answer to it is told.
        """
        words = words_of(error)
        left = [letter.event for letter in self.mailbox.waiting(thread) if letter.error is None]
        for event in left:
            if (letter := refusal_of(event, thread, words)) is not None:
                with suppress(SessionError):  # the asker's agent is gone: there is nobody to tell
                    self.host.send(letter.thread, letter.event)
        self.mailbox.put_back(thread, [event["id"] for event in left], words)

    def begin(self, letters: list[Letter], snapshot: StateSnapshot) -> tuple[str | None, "Given"]:
        """Choose what the next run takes and note it, before anything is done with it."""
        chosen = next_input(snapshot, [letter.event for letter in letters])
        if not chosen.run:
            return None, NOTHING
        if not chosen.taken:  # a run that somebody else left
            return derived_id("left", str(snapshot.config["configurable"].get("checkpoint_id"))), Given(None)
        name, taken = chosen.taken[0]["id"], list(chosen.taken)
        answer = getattr(chosen.input, "resume", None)
        if isinstance(answer, dict):  # note the question that it answers
            taken = [{**taken[0], "correlation_id": question} for question in answer]
        if not self.mailbox.begin(name, taken):
            return None, Given(None, withdrawn=True)
        return name, given_of(chosen.input, taken)

    def begun(self, taken: list[WakeEvent], snapshot: StateSnapshot) -> tuple[str, "Given"]:
        """See how far a run came that was begun before."""
        name = taken[0]["id"]
        if (snapshot.metadata or {}).get(RUN) == name:
            goes_on = unfinished(snapshot) and not snapshot.interrupts
            return name, Given(None, taken=tuple(taken)) if goes_on else NOTHING
        asked = taken[0].get("correlation_id") if taken[0].get("kind") == "human" else None
        if snapshot.interrupts and asked not in [question.id for question in snapshot.interrupts]:
            return name, NOTHING  # it is answered, and the run came to another question
        return name, given_of(next_input(snapshot, taken).input, taken)

    def play(
        self, graph: Graph, config: RunnableConfig, given: "Given", control: RunControl, *, patient: bool
    ) -> str | None:
        """Run the graph; return the words of the error for which the run is given up."""
        if given.nothing:
            return None
        try:
            run(graph, given.input, config, control)
        except (GraphBubbleUp, TakenOverError):
            raise
        except Exception as failure:
            if control.drain_requested:  # it may be the end that failed it: the next start tries again
                raise GraphDrained from failure
            if patient and isinstance(failure, away()):
                raise
            return without_secrets(f"{type(failure).__name__}: {failure}")
        return None

    def go_on_later(self, graph: Graph, thread: str, name: str) -> None:
        """Wake a thread whose run was ended by a drain, once there is a host again."""
        session = session_of(graph.get_state({"configurable": {"thread_id": thread}}))
        if must_go_on(session):
            self.host.send(thread, {"kind": "kick", "id": derived_id("drained", thread, name)})


@dataclass(frozen=True)
class Given:
    """What a graph is run with, or that it is not run; `question` is the one that is answered.

    `withdrawn` says that what was to be taken is gone: look again.
    """

    input: Any
    nothing: bool = False
    taken: tuple[WakeEvent, ...] = ()
    question: str | None = None
    withdrawn: bool = False


def given_of(given: Any, taken: Sequence[WakeEvent]) -> Given:
    """Tell an input from an answer."""
    answer = getattr(given, "resume", None)
    return Given(given, taken=tuple(taken), question=next(iter(answer)) if isinstance(answer, dict) else None)


NOTHING = Given(None, nothing=True)


def run(graph: Graph, given: Any, config: RunnableConfig, control: RunControl) -> None:
    """Run a graph; one whose saver is asynchronous in the event loop of that saver, by its other door."""
    loop = getattr(graph.checkpointer, "loop", None)
    if not isinstance(loop, asyncio.AbstractEventLoop):
        graph.invoke(given, config, durability="sync", control=control)
        return
    playing = graph.ainvoke(given, config, durability="sync", control=control)
    asyncio.run_coroutine_threadsafe(playing, loop).result()
