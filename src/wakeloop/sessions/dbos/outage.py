"""A database that is away for a while ends nothing."""

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from threading import Event
from typing import Any

from wakeloop.sessions.host import PAUSES
from wakeloop.sessions.worker import Graph, away


class Stopped(BaseException):
    """Ends a workflow without an outcome: it stays pending, and whoever comes next runs it again."""


def insist(
    attempt: Callable[[bool], None], draining: Event, agents: Callable[[], Mapping[str, Graph]]
) -> None:
    """Call, and again where a database was away; the attempt is told whether more will follow."""
    for tries in count(1):
        try:
            attempt(tries <= len(PAUSES))
        except away():
            if draining.wait(PAUSES[min(tries, len(PAUSES)) - 1]):
                raise Stopped from None
            for graph in agents().values():
                throw_away_cut_connections(graph.checkpointer)
        else:
            return


def throw_away_cut_connections(saver: Any) -> None:
    """Let a saver's pool look through its connections: it would hand out those that were cut, one by one."""
    look = getattr(getattr(saver, "conn", None), "check", None)  # psycopg's pools have it, connections do not
    looking = look() if look is not None else None
    if asyncio.iscoroutine(looking):
        asyncio.run_coroutine_threadsafe(looking, saver.loop).result()
