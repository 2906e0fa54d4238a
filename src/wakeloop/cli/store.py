"""Threads, their agent specs and their locks in SQLite."""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2s
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, BinaryIO

from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.failures import FAILED, USAGE, CommandError, format_disk_full, is_disk_full
from wakeloop.loop.inbox import name_thread
from wakeloop.platform.computed_once import computed_once
from wakeloop.platform.database_errors import classify_outage, describe_database_error

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.store.sqlite import SqliteStore


BUSY_SECONDS = 10.0  # for a writer to wait for another one
UNREADABLE = "\ufffd"  # what a byte becomes that is not UTF-8
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
STEERING_TABLE = "store"  # of LangGraph's store; it is there once a run had one
SELECT_ENTRIES = f"SELECT key FROM {STEERING_TABLE} WHERE prefix = ?"  # noqa: S608 - a constant
COLUMNS = {  # of our tables
    "checkpoints": "thread_id checkpoint_ns checkpoint_id parent_checkpoint_id type checkpoint metadata",
    "writes": "thread_id checkpoint_ns checkpoint_id task_id idx channel type value",
    TABLE: "thread_id spec request",
}


@dataclass(frozen=True)
class DatabaseFile:
    """The file of the database; `named` by an option or variable, or the default."""

    path: Path
    named: bool = False

    @classmethod
    def of(cls, option: Path | None) -> "DatabaseFile":
        """Return the named file, or the one in the user's data folder."""
        if option is not None:
            return cls(option.expanduser(), named=True)
        from platformdirs import user_data_path

        return cls(user_data_path("wakeloop", appauthor=False) / "threads.sqlite")

    def refuse(self, reason: str) -> CommandError:
        """Return an error about this file; a file that the user named is a usage error."""
        hint = "Name another file with --db" if self.named else "Name a file with --db"
        code = USAGE if self.named else FAILED
        return CommandError(f"The database {str(self.path)!r} {reason}. {hint}.", code)


@dataclass(frozen=True)
class ThreadRecord:
    """A thread in the database; `spec` is None if another program created it.

    `damaged` means that not even its id can be read; then `id` shows what is there.
    """

    id: str
    spec: AgentSpec | None
    request: str
    damaged: bool = False

    @classmethod
    def from_row(cls, key: Any, spec: Any = None, request: Any = "") -> "ThreadRecord":
        """Return the record of a row whose columns may hold anything."""
        damaged = not isinstance(key, str) or UNREADABLE in key
        return cls(
            ascii(key) if damaged else key,
            AgentSpec.from_json(spec) if isinstance(spec, str) else None,
            request if isinstance(request, str) else "",
            damaged,
        )


# -- file locks: which process holds a thread, and runs it -----------------------------------------------


RUNNING_PREFIX = "run "  # before a thread's name; no name contains a blank
MUTEX = threading.Lock()  # guards opening, closing and asking a file


@dataclass
class LockFile:
    """A file with one lockable byte per name.

    It is open only once in a process: closing any descriptor of it would release all of its locks.
    """

    file: BinaryIO
    users: int = 0
    owned: set[str] = field(default_factory=set)

    def acquire(self, name: str) -> bool:
        """Lock a name; return False if somebody else has it."""
        with MUTEX:
            if name in self.owned or not _lock_byte(self.file, name):
                return False
            self.owned.add(name)
            return True

    def release(self, name: str) -> None:
        """Unlock a name."""
        with MUTEX:
            self.owned.discard(name)
            _lock_byte(self.file, name, free=True)

    def is_locked_elsewhere(self, name: str) -> bool:
        """Whether another process has locked a name."""
        with MUTEX:
            if name in self.owned:
                return False
            free = _lock_byte(self.file, name)
            if free:
                _lock_byte(self.file, name, free=True)
            return not free


@dataclass(frozen=True)
class ThreadLock:
    """A thread that this process has locked."""

    locks: LockFile
    thread: str

    @contextmanager
    def mark_running(self) -> Iterator[None]:
        """Show other processes that the thread is running, not just held by an idle chat."""
        self.locks.acquire(RUNNING_PREFIX + self.thread)
        try:
            yield
        finally:
            self.locks.release(RUNNING_PREFIX + self.thread)


OPEN_FILES: dict[str, LockFile] = {}


@contextmanager
def open_lock_file(path: str, mode: str) -> Iterator[LockFile]:
    """Open a lock file, which its last user closes."""
    with MUTEX:
        if path not in OPEN_FILES:
            file = open(path, mode, opener=partial(os.open, mode=0o600))  # noqa: SIM115 - the last user closes it
            OPEN_FILES[path] = LockFile(file)  # type: ignore[arg-type]
        found = OPEN_FILES[path]
        found.users += 1
    try:
        yield found
    finally:
        with MUTEX:
            found.users -= 1
            if not found.users:
                OPEN_FILES.pop(path).file.close()


def _lock_byte(file: BinaryIO, name: str, *, free: bool = False) -> bool:
    """Lock or free the byte of a name; return False if another process has it."""
    byte = int.from_bytes(blake2s(name.encode("utf-8", "surrogatepass"), digest_size=7).digest(), "big")
    try:
        fcntl.lockf(file, fcntl.LOCK_UN if free else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True


@dataclass(frozen=True)
class Store:
    """An open database."""

    database: DatabaseFile
    connection: sqlite3.Connection
    entries: sqlite3.Connection | None = None  # of LangGraph's store, which has transactions of its own

    @computed_once
    def saver(self) -> "SqliteSaver":
        """The checkpoint saver on this connection."""
        from wakeloop.cli.stored_state import CompactSaver
        from wakeloop.thread.strict_saver import strict_saver

        saver = strict_saver(CompactSaver, self.connection)
        saver.is_setup = True  # `open_to_write` sets it up; reading must not change the journal mode
        return saver

    @computed_once
    def graph_store(self) -> "SqliteStore | None":
        """LangGraph's store in this file, through which a person steers a run."""
        if self.entries is None:
            return None
        from langgraph.store.sqlite import SqliteStore

        store = SqliteStore(self.entries)
        with suppress(sqlite3.IntegrityError):  # another process creates the tables at the same moment
            store.setup()
        return store

    def patient_storage(self, stopped: Event) -> dict[str, Any]:
        """Return checkpointer and store for a run, which wait while the database is away."""
        from wakeloop.thread.patient_saver import PatientSaver
        from wakeloop.thread.patient_store import PatientStore

        store = None if self.graph_store is None else PatientStore(self.graph_store, stopped)
        return {"checkpointer": PatientSaver(self.saver, stopped), "store": store}

    def count_waiting(self, thread: str, values: Mapping[str, Any]) -> int:
        """Count the entries that a person has sent to a thread, and that its `values` do not have yet."""
        if STEERING_TABLE not in table_names(self.connection):
            return 0
        from wakeloop.loop.ledger import read_notes

        taken = read_notes(values).get("steered", ())
        rows = self.connection.execute(SELECT_ENTRIES, (name_entries(thread),)).fetchall()
        return sum(key not in taken for (key,) in rows)

    def close(self) -> None:
        """Close the database, after the statement of an abandoned run that may be in progress."""
        if self.entries is not None:
            self.entries.close()
        with self.saver.lock:
            self.connection.close()

    def find(self, thread: str) -> ThreadRecord | None:
        """Return the thread with this id, or None."""
        return next(iter(self.threads(thread)), None)

    def threads(self, only: str | None = None) -> Sequence[ThreadRecord]:
        """Return all threads, the latest first, or `only` the one with this id."""
        rows = self.connection.execute(SELECT_RECORDS, {"only": only}).fetchall()
        records = {row[0]: ThreadRecord.from_row(*row) for row in rows}
        stored = dict.fromkeys(key for (key,) in self.connection.execute(SELECT_CHECKPOINTED, {"only": only}))
        new = [key for key in records if key not in stored]  # no step is stored yet, so they are the latest
        return [records.get(key) or ThreadRecord.from_row(key) for key in (*new, *stored)]

    def remember(self, thread: str, spec: AgentSpec, request: str) -> None:
        """Store the spec of a thread's agent; the first request of a thread stays."""
        with self.connection:
            self.connection.execute(UPSERT_RECORD, (thread, spec.to_json(), request))

    def forget(self, thread: str) -> None:
        """Delete a thread and everything stored about it."""
        self._each("DELETE FROM {} WHERE thread_id = ?", thread)

    def rename(self, thread: str, name: str) -> None:
        """Change the id of a thread."""
        self._each("UPDATE {} SET thread_id = ? WHERE thread_id = ?", name, thread)

    def _each(self, statement: str, *values: str) -> None:
        with self.connection:
            for table in COLUMNS:
                self.connection.execute(statement.format(table), values)
            if STEERING_TABLE in table_names(self.connection):
                own = statement.format(STEERING_TABLE).replace("thread_id", "prefix")
                self.connection.execute(own, [name_entries(value) for value in values])

    @contextmanager
    def hold(self, thread: str) -> Iterator[ThreadLock]:
        """Lock a thread against other processes; the lock ends with this process."""
        with open_lock_file(self.lock_file, "ab") as found:
            if not found.acquire(thread):
                raise CommandError(
                    f"Another process is using the thread {thread!r}. Wait for it, or stop it."
                )
            try:
                yield ThreadLock(found, thread)
            finally:
                found.release(thread)

    def is_held(self, thread: str) -> bool:
        """Whether another process has locked this thread."""
        try:
            with open_lock_file(self.lock_file, "r+b") as found:
                return found.is_locked_elsewhere(thread)
        except OSError:
            return False

    def is_running(self, thread: str) -> bool:
        """Whether another process is running this thread; an idle chat only locks it."""
        return self.is_held(RUNNING_PREFIX + thread)

    @property
    def lock_file(self) -> str:
        """The file next to the database in which a byte per thread is locked."""
        return f"{self.database.path.resolve()}-locks"


# -- opening ---------------------------------------------------------------------------------------------


@contextmanager
def open_to_read(database: DatabaseFile) -> Iterator[Store]:
    """Open the database read-only; one that does not exist is empty and is not created."""
    with translate_errors(database), closing(connect_to_read(database)) as connection:
        tables = check_tables(database, connection)
        for missing in COLUMNS.keys() - tables:  # such as ours, in the file of another LangGraph program
            connection.execute(f"CREATE TEMP TABLE {missing} ({', '.join(COLUMNS[missing].split())})")
        yield Store(database, connection)


@contextmanager
def open_to_write(database: DatabaseFile) -> Iterator[Store]:
    """Open the database to write; create it if needed, readable only by its owner."""
    if not database_exists(database):
        create_database(database)
    with translate_errors(database), closing(connect(database, "rw")) as connection:
        check_tables(database, connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing; a power cut may
        connection.execute(f"CREATE TABLE IF NOT EXISTS {TABLE_DEFINITION}")
        from wakeloop.cli.stored_state import CompactSaver, compact_writes_table
        from wakeloop.thread.strict_saver import strict_saver

        strict_saver(CompactSaver, connection).setup()
        compact_writes_table(connection)
        entries = connect(database, "rw", isolation_level=None)
        with closing(Store(database, connection, entries)) as store:
            yield store


def database_exists(database: DatabaseFile) -> bool:
    """Whether the database exists. Raises `CommandError` if it is not a file: opening a pipe would wait."""
    try:
        exists = database.path.exists()
        if exists and not database.path.is_file():
            raise database.refuse("is not a file")
    except (OSError, ValueError) as error:
        raise database.refuse(f"cannot be opened ({getattr(error, 'strerror', None) or error})") from None
    return exists


def create_database(database: DatabaseFile) -> None:
    """Create an empty file, and the default folder, readable only by their owner."""
    try:
        if not database.named:
            database.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(database.path, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        raise database.refuse(f"cannot be created ({error.strerror})") from None


def connect(database: DatabaseFile, mode: str, **more: Any) -> sqlite3.Connection:
    """Connect. The saver uses the connection from several threads, under its own lock."""
    uri = f"{database.path.resolve().as_uri()}?mode={mode}"
    connection: sqlite3.Connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_SECONDS, check_same_thread=False, **more
    )
    # One row that is not UTF-8 must not make a query over all threads fail.
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    return connection


def connect_to_read(database: DatabaseFile) -> sqlite3.Connection:
    """Connect read-only; on a full disk or in a read-only folder to the file alone, if its log is empty.

    SQLite makes files next to it even to read.
    """
    if not database_exists(database):
        return sqlite3.connect(":memory:", check_same_thread=False)
    connection = connect(database, "ro")
    try:
        connection.execute("SELECT 1 FROM sqlite_master")
    except sqlite3.Error as error:
        connection.close()
        log = Path(f"{database.path.resolve()}-wal")
        alone = classify_outage(error) in ("full", "gone", "read-only")
        if not alone or (log.exists() and log.stat().st_size):
            raise
        return connect(database, "ro&immutable=1")
    return connection


def check_tables(database: DatabaseFile, connection: sqlite3.Connection) -> set[str]:
    """Return which of our tables exist; refuse the file of another program or version."""
    names = table_names(connection)
    ours = names & set(COLUMNS)
    if names and not ours:
        raise database.refuse("belongs to another program")
    return ours


def table_names(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the tables, without those of SQLite itself."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {name for (name,) in rows if not name.startswith("sqlite_")}


def name_entries(thread: str) -> str:
    """Return the name under which LangGraph's store keeps the entries of a thread."""
    return ".".join(name_thread(thread))


@contextmanager
def translate_errors(database: DatabaseFile) -> Iterator[None]:
    """Turn SQLite errors into `CommandError`s of one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        if is_disk_full(error):
            raise CommandError(format_disk_full(f"that holds the database {str(database.path)!r}")) from error
        raise CommandError(
            f"The database {str(database.path)!r} cannot be used: {describe_database_error(error)}. "
            "Name another file with --db."
        ) from error
