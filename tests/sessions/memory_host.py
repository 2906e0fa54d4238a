"""A host in memory, for tests: deterministic, one turn after another."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import SessionError, create_todo_agent, preset, session_of
from wakeloop.sessions import (
    Schedule,
    SessionStatus,
    aclose_turn,
    agent_of,
    close_turn,
    derived_id,
    event_fault,
    next_input,
    refusal_of,
    session_tools,
)
from wakeloop.sessions.tools import Limits
from wakeloop.state import WakeEvent
from wakeloop.testing import ScriptedModel


class MemoryHost:
    """Implements `SessionHost`; `settle` runs turns until nothing can run, the oldest event first."""

    def __init__(self, door: str = "sync", *, batch: bool = True) -> None:
        self.door, self.batch = door, batch
        self.saver = InMemorySaver()
        self.made: dict[str, Any] = {}
        self.models: dict[str, ScriptedModel] = {}
        self.accepted: dict[str, tuple[str, WakeEvent]] = {}
        self.queue: list[tuple[str, WakeEvent]] = []
        self.planned: dict[str, Schedule] = {}
        self.turns: list[str] = []
        self.events: list[dict[str, Any]] = []
        self.draining = False
        self.limit: int | None = None
        self.failures: list[str] = []

    def agent(
        self,
        name: str,
        *replies: Any,
        tools: Sequence[Any] = (),
        limits: Limits | None = None,
        names: Any = None,
        **change: Any,
    ) -> MemoryHost:
        """Add an agent with all session tools on a script."""
        self.models[name] = ScriptedModel(list(replies))
        given = {} if names is None else {"names": names}
        own = session_tools(self, limits=limits, **given)
        settings = preset("wakeloop").model_copy(update=change)
        self.made[name] = create_todo_agent(
            self.models[name], tools=[*tools, *own], settings=settings, checkpointer=self.saver
        )
        return self

    # -- the interface -----------------------------------------------------------------------------------

    @property
    def agents(self) -> Mapping[str, object]:
        return self.made

    def send(self, thread_id: str, event: WakeEvent) -> str:
        agent_of(thread_id, self.made)
        if fault := event_fault(event):
            raise SessionError(f"The event is refused: {fault}.")
        key = event.get("id") or f"e{len(self.accepted) + 1}"
        if key not in self.accepted:
            self.accepted[key] = (thread_id, {**event, "id": key})
            self.queue.append(self.accepted[key])
        return key

    def schedule(self, thread_id: str, cron: str, text: str) -> str:
        agent_of(thread_id, self.made)
        key = derived_id("cron", thread_id, cron, text)
        self.planned[key] = Schedule(key, thread_id, cron, text)
        return key

    def schedules(self, thread_id: str | None = None) -> Sequence[Schedule]:
        return [s for s in self.planned.values() if thread_id in (None, s.thread)]

    def status(self, thread_id: str) -> SessionStatus:
        if thread_id not in {to for to, _ in self.accepted.values()}:
            raise SessionError(f"Nothing was ever sent to the thread {thread_id!r}.")
        waiting = sum(to == thread_id for to, _ in self.queue)
        return SessionStatus.of(thread_id, agent_of(thread_id, self.made), self.snapshot(thread_id), waiting)

    def cancel(self, key: str) -> bool:
        if self.planned.pop(key, None):
            return True
        found = next((item for item in self.queue if item[1]["id"] == key), None)
        if found is None:
            return False
        self.queue.remove(found)
        if letter := refusal_of(found[1], found[0], "The message was cancelled."):
            self.send(letter.thread, letter.event)
        return True

    def drain(self, timeout: float | None = None) -> bool:
        self.draining = True
        return True

    def list(self) -> Sequence[SessionStatus]:
        return [self.status(thread) for thread in sorted({to for to, _ in self.accepted.values()})]

    # -- turns -------------------------------------------------------------------------------------------

    def tick(self, key: str, name: str) -> None:
        """A schedule is due."""
        plan = self.planned[key]
        self.send(plan.thread, {"kind": "cron", "id": name, "text": plan.text})

    def say(self, thread_id: str, text: str) -> MemoryHost:
        """A person writes; everything runs until nothing can."""
        self.send(thread_id, {"kind": "human", "text": text})
        return self.settle()

    def settle(self) -> MemoryHost:
        while not self.draining and any(
            self.turn(thread) for thread in dict.fromkeys(t for t, _ in self.queue)
        ):
            pass
        return self

    def turn(self, thread_id: str) -> bool:
        """Run one turn of a thread, if it can run."""
        events = [event for to, event in self.queue if to == thread_id]
        step = next_input(self.snapshot(thread_id), events if self.batch else events[:1])
        if not step.run and not self.batch:  # an answer may stand behind what an interrupt holds
            step = next_input(self.snapshot(thread_id), events)
        if not step.run:
            return False
        self.queue = [item for item in self.queue if item[1] not in step.taken]
        self.turns.append(thread_id)
        graph, failure = self.graph(thread_id), None
        try:
            steps = {} if self.limit is None else {"recursion_limit": self.limit}
            self.run(graph, step.input, {"configurable": {"thread_id": thread_id}, **steps})
        except Exception as error:  # noqa: BLE001 - a turn given up
            failure = f"{type(error).__name__}: {error}"
            self.failures.append(failure)
        if self.door == "sync":
            close_turn(graph, thread_id, self, failure)
        else:
            asyncio.run(aclose_turn(graph, thread_id, self, failure))
        return True

    def run(self, graph: Any, given: Any, config: Any) -> None:
        """By the synchronous or the asynchronous door."""
        if self.door == "sync":
            self.events += graph.stream(given, config, stream_mode="custom")
            return

        async def play() -> None:
            self.events += [e async for e in graph.astream(given, config, stream_mode="custom")]

        asyncio.run(play())

    # -- what is kept ------------------------------------------------------------------------------------

    def graph(self, thread_id: str) -> Any:
        return self.made[agent_of(thread_id, self.made)]

    def snapshot(self, thread_id: str) -> Any:
        return self.graph(thread_id).get_state({"configurable": {"thread_id": thread_id}})

    def values(self, thread_id: str) -> dict[str, Any]:
        return self.snapshot(thread_id).values

    def ending(self, thread_id: str) -> tuple[Any, ...]:
        """State and reason, and what it waits on where it does."""
        session = session_of(self.snapshot(thread_id))
        ending: tuple[Any, ...] = (session["state"], session["reason"])
        return (*ending, session["on"]) if "on" in session else ending

    def sent(self, kind: str, to: str | None = None) -> list[str]:
        """The texts of the accepted events of a kind."""
        return [e["text"] for t, e in self.accepted.values() if e["kind"] == kind and to in (None, t)]

    def asked(self, agent: str) -> int:
        return len(self.models[agent].requests)

    def last(self, agent: str, request: int = -1) -> str:
        """The text of a request's last message."""
        return str(self.models[agent].requests[request][-1].text)

    def results(self, thread_id: str) -> list[tuple[str, str]]:
        """Status and text of every tool result."""
        return [(m.status, m.text) for m in self.values(thread_id)["messages"] if m.type == "tool"]

    def done(self) -> None:
        """No script has replies left, nothing is queued, no request breaks the wire order."""
        from wakeloop.testing import wire_faults

        assert self.queue == []
        for model in self.models.values():
            model.assert_done()
            assert wire_faults(model.requests) == []
