"""Walks: runs as lists of the nodes they visited."""

from collections import Counter
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel
from langgraph.types import Command, StreamMode

Input: TypeAlias = str | dict[str, Any] | Command[Any] | None

_MODES: list[StreamMode] = ["debug", "updates"]


def walk(
    agent: Pregel[Any, Any, Any, Any],
    input: Input,  # noqa: A002 - LangGraph's own word
    config: RunnableConfig | None = None,
    *,
    visited: list[str] | None = None,
    **kwargs: Any,
) -> list[str]:
    """Run the agent and return the nodes it visited; those of one superstep in alphabetical order.

    `input` is a string (sent as one user message), a state, a `Command` or None (continue). Only nodes that
    ran count: a resume leaves out those that had finished before, and includes an interrupted node that
    starts again. Nodes inside subgraphs are not listed. Errors of the run are raised with the walk so far as
    a note; the list `visited`, if given, is filled in either case. Other keywords go to `agent.stream`.

    Example:
        >>> from wakeloop import create_todo_agent
        >>> from wakeloop.testing import ScriptedModel
        >>> walk(create_todo_agent(ScriptedModel("Hello!")), "Hi")
        ['activate', 'call_model', 'finalization_guard']
    """
    seen = _WalkRecorder(visited)
    with seen:
        for event in agent.stream(_graph_input(input), config, stream_mode=_MODES, **kwargs):
            seen.see(event)
    return seen.nodes


async def awalk(
    agent: Pregel[Any, Any, Any, Any],
    input: Input,  # noqa: A002 - LangGraph's own word
    config: RunnableConfig | None = None,
    *,
    visited: list[str] | None = None,
    **kwargs: Any,
) -> list[str]:
    """Do the same as `walk`, by `agent.astream`.

    Example:
        >>> import asyncio
        >>> from wakeloop import create_todo_agent
        >>> from wakeloop.testing import ScriptedModel
        >>> asyncio.run(awalk(create_todo_agent(ScriptedModel("Hello!")), "Hi"))
        ['activate', 'call_model', 'finalization_guard']
    """
    seen = _WalkRecorder(visited)
    with seen:
        async for event in agent.astream(_graph_input(input), config, stream_mode=_MODES, **kwargs):
            seen.see(event)
    return seen.nodes


def _graph_input(given: Input) -> dict[str, Any] | Command[Any] | None:
    if isinstance(given, str):
        return {"messages": [("user", given)]}
    return given


class _WalkRecorder:
    """Records the walk so far, and the superstep in progress."""

    def __init__(self, nodes: list[str] | None) -> None:
        self.nodes = [] if nodes is None else nodes
        self.step = -1
        self.started: Counter[str] = Counter()

    def see(self, event: Any) -> None:
        """Record a task that starts, or one that need not run again."""
        mode, payload = event
        if mode == "updates":
            # A task that an earlier run finished is announced like any other; a cached update follows it.
            if payload.get("__metadata__", {}).get("cached"):
                self.started.subtract(name for name in payload if name != "__metadata__")
        elif payload["type"] == "task":
            if payload["step"] != self.step:
                self._close()
                self.step = payload["step"]
            self.started[payload["payload"]["name"]] += 1

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._close()
        if error is not None:
            error.add_note(f"walk: {', '.join(self.nodes) or 'no node'}")

    def _close(self) -> None:
        self.nodes += sorted(name for name, number in self.started.items() if number > 0)
        self.started.clear()
