"""A checkpoint saver that waits for its database."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import wraps
from threading import Event
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from wakeloop.platform.outages import Patience, await_out, wait_out

T = TypeVar("T")


def delegate(name: str) -> Any:
    """Return a method that calls the wrapped saver's method of this name."""

    @wraps(getattr(BaseCheckpointSaver, name))
    def call(saver: "PatientSaver", *given: Any, **more: Any) -> Any:
        return saver.call(lambda: getattr(saver.saver, name)(*given, **more))

    return call


def delegate_async(name: str) -> Any:
    """Return a coroutine method that calls the wrapped saver's method of this name."""

    @wraps(getattr(BaseCheckpointSaver, name))
    async def call(saver: "PatientSaver", *given: Any, **more: Any) -> Any:
        return await saver.acall(lambda: getattr(saver.saver, name)(*given, **more))

    return call


class PatientSaver(BaseCheckpointSaver[Any]):
    """Wraps a saver. While its database is away, each call waits and is repeated.

    So the result of a tool that ended meanwhile is stored, and the tool does not run again.

    Args:
        saver: The saver.
        stopped: Ends the waiting when it is set. Default: never.
        bounded: Whether to give up after five minutes and raise the database's error.
        confirm: Called before each attempt, to raise if the run may not use the thread any more.

    Example:
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from wakeloop.thread.patient_saver import PatientSaver
        >>> saver = PatientSaver(InMemorySaver())
    """

    def __init__(
        self,
        saver: BaseCheckpointSaver[Any],
        stopped: Event | None = None,
        *,
        bounded: bool = True,
        confirm: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(serde=saver.serde)
        self.saver, self.confirm = saver, confirm
        self.patience = Patience(stopped or Event(), bounded)
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
    delete_thread, adelete_thread = delegate("delete_thread"), delegate_async("adelete_thread")
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

    def call(self, call: Callable[[], T]) -> T:
        """Confirm, then call; repeat both while the database is away."""

        def attempt() -> T:
            self.confirm()
            return call()

        return wait_out(attempt, self.patience, self._repair)

    async def acall(self, call: Callable[[], Awaitable[T]]) -> T:
        """Confirm, then call; repeat both while the database is away."""

        async def attempt() -> T:
            await asyncio.to_thread(self.confirm)
            return await call()

        return await await_out(attempt, self.patience, self._repair)

    def _repair(self) -> None:
        discard_cut_connections(self.saver)


def discard_cut_connections(saver: Any) -> None:
    """Let a saver's pool check its connections. Otherwise it would hand out the cut ones, one by one."""
    # psycopg's pools have `check`, its connections do not
    check = getattr(getattr(saver, "conn", None), "check", None)
    checking = check() if check is not None else None
    if asyncio.iscoroutine(checking):
        asyncio.run_coroutine_threadsafe(checking, saver.loop).result()
