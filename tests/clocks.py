"""A manual clock for the nodes that read one."""

import threading
from collections.abc import Iterable
from typing import Any


class Clock:
    """A clock that advances only on request, separately in each thread."""

    def __init__(self) -> None:
        self.local = threading.local()

    def __call__(self) -> float:
        return getattr(self.local, "now", 0.0)

    def advance(self, seconds: float) -> None:
        self.local.now = self() + seconds


def timeless(events: Iterable[Any]) -> list[Any]:
    """Return events without their times."""
    return [{k: v for k, v in event.items() if k != "at"} for event in events]


def by(clock: Clock, graph: Any) -> Clock:
    """Let the nodes of an agent, compiled or not, read this clock."""
    for name in ("call_model", "run_tools"):
        object.__setattr__(getattr(graph, "builder", graph).nodes[name].runnable, "clock", clock)
    return clock
