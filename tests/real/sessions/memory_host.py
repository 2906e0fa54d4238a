"""A deterministic host in memory that runs one turn after another."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from host_stage import Stage
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import SessionError
from wakeloop.loop.inbox import WakeEvent
from wakeloop.sessions import (
    Schedule,
    SessionStatus,
    aclose_run,
    choose_next_input,
    close_run,
    derive_id,
    find_agent,
    find_early_events,
    make_refusal,
    update_question_notes,
)
from wakeloop.sessions.host import CANCELLED_MESSAGE, complete_event
from wakeloop.sessions.questions import answer_fault, open_questions


class MemoryHost(Stage):
    """Implements `SessionHost` without an engine: events stay in a list until `settle` runs them."""

    def __init__(self, door: str = "sync", *, batch: bool = True) -> None:
        super().__init__(InMemorySaver())
        self.door, self.batch = door, batch
        self.queue: list[tuple[str, WakeEvent]] = []
        self.numbers: dict[tuple[str, str], int] = {}
        self.notes: dict[str, dict[str, int]] = {}
        self.planned: dict[str, Schedule] = {}
        self.events: list[dict[str, Any]] = []
        self.draining = False
        self.failures: list[str] = []

    # -- the interface -----------------------------------------------------------------------------------

    @property
    def agents(self) -> Mapping[str, object]:
        return self.made

    def send(self, thread_id: str, event: WakeEvent) -> str:
        find_agent(thread_id, self.made)
        key = event.get("id") or f"e{len(self.accepted) + 1}"
        complete_event({**event, "id": key})
        if (thread_id, key) not in self.numbers:
            if why := answer_fault(event, open_questions(self.snapshot(thread_id))):
                raise SessionError(why)
            self.numbers[thread_id, key] = len(self.numbers) + 1
            self.queue.append((thread_id, {**event, "id": key}))
            self.accepted.setdefault(key, self.queue[-1])
        return key

    def schedule(self, thread_id: str, cron: str, text: str) -> str:
        find_agent(thread_id, self.made)
        key = derive_id("cron", thread_id, cron, text)
        self.planned[key] = Schedule(key, thread_id, cron, text)
        return key

    def schedules(self, thread_id: str | None = None) -> Sequence[Schedule]:
        return [s for s in self.planned.values() if thread_id in (None, s.thread)]

    def status(self, thread_id: str) -> SessionStatus:
        if thread_id not in {to for to, _ in self.numbers}:
            raise SessionError(f"Nothing was ever sent to the thread {thread_id!r}.")
        waiting = sum(to == thread_id for to, _ in self.queue)
        return SessionStatus.from_snapshot(
            thread_id, find_agent(thread_id, self.made), self.snapshot(thread_id), waiting
        )

    def cancel(self, key: str) -> bool:
        if self.planned.pop(key, None):
            return True
        found = [item for item in self.queue if item[1]["id"] == key]
        for item in found:
            self.queue.remove(item)
            if refusal := make_refusal(item[1], item[0], CANCELLED_MESSAGE):
                self.send(refusal.thread, refusal.event)
        return bool(found)

    def drain(self, timeout: float | None = None) -> bool:
        self.draining = True
        return True

    def list(self) -> Sequence[SessionStatus]:
        return [self.status(thread) for thread in sorted({to for to, _ in self.numbers})]

    # -- turns -------------------------------------------------------------------------------------------

    def turn(self, thread_id: str) -> bool:
        """Run one turn of a thread, if it can run."""
        events = [event for to, event in self.queue if to == thread_id]
        before = find_early_events(
            self.notes.get(thread_id, {}), [(self.numbers[thread_id, e["id"]], e) for e in events]
        )
        step = choose_next_input(self.snapshot(thread_id), events if self.batch else events[:1], before)
        if not step.run and not self.batch:  # an answer may come after events that an interrupt holds back
            step = choose_next_input(self.snapshot(thread_id), events, before)
        gone = [*step.taken, *(event for event, _ in step.refused)]
        self.failures += [why for _, why in step.refused]
        if self.draining:
            return False
        self.queue = [item for item in self.queue if item[0] != thread_id or item[1] not in gone]
        if not step.run:
            return bool(step.refused)
        self.turns.append(thread_id)
        graph, failure = self.graph(thread_id), None
        try:
            self.run(graph, step.input, {"configurable": {"thread_id": thread_id}})
        except Exception as error:  # noqa: BLE001 - the turn failed
            failure = f"{type(error).__name__}: {error}"
            self.failures.append(failure)
        asked = open_questions(self.snapshot(thread_id))
        self.notes[thread_id] = update_question_notes(self.notes.get(thread_id, {}), asked, len(self.numbers))
        if self.door == "sync":
            close_run(graph, thread_id, self, failure)
        else:
            asyncio.run(aclose_run(graph, thread_id, self, failure))
        return True

    def run(self, graph: Any, given: Any, config: Any) -> None:
        """Run the graph with `stream` or `astream`."""
        if self.door == "sync":
            self.events += graph.stream(given, config, stream_mode="custom")
            return

        async def play() -> None:
            self.events += [e async for e in graph.astream(given, config, stream_mode="custom")]

        asyncio.run(play())
