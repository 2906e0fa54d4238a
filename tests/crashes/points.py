"""The points of a run at which its process can be killed."""

import os
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

STALLED = "the storage is stuck"


class Points:
    """Told of every point that a run passes: writes it down, and ends the process at one of them."""

    def __init__(
        self,
        journal: Path,
        die: str | None = None,
        stall: str | None = None,
        turns: Mapping[str, str] | None = None,  # what has to be passed before
    ) -> None:
        self.die, self.stall, self.turns = die, stall, turns or {}
        self.journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.passed: dict[str, threading.Event] = {}
        self.times: Counter[str] = Counter()

    def at(self, point: str) -> None:
        """Pass a point, or end here as a power cut would; or wait here until that happens elsewhere."""
        self.times[point] += 1
        if self.times[point] > 1:
            point = f"{point} ({self.times[point]})"
        if before := self.turns.get(point):
            assert self.event(before).wait(60), f"{before}: never"
        os.write(self.journal, f"{point}\n".encode())
        if point == self.die:
            os.kill(os.getpid(), signal.SIGKILL)
        if point == self.stall:
            self.event(STALLED).set()
            threading.Event().wait()
        self.event(point).set()

    def event(self, point: str) -> threading.Event:
        """What is set once the point is passed."""
        return self.passed.setdefault(point, threading.Event())


class Storing:
    """Mixed into a saver: three points for whatever is stored."""

    points: Points
    here = threading.local()

    @contextmanager
    def storing(self, what: str) -> Iterator[None]:
        self.points.at(f"{what}, before")
        self.here.what = what
        yield
        self.here.what = None
        self.points.at(f"{what}, stored")

    @classmethod
    def commit(cls, points: Points) -> None:
        if what := getattr(cls.here, "what", None):
            points.at(f"{what}, uncommitted")

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        with self.storing(f"checkpoint {metadata['step']}"):
            return super().put(config, checkpoint, metadata, new_versions)  # type: ignore[misc]

    def put_writes(self, config: Any, writes: Sequence[Any], task_id: str, task_path: str = "") -> None:
        with self.storing(f"writes of {author(writes, task_path)} {self.turn(task_path, writes)}".rstrip()):
            super().put_writes(config, writes, task_id, task_path)  # type: ignore[misc]

    def turn(self, task_path: str, writes: Sequence[Any]) -> str:
        """Which of its writes it is; a call's result is named by the call."""
        if call := call_of(writes, task_path):
            return call
        seen = self.__dict__.setdefault("seen", {})
        seen[task_path] = seen.get(task_path, 0) + 1
        return str(seen[task_path])


def call_of(writes: Sequence[Any], task_path: str) -> str | None:
    """The call that these writes answer, if they are a tool's."""
    if "push" not in task_path:
        return None
    return next(m.tool_call_id for _, value in writes for m in listed(value) if isinstance(m, ToolMessage))


def author(writes: Sequence[Any], task_path: str) -> str:
    """The node whose writes these are."""
    if call_of(writes, task_path):
        return "run_tools"
    return task_path.rpartition(", ")[2] or "input"


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


class StoringSqlite(Storing, SqliteSaver):
    """SQLite, with points."""


class StoringPostgres(Storing, PostgresSaver):
    """Postgres, with points."""


@contextmanager
def saver_at(where: str, points: Points, *, fsync: bool = True) -> Iterator[Any]:
    """A saver over a file or a Postgres URL, told of by the points; only a power cut asks for `fsync`."""
    saver: Any
    if where.startswith("postgresql:"):

        class Pipelined(psycopg.Connection[Any]):
            @contextmanager
            def pipeline(self) -> Iterator[Any]:
                with super().pipeline() as pipeline:
                    yield pipeline
                    Storing.commit(points)

        with Pipelined.connect(
            where, autocommit=True, prepare_threshold=0, row_factory=psycopg.rows.dict_row
        ) as connection:
            saver = StoringPostgres(connection)
            saver.points = points
            yield saver
        return

    class Committing(sqlite3.Connection):
        def commit(self) -> None:
            Storing.commit(points)
            super().commit()

    file = sqlite3.connect(where, factory=Committing, check_same_thread=False)
    if not fsync:
        file.execute("PRAGMA synchronous=OFF")
    saver = StoringSqlite(file)
    saver.points = points
    yield saver
    file.close()
