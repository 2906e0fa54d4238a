"""One agent on one thread, through any door and with any saver."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import repeat
from pathlib import Path
from typing import Any

import aiosqlite
from clocks import Clock, by
from forms import Server
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from levels import database

from wakeloop import answer_of, create_todo_agent, session_of
from wakeloop.testing import ScriptedModel, awalk, calls, prompt_faults, says, walk, wire_faults
from wakeloop.todos.items import is_open

DOORS = {
    "invoke": ("none", "memory", "sqlite"),
    "stream": ("none", "memory", "sqlite"),
    "ainvoke": ("none", "memory", "asqlite"),
    "astream": ("none", "memory", "asqlite"),
}
PATHS = [(door, saver) for door, savers in DOORS.items() for saver in savers]
KEPT = [(door, saver) for door, saver in PATHS if saver != "none"]
BARE = [(door, saver) for door, saver in PATHS if saver == "none"]
SECOND = "A second message, byte for byte: \u00e9\n  \t."
MODES = ["values", "updates", "custom"]


def write(*items: str, **more: Any) -> Any:
    """Return a reply whose one call plans these items."""
    return calls(("todo_write", {"items": list(items)}), **more)


def close(*ids: int, text: str = "") -> Any:
    """Return a reply that closes these items, one call each."""
    return calls(*(("todo_update", {"id": i, "status": "done"}) for i in ids), text=text)


def update(id: int, status: str, reason: str | None = None) -> Any:  # noqa: A002 - the tool's word
    """Return a reply whose one call gives an item a status."""
    return calls(("todo_update", {"id": id, "status": status, **({"reason": reason} if reason else {})}))


def statuses(todos: Sequence[Any]) -> list[str]:
    return [todo["status"] for todo in todos]


def results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


def users(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the user's own words, never the graph's."""
    return [
        str(m.content)
        for m in messages
        if isinstance(m, HumanMessage) and "wakeloop" not in m.additional_kwargs
    ]


def marks(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the kinds of the messages that the graph wrote, in order."""
    return [m.additional_kwargs["wakeloop"]["kind"] for m in messages if "wakeloop" in m.additional_kwargs]


class Rig:
    """An agent, a thread, a door and a saver; `then` swaps the model's script as a new process would."""

    def __init__(self, door: str, kind: str, path: Path) -> None:
        self.door, self.kind = door, kind
        self.runner = asyncio.Runner() if door.startswith("a") else None
        self.config: dict[str, Any] = {"configurable": {"thread_id": "thread"}}
        self.models: list[Any] = []
        self.form: Any = None  # a provider's own: see forms.py
        self.values: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self.chunks: list[Any] = []
        self.path = path
        self.saver = self.wait(self._aopen()) if kind == "asqlite" else self._open()
        self.options: dict[str, Any] = {}
        self.followed = False
        self.modes = MODES
        self.grows = self.keeps  # each request begins with all of the one before it

    def _open(self) -> Any:
        if self.kind == "none":
            return None
        if self.kind == "memory":
            return InMemorySaver()
        return SqliteSaver(sqlite3.connect(database(self.path), check_same_thread=False))

    async def _aopen(self) -> Any:
        return AsyncSqliteSaver(await aiosqlite.connect(database(self.path)))

    def wait(self, awaitable: Any) -> Any:
        """Return the value of an awaitable, on this rig's own loop."""
        assert self.runner is not None
        return self.runner.run(awaitable)

    @property
    def keeps(self) -> bool:
        return self.saver is not None

    # -- building and running ----------------------------------------------------------------------------

    def build(self, *replies: Any, **options: Any) -> "Rig":
        self.options = options
        return self.then(*replies)

    def then(self, *replies: Any) -> "Rig":
        """Keep the agent and the thread, with a new script."""
        self.model: Any = ScriptedModel(*replies) if self.form is None else Server(self.form, *replies)
        self.models.append(self.model)
        chat = self.model if self.form is None else self.model.chat
        self.agent = create_todo_agent(chat, checkpointer=self.saver, **self.options)
        by(Clock(), self.agent)  # so that every path stores the same
        return self

    def speaks(self, form: Any) -> "Rig":
        """Use a provider's form from now on: `invoke` whole, `stream` streamed."""
        self.form, self.modes = form, [*MODES, "messages"]
        return self

    def run(self, given: Any, **config: Any) -> dict[str, Any]:
        """Run once, and return the final state (or as far as it came); a string is one user message."""
        given, config = self._input(given), {**self.config, **config}
        if self.runner is not None:
            self.wait(self._arun(given, config))  # asyncio.Runner prints what it returns, so return nothing
            return self.values
        if self.door == "invoke":
            self.values = self.agent.invoke(given, config)
        else:
            for chunk in self.agent.stream(given, config, stream_mode=self.modes):
                self._see(chunk)
        return self.values

    async def _arun(self, given: Any, config: dict[str, Any]) -> None:
        if self.door == "ainvoke":
            self.values = await self.agent.ainvoke(given, config)
        else:
            async for chunk in self.agent.astream(given, config, stream_mode=self.modes):
                self._see(chunk)

    def walk(self, given: Any) -> list[str]:
        """Run once, and return the nodes visited."""
        if self.runner is not None:
            return list(self.wait(awalk(self.agent, self._input(given), self.config)))
        return walk(self.agent, self._input(given), self.config)

    def _see(self, chunk: Any) -> None:
        self.chunks.append(chunk)
        mode, payload = chunk
        if mode == "values":
            self.values = payload
        elif mode == "custom":
            self.events.append(payload)

    def _input(self, given: Any) -> Any:
        """Return a string as a user message; without a saver the caller carries the state himself."""
        if isinstance(given, str):
            given = {"messages": [("user", given)]}
        if self.keeps or not isinstance(given, dict) or not self.values:
            return given
        carried = {
            "messages": [*self.values["messages"], *given.get("messages", ())],
            **({"todos": self.values["todos"]} if "todos" in self.values else {}),
        }
        return {**given, **carried, **({"todos": given["todos"]} if "todos" in given else {})}

    # -- reading -----------------------------------------------------------------------------------------

    @property
    def snapshot(self) -> Any:
        if self.runner is not None:
            return self.wait(self.agent.aget_state(self.config))
        return self.agent.get_state(self.config)

    @property
    def state(self) -> dict[str, Any]:
        return self.snapshot.values if self.keeps else self.values

    @property
    def todos(self) -> list[Any]:
        return list(self.state.get("todos", ()))

    @property
    def messages(self) -> list[BaseMessage]:
        return list(self.state.get("messages", ()))

    @property
    def session(self) -> dict[str, Any]:
        return dict(session_of(self.snapshot) if self.keeps else self.values["todo_session"])

    @property
    def ending(self) -> tuple[str, str, int]:
        session = self.session
        return session["state"], session["reason"], session["wakes"]

    @property
    def requests(self) -> list[list[BaseMessage]]:
        return [request for model in self.models for request in model.requests]

    # -- what every case ends with -----------------------------------------------------------------------

    def follow_up(self, text: str = SECOND) -> None:
        """Send the same thread a second message: it reaches the model unchanged, and the run settles."""
        self.followed = True
        left = [todo["id"] for todo in self.todos if is_open(todo)]
        self.then(*([close(*left)] if left else []), says("Second answer."))
        out = self.run(text)
        self.model.assert_done()
        assert len(self.model.requests) == (2 if left else 1)
        assert users(self.model.requests[0])[-1] == text
        assert answer_of(out) == "Second answer."
        assert self.ending == ("dormant", "settled" if left else "answered", 0)
        ids = [message.id for message in self.messages]
        assert len(ids) == len(set(ids))
        assert all(ids)

    def send_second_message(self) -> None:
        """Send a second message if the case sent none: in any dialect the model gets it, and the run ends."""
        if self.followed or not self.models:
            return
        asked = len(self.requests)
        self.then(repeat("Second answer."))
        self.run(SECOND)
        first, *_ = self.requests[asked:]
        assert users(first)[-1] == SECOND
        assert self.session["state"] in {"idle", "dormant", "waiting"}
        ids = [message.id for message in self.messages]
        assert len(ids) == len(set(ids))
        assert all(ids)

    def check(self) -> None:
        """Check that no run's requests break the wire order or the prefix, and no provider's server refused
        one.
        """
        assert [fault for model in self.models for fault in getattr(model, "faults", ())] == []
        assert wire_faults(self.requests) == []
        if self.grows:
            assert prompt_faults(self.requests) == []

    def shut(self) -> None:
        if self.kind == "asqlite":
            self.wait(self.saver.conn.close())
        if self.kind == "sqlite":
            with closing(self.saver.conn):
                pass
        if self.runner is not None:
            self.runner.close()
