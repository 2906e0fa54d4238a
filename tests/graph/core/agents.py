"""Agents on scripted models, through both doors."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import ANY

import hypothesis
from clocks import timeless
from hypothesis import HealthCheck
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.types import StateSnapshot
from levels import examples

from wakeloop import preset, session_of
from wakeloop.testing import awalk, calls, walk

START = ["activate", "call_model"]
TODO = ["validate_todos", "call_model"]
WORK = ["run_tools", "call_model"]
END = ["finalization_guard"]
WAKE = ["finalization_guard", "wake", "call_model"]
AGAIN = ["finalization_guard", "call_model"]

SLOW = {"max_idle_wakes": 0, "guard_retries": 0}
QUIET = {"guard_retries": 0}
UNASKED = {"on_question": "wake", "on_new_topic": "ignore"}  # nobody is there to ask

DEEPER = 25 if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else 1  # make properties, with all paths


class WordlessError(Exception):
    """An error whose message cannot be read."""

    def __str__(self) -> str:
        raise KeyError("what it was about")


def budget(number: int, **more: Any) -> hypothesis.settings:
    """Return how many examples a property test tries: more if the profile explores."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return examples(number * DEEPER, suppress_health_check=checks, **more)


def write(*items: str) -> AIMessage:
    """Return a reply that adds items."""
    return calls(("todo_write", {"items": list(items)}))


def update(key: Any, status: str, reason: str | None = None) -> AIMessage:
    """Return a reply that changes one item."""
    return calls(change(key, status, reason))


def change(key: Any, status: str, reason: str | None = None) -> tuple[str, dict[str, Any]]:
    """Return a call that changes one item."""
    return "todo_update", {"id": key, "status": status} | ({"reason": reason} if reason else {})


def done(*keys: Any) -> AIMessage:
    """Return a reply that closes items."""
    return calls(*(change(key, "done") for key in keys))


def look(path: str) -> str:
    """Look at a path."""
    return f"saw {path}"


def looks(*paths: str) -> AIMessage:
    """Return a reply that looks at paths."""
    return calls(*(("look", {"path": path}) for path in paths))


def todo(key: Any, content: str, status: str = "pending", **more: str) -> dict[str, Any]:
    """Return one item as it is stored."""
    return {"id": key, "content": content, "status": status, **more}


def session(
    state: str,
    reason: str | None,
    open: int = 0,  # noqa: A002 - the key
    wakes: int = 0,
    budget: int = 25,
    writes: Any = ANY,
    items: Any = ANY,
    **more: Any,
) -> dict[str, Any]:
    """Return a session as it is stored: without numbers while running; the list's are compared if given."""
    if state == "running":
        return {"state": state, "reason": reason}
    counts = {"open": open, "wakes": wakes, "budget": budget, "list": writes, "items": items}
    became = dict.fromkeys(("completed", "cancelled", "blocked"), ANY)
    if reason == "looping":
        more = {"repeated": ANY, **more}
    return {"state": state, "reason": reason, **counts, **became, "spent": ANY, **more}


def settings(**changes: Any) -> Any:
    """Return the default preset, varied."""
    return preset("wakeloop").model_copy(update=changes)


@dataclass
class Thread:
    """One thread of an agent, run through the synchronous or the asynchronous door."""

    graph: Any
    model: Any
    door: str
    thread_id: str = "1"
    config: dict[str, Any] = field(default_factory=dict)

    def at(self, **more: Any) -> dict[str, Any]:
        return {"configurable": {"thread_id": self.thread_id}, **self.config, **more}

    def walk(self, given: Any, limit: int | None = None, config: Any = None, **more: Any) -> list[str]:
        config = config or (self.at() if limit is None else self.at(recursion_limit=limit))
        if self.door == "sync":
            return walk(self.graph, given, config, **more)
        return asyncio.run(awalk(self.graph, given, config, **more))

    def run(self, given: Any, limit: int | None = None, config: Any = None, **more: Any) -> dict[str, Any]:
        config = config or (self.at() if limit is None else self.at(recursion_limit=limit))
        given = {"messages": [("user", given)]} if isinstance(given, str) else given
        if self.door == "sync":
            return self.graph.invoke(given, config, **more)
        return asyncio.run(self.graph.ainvoke(given, config, **more))

    def events(self, given: Any, *, spent: bool = False, **more: Any) -> list[dict[str, Any]]:
        """Return the stream, without times, and with the spending of each request only if asked for."""
        found = timeless(self.streamed(given, **more))
        return found if spent else [event for event in found if event["type"] != "spent"]

    def streamed(self, given: Any, **more: Any) -> list[dict[str, Any]]:
        given = {"messages": [("user", given)]} if isinstance(given, str) else given
        if self.door == "sync":
            return list(self.graph.stream(given, self.at(), stream_mode="custom", **more))

        async def collect() -> list[Any]:
            return [e async for e in self.graph.astream(given, self.at(), stream_mode="custom", **more)]

        return asyncio.run(collect())

    @property
    def snapshot(self) -> StateSnapshot:
        return self.graph.get_state(self.at())

    @property
    def values(self) -> dict[str, Any]:
        return self.snapshot.values

    @property
    def todos(self) -> list[Any]:
        return list(self.values["todos"])

    @property
    def ledger(self) -> dict[str, Any]:
        return self.values["todo_ledger"]

    @property
    def session(self) -> dict[str, Any]:
        return dict(session_of(self.snapshot))

    @property
    def messages(self) -> list[AnyMessage]:
        return list(self.values["messages"])

    @property
    def kinds(self) -> list[str]:
        """Return each message's type, or the kind that the graph marked it with."""
        return [kind(message) for message in self.messages]

    @property
    def asked(self) -> int:
        """Return how many requests the model got."""
        return len(self.model.requests)

    def results(self) -> list[tuple[str, str]]:
        """Return status and text of every tool result."""
        return [(m.status, m.text) for m in self.messages if m.type == "tool"]


def kind(message: Any) -> str:
    """Return a message's kind: the graph's, else its type."""
    return message.additional_kwargs.get("wakeloop", {}).get("kind", message.type)


CONFIG: Any = {"configurable": {"thread_id": "1"}}


Make = Callable[..., Thread]
