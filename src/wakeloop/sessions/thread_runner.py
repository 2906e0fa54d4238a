"""Runs a thread with its events, repeatable after a kill."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp, GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import StateSnapshot

from wakeloop.loop.inbox import WakeEvent
from wakeloop.platform.database_errors import classify_outage, format_without_sql
from wakeloop.sessions.host import SessionHost, TakenOverError, derive_id, describe_error
from wakeloop.sessions.host_rules import (
    RUN_KEY,
    Graph,
    NextInput,
    choose_next_input,
    close_run_after,
    find_unread_events,
    make_refusal,
    must_resume,
    name_config,
    name_run,
    send_answer,
)
from wakeloop.sessions.mailbox import Mailbox, StoredEvent
from wakeloop.sessions.questions import find_early_events, open_questions
from wakeloop.text.secrets import redact_text
from wakeloop.thread.steering import find_next_input
from wakeloop.thread.thread_status import is_unfinished, session_of


@dataclass(frozen=True)
class ThreadRunner:
    """Takes a thread's waiting events through its graph, one run after the other.

    A run is named after its first event, and every checkpoint that it writes has the name in its metadata. A
    run that is repeated after a kill therefore sees how far it came: whether its input is in the thread, and
    whether the graph has ended or continues with None. What it sends has derived ids, so repeats are dropped.
    Nothing happens twice as long as the saver writes each step before the next one starts
    (`durability="sync"`).
    """

    mailbox: Mailbox
    host: SessionHost
    report: Callable[[str], None] | None = None

    def run_waiting(
        self, graph: Graph, thread: str, control: RunControl, *, patient: bool = False
    ) -> StateSnapshot:
        """Run the thread until nothing waits that it can take now. Return the thread as it was found then.

        Raises `GraphDrained` when drained, and the error of a database that was away for too long; call it
        again then. A run that meets such an outage has failed, as with any other error, unless `patient`.
        """
        failed, known = "", None
        while True:
            planned, snapshot = self.plan_next_run(graph, thread, control, failed, known)
            if planned is None or planned.name == failed:  # what it was to take waits for the next event
                return snapshot
            named = graph.with_config(metadata={RUN_KEY: planned.name})
            failure = self.execute(named, thread, planned, control, patient=patient)
            after = graph.get_state(name_config(thread))
            if questions := open_questions(after):  # at once: the next event may be the answer
                self.mailbox.note_questions(thread, questions)
            if failure is not None:  # before `close_run_after` ends the thread, which no longer shows it then
                unread = find_unread_events(after, planned.taken, planned.question)
                if planned.question is not None:
                    self.mailbox.drop_question(thread, unread)
                self.mailbox.requeue(thread, unread, failure)
            sent = close_run_after(named, after, thread, self.host, failure)
            if failure is None and (planned.nothing or control.drain_requested):  # only then a drain ended it
                self.wake_after_drain(named, thread, planned.name)
            self.mailbox.settle_run(thread, planned.name, failure)
            failed = planned.name if failure is not None else ""
            # a report may change the thread: whoever gives one has it read again
            known = after if failure is None and not sent and self.report is None else None
            try:
                self.report_run(thread)
            except Exception as error:  # noqa: BLE001 - the run itself ended well, so it is not repeated
                self.mailbox.settle_run(thread, planned.name, f"report: {describe_error(error)}")

    def report_run(self, thread: str) -> None:
        """Report a thread, if anybody wants to know."""
        if self.report is not None:
            self.report(thread)

    def give_up(self, thread: str, error: Exception) -> None:
        """Note an error that was raised around a run, and tell whoever waits for an answer.

        The waiting events are kept and tried again with the next event.
        """
        words = describe_error(error)
        events = [one.event for one in self.mailbox.list_waiting(thread) if one.error is None]
        for event in events:
            send_answer(self.host, make_refusal(event, thread, words))
        self.mailbox.requeue(thread, [event["id"] for event in events], words)

    def plan_next_run(
        self, graph: Graph, thread: str, control: RunControl, failed: str, known: StateSnapshot | None
    ) -> "tuple[PlannedRun | None, StateSnapshot]":
        """Return the thread's next run, or None, and the thread as it was found.

        The run's events are claimed before anything is done with them.

        `failed` is the name of the run before it, if that failed. `known` is the thread as that run left it,
        if nothing was written since: it is read again only for events that wait.
        """
        while True:
            if control.drain_requested:
                raise GraphDrained
            waiting = self.mailbox.list_waiting(thread)
            snapshot = known if known is not None and not waiting else graph.get_state(name_config(thread))
            given_back = bool(waiting) and all(one.error is not None for one in waiting)
            if given_back and (failed or not find_next_input(graph, snapshot)):
                return None, snapshot  # events of failed runs wait for the next event
            claimed = [one for one in waiting if one.run is not None]
            if claimed:
                return self.plan_begun_run(claimed, snapshot), snapshot
            chosen = self.choose_input(thread, waiting, snapshot)
            if not chosen.run:
                return self.plan_steered_run(graph, snapshot), snapshot
            if not chosen.taken:  # somebody else left a run unfinished, or the time of a wait is over
                checkpoint = str(snapshot.config["configurable"].get("checkpoint_id"))
                return PlannedRun(derive_id("left", checkpoint), chosen.input), snapshot
            taken = [one for one in waiting if one.event in chosen.taken]
            if chosen.question:
                # store which question the event answers: the thread may ask another one later
                answer: WakeEvent = {**taken[0].event, "correlation_id": chosen.question}
                taken = [replace(taken[0], event=answer)]
            name = name_run(taken[0].id, snapshot, failed=taken[0].error is not None)
            if self.mailbox.claim(name, taken):  # else one of them was just withdrawn: look again
                events = tuple(one.event for one in taken)
                return PlannedRun(name, chosen.input, events, chosen.question), snapshot

    def plan_steered_run(self, graph: Graph, snapshot: StateSnapshot) -> "PlannedRun | None":
        """Plan a run for what a person has said and no request took; None if there is nothing."""
        steered = find_next_input(graph, snapshot)
        if not steered:
            return None
        return PlannedRun(derive_id("steered", *(entry.id for entry in steered)), {"messages": []})

    def choose_input(self, thread: str, waiting: list[StoredEvent], snapshot: StateSnapshot) -> NextInput:
        """Choose what the next run takes, and refuse answers to questions that are not being asked."""
        questions = open_questions(snapshot)
        notes = self.mailbox.note_questions(thread, questions) if waiting or questions else {}
        numbered = [(one.number, one.event) for one in waiting]
        events = [one.event for one in waiting]
        early = find_early_events(notes, numbered)
        chosen = choose_next_input(snapshot, events, early, now=time.time())
        for event, why in chosen.refused:
            self.mailbox.refuse(thread, event["id"], why)
        if chosen.refused and not chosen.run:
            with suppress(Exception):  # a report may fail: nothing has run
                self.report_run(thread)
        return chosen

    def plan_begun_run(self, claimed: list[StoredEvent], snapshot: StateSnapshot) -> "PlannedRun":
        """Plan the rest of a run that was started before: nothing, the rest of the graph, or all of it."""
        taken = [one.event for one in claimed]
        nothing_left = PlannedRun(str(claimed[0].run), nothing=True)
        if (snapshot.metadata or {}).get(RUN_KEY) == nothing_left.name:
            if is_unfinished(snapshot) and not snapshot.interrupts:
                return PlannedRun(nothing_left.name, taken=tuple(taken))
            return nothing_left
        chosen = choose_next_input(snapshot, taken)
        if not chosen.run:  # answered elsewhere, or the run came to another question
            return nothing_left
        return PlannedRun(nothing_left.name, chosen.input, tuple(taken), chosen.question)

    def execute(
        self, graph: Graph, thread: str, planned: "PlannedRun", control: RunControl, *, patient: bool
    ) -> str | None:
        """Run the graph. Return the words of the error with which the run failed, or None."""
        if planned.nothing:
            return None
        try:
            run_graph(graph, planned.input, name_config(thread), control)
        except (GraphBubbleUp, TakenOverError):
            raise
        # what is no Exception comes from a tool or a model, too: no signal reaches a worker's thread
        except BaseException as failure:
            if control.drain_requested:  # the shutdown may have caused it: the next start tries again
                raise GraphDrained from failure
            if patient and classify_outage(failure) is not None:
                raise
            return redact_text(format_without_sql(failure))
        return None

    def wake_after_drain(self, graph: Graph, thread: str, name: str) -> None:
        """Queue a kick for a thread whose run was ended by a drain, so that the next host wakes it."""
        session = session_of(graph.get_state(name_config(thread)))
        if must_resume(session):
            self.host.send(thread, {"kind": "kick", "id": derive_id("drained", thread, name)})


@dataclass(frozen=True)
class PlannedRun:
    """A run that is about to be made.

    Attributes:
        name: The id of its first event, or one of its own if a run of that event has failed before.
        input: The input to run the graph with.
        taken: The events that it takes.
        question: The id of the question that it answers; None if it answers none.
        nothing: Whether nothing is left to run, because the graph came to its end before a kill.
    """

    name: str
    input: Any = None
    taken: tuple[WakeEvent, ...] = ()
    question: str | None = None
    nothing: bool = False


def run_graph(graph: Graph, given: Any, config: RunnableConfig, control: RunControl) -> None:
    """Run a graph. One with an asynchronous saver runs in that saver's event loop."""
    loop = getattr(graph.checkpointer, "loop", None)
    if not isinstance(loop, asyncio.AbstractEventLoop):
        graph.invoke(given, config, durability="sync", control=control)
        return
    running = graph.ainvoke(given, config, durability="sync", control=control)
    asyncio.run_coroutine_threadsafe(running, loop).result()
