"""A saver that checks its thread's owner, and retries."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from itertools import count
from threading import Event
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from wakeloop.sessions.dbos.outages import discard_cut_connections
from wakeloop.sessions.thread_runner import Graph, is_connection_error

SAVER_PAUSES = (0.2, 0.5, 1.0)  # seconds between attempts; the last one repeats
T = TypeVar("T")


@dataclass(frozen=True)
class Fence:
    """The checks before a run reads or writes.

    Attributes:
        confirm: Raises `TakenOverError` if another worker owns the thread by now.
        draining: Set when the host drains; outages are not waited out then.
    """

    confirm: Callable[[], None]
    draining: Event


def fence_graph(graph: Graph, fence: Fence) -> Graph:
    """Return a copy of a graph with a fenced saver, or the graph itself if it has no saver of its own."""
    saver = graph.checkpointer
    if not isinstance(saver, BaseCheckpointSaver):
        return graph
    return graph.copy({"checkpointer": FencedSaver(saver, fence)})


def retry_pause(tries: int) -> float:
    """Return how many seconds to wait after an attempt."""
    return SAVER_PAUSES[min(tries, len(SAVER_PAUSES) - 1)]


def delegate(name: str) -> Any:
    """Return a method that calls the wrapped saver's method of this name through the fence."""

    @wraps(getattr(BaseCheckpointSaver, name))
    def call(saver: "FencedSaver", *given: Any, **more: Any) -> Any:
        return saver.call(lambda: getattr(saver.saver, name)(*given, **more))

    return call


def delegate_async(name: str) -> Any:
    """Return a coroutine method that calls the wrapped saver's method of this name through the fence."""

    @wraps(getattr(BaseCheckpointSaver, name))
    async def call(saver: "FencedSaver", *given: Any, **more: Any) -> Any:
        return await saver.acall(lambda: getattr(saver.saver, name)(*given, **more))

    return call


class FencedSaver(BaseCheckpointSaver[Any]):
    """Wraps a saver for one run of one thread.

    Before each call it checks that the run still owns the thread. If a connection was cut, it repeats the
    call until the database is back. So the result of a tool that ended meanwhile is stored, and the tool does
    not run again.
    """

    def __init__(self, saver: BaseCheckpointSaver[Any], fence: Fence) -> None:
        super().__init__(serde=saver.serde)
        self.saver, self.fence = saver, fence
        if hasattr(saver, "loop"):
            self.loop = saver.loop  # `run_graph` recognizes an asynchronous saver by it

    @property
    def config_specs(self) -> list[Any]:
        """The wrapped saver's."""
        return self.saver.config_specs

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Count as the wrapped saver does."""
        return self.saver.get_next_version(current, channel)

    get_tuple, put, put_writes = delegate("get_tuple"), delegate("put"), delegate("put_writes")
    aget_tuple, aput, aput_writes = (
        delegate_async("aget_tuple"),
        delegate_async("aput"),
        delegate_async("aput_writes"),
    )
    get_delta_channel_history = delegate("get_delta_channel_history")
    aget_delta_channel_history = delegate_async("aget_delta_channel_history")

    def list(self, config: RunnableConfig | None, **which: Any) -> Iterator[CheckpointTuple]:
        """List checkpoints."""
        yield from self.call(lambda: [*self.saver.list(config, **which)])

    async def alist(self, config: RunnableConfig | None, **which: Any) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints."""

        async def collect() -> Sequence[CheckpointTuple]:
            return [row async for row in self.saver.alist(config, **which)]

        for row in await self.acall(collect):
            yield row

    # -- the fence -----------------------------------------------------------------------------------------

    def call(self, call: Callable[[], T]) -> T:
        """Check who owns the thread, then call; repeat while the database is away."""
        for tries in count():
            try:
                self.fence.confirm()
                return call()
            except Exception as error:
                if not is_connection_error(error) or self.fence.draining.wait(retry_pause(tries)):
                    raise
                self._discard_cut_connections()
        raise AssertionError  # `count` never ends

    async def acall(self, call: Callable[[], Awaitable[T]]) -> T:
        """Check who owns the thread, then call; repeat while the database is away."""
        for tries in count():
            try:
                await asyncio.to_thread(self.fence.confirm)
                return await call()
            except Exception as error:
                if not is_connection_error(error) or await asyncio.to_thread(
                    self.fence.draining.wait, retry_pause(tries)
                ):
                    raise
                await asyncio.to_thread(self._discard_cut_connections)
        raise AssertionError  # `count` never ends

    def _discard_cut_connections(self) -> None:
        with suppress(Exception):  # it is still away
            discard_cut_connections(self.saver)
