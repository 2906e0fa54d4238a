"""A host for stories: agents with scripts, one turn after another, and what can be read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from wakeloop import create_todo_agent, preset, session_of
from wakeloop.loop.inbox import WakeEvent
from wakeloop.sessions import Schedule, SessionStatus, find_agent, session_tools
from wakeloop.sessions.communication_tools import SubagentLimits
from wakeloop.testing import ScriptedModel, wire_faults

TIME = re.compile(r", [0-9T:.+-]{25,32}\]")


class Stage:
    """A host whose agents follow scripts. `settle` runs turns, oldest event first, until nothing can run."""

    queue: Any  # thread and event of everything that waits, oldest first
    failures: Any  # why turns failed

    def __init__(self, saver: Any) -> None:
        self.saver = saver
        self.made: dict[str, Any] = {}
        self.models: dict[str, ScriptedModel] = {}
        self.accepted: dict[str, tuple[str, WakeEvent]] = {}
        self.turns: list[str] = []
        self.limit: int | None = None

    def agent(
        self,
        name: str,
        *replies: Any,
        tools: Sequence[Any] = (),
        limits: SubagentLimits | None = None,
        names: Any = None,
        done_when: Any = None,
        **change: Any,
    ) -> Any:
        """Add an agent with a script and all session tools."""
        self.models[name] = ScriptedModel(list(replies))
        given = {} if names is None else {"names": names}
        own = session_tools(self, limits=limits, **given)
        settings = preset("wakeloop").model_copy(update=change)
        made = create_todo_agent(
            self.models[name],
            tools=[*tools, *own],
            settings=settings,
            done_when=done_when,
            checkpointer=self.saver,
        )
        self.made[name] = made if self.limit is None else made.with_config(recursion_limit=self.limit)
        return self

    # -- the interface: what each host does in its own way -------------------------------------------------

    @property
    def agents(self) -> Mapping[str, object]:
        return self.made

    def send(self, thread_id: str, event: WakeEvent) -> str:
        raise NotImplementedError

    def schedule(self, thread_id: str, cron: str, text: str) -> str:
        raise NotImplementedError

    def schedules(self, thread_id: str | None = None) -> Sequence[Schedule]:
        raise NotImplementedError

    def status(self, thread_id: str) -> SessionStatus:
        raise NotImplementedError

    def cancel(self, key: str) -> bool:
        raise NotImplementedError

    def drain(self, timeout: float | None = None) -> bool:
        raise NotImplementedError

    def list(self) -> Sequence[SessionStatus]:
        raise NotImplementedError

    def turn(self, thread_id: str) -> bool:
        """Run a thread with its waiting events, if it can run."""
        raise NotImplementedError

    # -- turns -------------------------------------------------------------------------------------------

    def tick(self, key: str, name: str) -> None:
        """Fire a schedule."""
        [plan] = [plan for plan in self.schedules() if plan.id == key]
        self.send(plan.thread, {"kind": "cron", "id": name, "text": plan.text})

    def say(self, thread_id: str, text: str) -> Any:
        """Send a person's message, and run until nothing can run."""
        self.send(thread_id, {"kind": "human", "text": text})
        return self.settle()

    def settle(self) -> Any:
        while any(self.turn(thread) for thread in dict.fromkeys(t for t, _ in self.queue)):
            pass
        return self

    # -- what is kept ------------------------------------------------------------------------------------

    def graph(self, thread_id: str) -> Any:
        return self.made[find_agent(thread_id, self.made)]

    def snapshot(self, thread_id: str) -> Any:
        return self.graph(thread_id).get_state({"configurable": {"thread_id": thread_id}})

    def values(self, thread_id: str) -> dict[str, Any]:
        return self.snapshot(thread_id).values

    def ending(self, thread_id: str) -> tuple[Any, ...]:
        """Return state and reason, and what the session waits for, if it does."""
        session = session_of(self.snapshot(thread_id))
        ending: tuple[Any, ...] = (session["state"], session["reason"])
        return (*ending, session["on"]) if "on" in session else ending

    def sent(self, kind: str, to: str | None = None) -> list[str]:
        """Return the contents of the accepted events of a kind."""
        return [e["text"] for t, e in self.accepted.values() if e["kind"] == kind and to in (None, t)]

    def asked(self, agent: str) -> int:
        return len(self.models[agent].requests)

    def last(self, agent: str, request: int = -1) -> str:
        """Return the text of a request's last message, as `read` does."""
        return self.read(agent, request)[-1]

    def read(self, agent: str, request: int = -1) -> Sequence[str]:
        """Return the contents of a request's messages, without the times of events."""
        return [TIME.sub("]", m.text) for m in self.models[agent].requests[request]]

    def results(self, thread_id: str) -> list[tuple[str, str]]:
        """Return status and text of every tool result."""
        return [(m.status, m.text) for m in self.values(thread_id)["messages"] if m.type == "tool"]

    def done(self) -> None:
        """Assert that all scripts are used up, nothing is queued, and every request is legal."""
        assert self.queue == []
        for model in self.models.values():
            model.assert_done()
            assert wire_faults(model.requests) == []
