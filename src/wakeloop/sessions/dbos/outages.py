"""A database that is away for a while ends nothing."""

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from threading import Event
from typing import Any

from wakeloop.sessions.host import RETRY_PAUSES
from wakeloop.sessions.thread_runner import Graph, outage_errors


class WorkflowStopped(BaseException):
    """Ends a workflow without an outcome: it stays pending, and whoever comes next runs it again."""


def retry_through_outages(
    attempt: Callable[[bool], None], draining: Event, agents: Callable[[], Mapping[str, Graph]]
) -> None:
    """Call, and again where a database was away; the attempt is told whether more will follow."""
    for tries in count(1):
        try:
            attempt(tries <= len(RETRY_PAUSES))
        except outage_errors():
            if draining.wait(RETRY_PAUSES[min(tries, len(RETRY_PAUSES)) - 1]):
                raise WorkflowStopped from None
            for graph in agents().values():
                discard_cut_connections(graph.checkpointer)
        else:
            return


def discard_cut_connections(saver: Any) -> None:
    """Let a saver's pool look through its connections: it would hand out those that were cut, one by one."""
    look = getattr(getattr(saver, "conn", None), "check", None)  # psycopg's pools have it, connections do not
    looking = look() if look is not None else None
    if asyncio.iscoroutine(looking):
        asyncio.run_coroutine_threadsafe(looking, saver.loop).result()
