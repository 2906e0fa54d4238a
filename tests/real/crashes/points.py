"""The points of a run at which its process can be killed."""

import asyncio
import os
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import aiosqlite
import psycopg
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

STALLED = "the storage is stuck"


class Points:
    """Records every point that a run passes, and kills the process at one of them."""

    def __init__(
        self,
        journal: Path,
        die: str | None = None,
        stall: str | None = None,
        turns: Mapping[str, str] | None = None,  # points that must be passed first
    ) -> None:
        self.die, self.stall, self.turns = die, stall, turns or {}
        self.journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.passed: dict[str, threading.Event] = {}
        self.times: Counter[str] = Counter()

    def at(self, point: str) -> None:
        """Pass a point, die here as in a power cut, or wait here until the process dies elsewhere."""
        point = self.named(point)
        self.wait_turn(point)
        if self.stuck_at(point):
            threading.Event().wait()
        self.event(point).set()

    async def aat(self, point: str) -> None:
        """The same without blocking the event loop."""
        point = self.named(point)
        if point in self.turns:
            await asyncio.to_thread(self.wait_turn, point)
        if self.stuck_at(point):
            await asyncio.Event().wait()
        self.event(point).set()

    def named(self, point: str) -> str:
        """Return the point's name, numbered from its second time on."""
        self.times[point] += 1
        return point if self.times[point] == 1 else f"{point} ({self.times[point]})"

    def wait_turn(self, point: str) -> None:
        if before := self.turns.get(point):
            assert self.event(before).wait(60), f"{before}: never"

    def stuck_at(self, point: str) -> bool:
        """Record the point. Die here if it is the one, or return whether to wait here forever."""
        os.write(self.journal, f"{point}\n".encode())
        if point == self.die:
            os.kill(os.getpid(), signal.SIGKILL)
        if point == self.stall:
            self.event(STALLED).set()
        return point == self.stall

    def event(self, point: str) -> threading.Event:
        """Return the event that is set once the point is passed."""
        return self.passed.setdefault(point, threading.Event())


STORED: ContextVar[str | None] = ContextVar("what is being stored", default=None)


class Storing:
    """A mixin for savers, with three points for everything stored."""

    points: Points

    @contextmanager
    def storing(self, what: str) -> Iterator[None]:
        self.points.at(f"{what}, before")
        STORED.set(what)
        yield
        STORED.set(None)
        self.points.at(f"{what}, stored")

    @asynccontextmanager
    async def astoring(self, what: str) -> AsyncIterator[None]:
        await self.points.aat(f"{what}, before")
        STORED.set(what)
        yield
        STORED.set(None)
        await self.points.aat(f"{what}, stored")

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        with self.storing(f"checkpoint {metadata['step']}"):
            return super().put(config, checkpoint, metadata, new_versions)  # type: ignore[misc]

    def put_writes(self, config: Any, writes: Sequence[Any], task_id: str, task_path: str = "") -> None:
        with self.storing(self.part(task_path, writes)):
            super().put_writes(config, writes, task_id, task_path)  # type: ignore[misc]

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        async with self.astoring(f"checkpoint {metadata['step']}"):
            return await super().aput(config, checkpoint, metadata, new_versions)  # type: ignore[misc]

    async def aput_writes(
        self, config: Any, writes: Sequence[Any], task_id: str, task_path: str = ""
    ) -> None:
        async with self.astoring(self.part(task_path, writes)):
            await super().aput_writes(config, writes, task_id, task_path)  # type: ignore[misc]

    def part(self, task_path: str, writes: Sequence[Any]) -> str:
        return f"writes of {author(writes, task_path)} {self.turn(task_path, writes)}".rstrip()

    def turn(self, task_path: str, writes: Sequence[Any]) -> str:
        """Return a name for these writes; a call's result is named after the call."""
        if call := call_of(writes, task_path):
            return call
        seen = self.__dict__.setdefault("seen", {})
        seen[task_path] = seen.get(task_path, 0) + 1
        return str(seen[task_path])


def call_of(writes: Sequence[Any], task_path: str) -> str | None:
    """Return the call that these writes answer, if a tool wrote them."""
    if "push" not in task_path:
        return None
    return next(m.tool_call_id for _, value in writes for m in listed(value) if isinstance(m, ToolMessage))


def author(writes: Sequence[Any], task_path: str) -> str:
    """Return the node that wrote these."""
    if call_of(writes, task_path):
        return "run_tools"
    return task_path.rpartition(", ")[2] or "input"


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


class StoringSqlite(Storing, SqliteSaver):
    """SQLite, with points."""


class StoringPostgres(Storing, PostgresSaver):
    """Postgres, with points."""


class AsyncStoringSqlite(Storing, AsyncSqliteSaver):
    """Asynchronous SQLite, with points."""


class AsyncStoringPostgres(Storing, AsyncPostgresSaver):
    """Asynchronous Postgres, with points."""


@contextmanager
def saver_at(where: str, points: Points, *, fsync: bool = True) -> Iterator[Any]:
    """Open a saver with points, over a file or a Postgres URL. Only power cuts need `fsync`."""
    saver: Any
    if where.startswith("postgresql:"):

        class Pipelined(psycopg.Connection[Any]):
            @contextmanager
            def pipeline(self) -> Iterator[Any]:
                with super().pipeline() as pipeline:
                    yield pipeline
                    if what := STORED.get():
                        points.at(f"{what}, uncommitted")

        with Pipelined.connect(
            where, autocommit=True, prepare_threshold=0, row_factory=psycopg.rows.dict_row
        ) as connection:
            saver = StoringPostgres(connection)
            saver.points = points
            yield saver
        return

    class Committing(sqlite3.Connection):
        def commit(self) -> None:
            if what := STORED.get():
                points.at(f"{what}, uncommitted")
            super().commit()

    file = sqlite3.connect(where, factory=Committing, check_same_thread=False)
    if not fsync:
        file.execute("PRAGMA synchronous=OFF")
    saver = StoringSqlite(file)
    saver.points = points
    yield saver
    file.close()


@asynccontextmanager
async def asaver_at(where: str, points: Points, *, fsync: bool = True) -> AsyncIterator[Any]:
    """The same for asynchronous savers."""
    saver: Any
    if where.startswith("postgresql:"):

        class Pipelined(psycopg.AsyncConnection[Any]):
            @asynccontextmanager
            async def pipeline(self) -> AsyncIterator[Any]:
                async with super().pipeline() as pipeline:
                    yield pipeline
                    if what := STORED.get():
                        await points.aat(f"{what}, uncommitted")

        async with await Pipelined.connect(
            where, autocommit=True, prepare_threshold=0, row_factory=psycopg.rows.dict_row
        ) as connection:
            saver = AsyncStoringPostgres(connection)
            saver.points = points
            yield saver
        return

    class Committing(aiosqlite.Connection):
        async def commit(self) -> None:
            if what := STORED.get():
                await points.aat(f"{what}, uncommitted")
            await super().commit()

    async with Committing(lambda: sqlite3.connect(where), iter_chunk_size=64) as file:
        if not fsync:
            await file.execute("PRAGMA synchronous=OFF")
        saver = AsyncStoringSqlite(file)
        saver.points = points
        await saver.setup()  # otherwise the first write does it
        yield saver
