"""Threads in one SQLite file, and how each was made."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from errno import EACCES
from pathlib import Path
from typing import TYPE_CHECKING

from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.failures import FAILED, USAGE, CommandError, format_disk_full, is_disk_full, usage_error
from wakeloop.cli.locks import RUNNING_PREFIX, ThreadLock, open_lock_file
from wakeloop.platform.computed_once import computed_once

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite import SqliteSaver

BUSY_SECONDS = 10.0  # seconds that a writer waits for another one
TABLE = "wakeloop_threads"
TABLE_DEFINITION = "wakeloop_threads (thread_id TEXT PRIMARY KEY, spec TEXT NOT NULL, request TEXT NOT NULL)"
SELECT_RECORDS = (
    "SELECT thread_id, spec, request FROM wakeloop_threads WHERE :only IS NULL OR thread_id = :only"
)
SELECT_CHECKPOINTED = """
    SELECT thread_id FROM checkpoints WHERE checkpoint_ns = '' AND (:only IS NULL OR thread_id = :only)
    GROUP BY thread_id ORDER BY MAX(checkpoint_id) DESC"""
UPSERT_RECORD = """INSERT INTO wakeloop_threads VALUES (?, ?, ?)
              ON CONFLICT (thread_id) DO UPDATE SET spec = excluded.spec"""
COLUMNS = {
    "checkpoints": {
        "thread_id",
        "checkpoint_ns",
        "checkpoint_id",
        "parent_checkpoint_id",
        "type",
        "checkpoint",
        "metadata",
    },
    "writes": {"thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value"},
    TABLE: {"thread_id", "spec", "request"},
}


@dataclass(frozen=True)
class DatabaseFile:
    """Where the database is: named by an option or variable, or the default one."""

    path: Path
    named: bool = False

    @classmethod
    def of(cls, option: Path | None) -> "DatabaseFile":
        """The file that was named, else the one in the user's data folder."""
        if option is not None:
            return cls(option.expanduser(), named=True)
        from platformdirs import user_data_path

        return cls(user_data_path("wakeloop", appauthor=False) / "threads.sqlite")

    def refuse(self, why: str) -> CommandError:
        """Say what is wrong with the place; whose fault it is decides the exit code."""
        hint = "name another file with --db" if self.named else "name a file with --db"
        code = USAGE if self.named else FAILED
        return CommandError(f"The database {str(self.path)!r} {why}: {hint}.", code)


@dataclass(frozen=True)
class ThreadRecord:
    """A thread that the database holds; `spec` is None for one that another program made."""

    id: str
    spec: AgentSpec | None
    request: str


@dataclass(frozen=True)
class Store:
    """An open database; without a connection it stands for one that does not exist yet."""

    database: DatabaseFile
    connection: sqlite3.Connection | None

    @computed_once
    def saver(self) -> "SqliteSaver | None":
        """The checkpoint saver on this connection."""
        if self.connection is None:
            return None
        from wakeloop.cli.sqlite_saver import CompactSaver
        from wakeloop.thread.strict_saver import strict_saver

        saver = strict_saver(CompactSaver, self.connection)
        saver.is_setup = True  # where it is opened to write; a copy to be read keeps its journal's mode
        return saver

    def close(self) -> None:
        """Close the database, but not under a statement of a run that is left behind."""
        if self.saver is not None and self.connection is not None:
            with self.saver.lock:
                self.connection.close()

    def find(self, thread: str) -> ThreadRecord | None:
        """Return a thread, or None."""
        return next(iter(self.threads(thread)), None)

    def threads(self, only: str | None = None) -> Sequence[ThreadRecord]:
        """Return the threads, those that changed last first."""
        if self.connection is None:
            return ()
        made = {key: more for key, *more in self.connection.execute(SELECT_RECORDS, {"only": only})}
        run = dict.fromkeys(key for (key,) in self.connection.execute(SELECT_CHECKPOINTED, {"only": only}))
        waiting = [key for key in made if key not in run]  # nothing of them was stored yet
        return [
            ThreadRecord(
                key, AgentSpec.from_json(made[key][0]) if key in made else None, made.get(key, ("", ""))[1]
            )
            for key in (*waiting, *run)
        ]

    def remember(self, thread: str, spec: AgentSpec, request: str) -> None:
        """Note how a thread's agent is made; its first request stays."""
        assert self.connection is not None  # noqa: S101 - a store that is written to is open
        with self.connection:
            self.connection.execute(UPSERT_RECORD, (thread, spec.to_json(), request))

    def forget(self, thread: str) -> None:
        """Take a thread away, with all that is stored of it."""
        self._each("DELETE FROM {} WHERE thread_id = ?", thread)

    def rename(self, thread: str, name: str) -> None:
        """Give a thread another id."""
        self._each("UPDATE {} SET thread_id = ? WHERE thread_id = ?", name, thread)

    def _each(self, statement: str, *values: str) -> None:
        assert self.connection is not None  # noqa: S101 - a store that is written to is open
        with self.connection:
            for table in COLUMNS:
                self.connection.execute(statement.format(table), values)

    # -- one process a thread --------------------------------------------------------------------------

    @contextmanager
    def hold(self, thread: str) -> Iterator[ThreadLock]:
        """Keep other processes from running or editing this thread; a process that dies lets go."""
        with open_lock_file(self.lock_file, "ab") as found:
            if found is not None and not found.acquire(thread):
                raise CommandError(
                    f"The thread {thread!r} is in the hands of another process: wait for it, or stop it."
                )
            try:
                yield ThreadLock(found, thread)
            finally:
                if found is not None:
                    found.release(thread)

    def is_held(self, thread: str) -> bool:
        """Whether another process has this thread now."""
        try:
            with open_lock_file(self.lock_file, "r+b") as found:
                return found is not None and found.is_locked_elsewhere(thread)
        except OSError:
            return False

    def is_running(self, thread: str) -> bool:
        """Whether another process runs this thread now: an idle chat holds it alone."""
        return self.is_held(RUNNING_PREFIX + thread)

    @property
    def lock_file(self) -> str:
        """The file beside the database that is locked, a byte for each thread."""
        return f"{self.database.path.resolve()}-locks"


# -- opening ---------------------------------------------------------------------------------------------


@contextmanager
def open_to_read(database: DatabaseFile) -> Iterator[Store]:
    """Open the database to read only; none is made where there is none."""
    if not database_exists(database):
        yield Store(database, None)
        return
    with translate_errors(database), closing(connect_to_read(database)) as connection:
        tables = check_tables(database, connection)
        if TABLE not in tables:  # a program of its own keeps threads there
            connection.execute(f"CREATE TEMP TABLE {TABLE_DEFINITION}")
        if "writes" in tables and "task_path" not in column_names(connection, "writes"):  # it is older
            connection.execute("CREATE TEMP VIEW writes AS SELECT *, '' AS task_path FROM main.writes")
        yield Store(database, connection if {"checkpoints", "writes"} <= tables else None)


@contextmanager
def open_to_write(database: DatabaseFile) -> Iterator[Store]:
    """Open the database to write; it is made where there is none, for its owner alone."""
    if not database_exists(database):
        create_database(database)
    with translate_errors(database), closing(connect(database, "rw")) as connection:
        check_tables(database, connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing, a power cut may
        connection.execute(f"CREATE TABLE IF NOT EXISTS {TABLE_DEFINITION}")
        from wakeloop.cli.sqlite_saver import CompactSaver, compact_writes_table
        from wakeloop.thread.strict_saver import strict_saver

        strict_saver(CompactSaver, connection).setup()
        compact_writes_table(connection)
        with closing(Store(database, connection)) as store:
            yield store


def database_exists(database: DatabaseFile) -> bool:
    """Whether there is a database; what is no file in its place is refused."""
    try:
        if database.path.is_dir():
            raise database.refuse("is a folder, not a file")
        if database.path.exists() and not database.path.is_file():  # opening a pipe would wait for ever
            raise database.refuse("is a device or a pipe, not a file")
        if database.path.exists() and not os.access(database.path, os.R_OK):  # SQLite does not say why
            raise PermissionError(EACCES, os.strerror(EACCES))
        return database.path.exists()
    except (OSError, ValueError) as error:
        raise database.refuse(f"cannot be opened ({getattr(error, 'strerror', None) or error})") from None


def create_database(database: DatabaseFile) -> None:
    """Make an empty file that only its owner can read; the default folder too."""
    try:
        if not database.named:
            database.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not database.path.parent.is_dir():
            raise usage_error(
                f"There is no folder {str(database.path.parent)!r} for the database: make it first."
            )
        os.close(os.open(database.path, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        raise CommandError(
            f"The database {str(database.path)!r} cannot be made ({error.strerror}): name another with --db."
        ) from None


def connect(database: DatabaseFile, mode: str) -> sqlite3.Connection:
    """Connect; the saver calls from threads of its own, under its own lock."""
    uri = f"{database.path.resolve().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, check_same_thread=False)


def connect_to_read(database: DatabaseFile) -> sqlite3.Connection:
    """Connect to read; on a full disk to the file alone, where all is in it: SQLite wants room beside."""
    connection = connect(database, "ro")
    try:
        connection.execute("SELECT 1 FROM sqlite_master")
    except sqlite3.Error as error:
        connection.close()
        log = Path(f"{database.path.resolve()}-wal")
        if not is_disk_full(error) or (log.exists() and log.stat().st_size):
            raise
        return connect(database, "ro&immutable=1")
    return connection


def check_tables(database: DatabaseFile, connection: sqlite3.Connection) -> set[str]:
    """Refuse a database of another program, or of another version; return the tables that are ours."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    names = {name for (name,) in rows if not name.startswith("sqlite_")}
    ours = names & set(COLUMNS)
    if names and not ours:
        raise database.refuse("belongs to another program")
    for name in ours:
        if not COLUMNS[name] <= column_names(connection, name):
            raise CommandError(
                f"The database {str(database.path)!r} is of another version ({name}): "
                "name a new file with --db."
            )
    return ours


def column_names(connection: sqlite3.Connection, table: str) -> set[str]:
    """Return the names of a table's columns."""
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


@contextmanager
def translate_errors(database: DatabaseFile) -> Iterator[None]:
    """Whatever SQLite says, as one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        said = str(error)
        if is_disk_full(error):
            raise CommandError(format_disk_full(f"that holds the database {str(database.path)!r}")) from error
        if "readonly" in said or "read-only" in said:
            said = "it is in a place that may only be read"
        raise CommandError(
            f"The database {str(database.path)!r} cannot be used: {said}. Name another file with --db."
        ) from error
