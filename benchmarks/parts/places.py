"""Where threads are kept: no saver, memory, SQLite, the command's own database, Postgres."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Kept:
    """An open saver, and the file that it writes, if any."""

    saver: Any = None
    file: Path | None = None

    @property
    def bytes(self) -> int | None:
        """Return the size of the file, including what is still in its log."""
        if self.file is None:
            return None
        with closing(sqlite3.connect(self.file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return self.file.stat().st_size

    def rows(self, table: str) -> int:
        """Return the number of rows of a table."""
        assert self.file is not None
        with closing(sqlite3.connect(self.file)) as connection:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608


@contextmanager
def nowhere() -> Iterator[Kept]:
    """No saver."""
    yield Kept()


@contextmanager
def memory() -> Iterator[Kept]:
    """LangGraph's saver in memory."""
    from langgraph.checkpoint.memory import InMemorySaver

    yield Kept(InMemorySaver())


@contextmanager
def new_file() -> Iterator[Path]:
    """Yield a file in a new folder that is removed with it."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        yield Path(folder) / "threads.db"


PRAGMAS = ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL")


@contextmanager
def sqlite() -> Iterator[Kept]:
    """A new database of LangGraph's SQLite saver."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    with new_file() as file, closing(sqlite3.connect(file, check_same_thread=False)) as connection:
        for pragma in PRAGMAS:
            connection.execute(pragma)
        saver = SqliteSaver(connection)
        saver.setup()
        yield Kept(saver, file)


@contextmanager
def command() -> Iterator[Kept]:
    """A new database of this package's command line."""
    from wakeloop.cli.store import DatabaseFile, open_to_write

    with new_file() as file, open_to_write(DatabaseFile(file, named=True)) as store:
        yield Kept(store.saver, file)


@dataclass
class Postgres:
    """A new database for each thread, on one server that runs as long as the benchmark."""

    server: Any

    @contextmanager
    def __call__(self) -> Iterator[Kept]:
        from langgraph.checkpoint.postgres import PostgresSaver

        with self.server.database() as url, PostgresSaver.from_conn_string(url) as saver:
            saver.setup()
            yield Kept(saver)


def postgres_server() -> AbstractContextManager[Any]:
    """The server that the tests use."""
    sys.path.append(str(Path(__file__).parents[2] / "tests"))
    import postgres

    return postgres.running()


# -- asynchronous ----------------------------------------------------------------------------------------


class AsyncNowhere:
    """No saver, under `ainvoke`."""

    async def __aenter__(self) -> Kept:
        return Kept()

    async def __aexit__(self, *error: object) -> None:
        return None


class AsyncSqlite:
    """A new database of LangGraph's asynchronous SQLite saver."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="bench-")

    async def __aenter__(self) -> Kept:
        import aiosqlite
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        file = Path(self.folder.name) / "threads.db"
        self.connection = await aiosqlite.connect(file)
        for pragma in PRAGMAS:
            await self.connection.execute(pragma)
        saver = AsyncSqliteSaver(self.connection)
        await saver.setup()
        return Kept(saver, file)

    async def __aexit__(self, *error: object) -> None:
        await self.connection.close()
        self.folder.cleanup()


PLACES = {"none": nowhere, "memory": memory, "sqlite": sqlite, "command": command}
ASYNC_PLACES = {"none": AsyncNowhere, "sqlite": AsyncSqlite}
