"""Where sessions are stored: Postgres, or two SQLite files."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from sqlalchemy.exc import DatabaseError

from wakeloop.cli.failures import CommandError, format_database_error, usage_error
from wakeloop.cli.offline_graph import build_offline_graph
from wakeloop.cli.store import (
    DatabaseFile,
    Store,
    create_database,
    database_exists,
    open_to_read,
    open_to_write,
)
from wakeloop.cli.thread_lookup import match_prefix, may_be_abbreviated, resolve_id
from wakeloop.config.levels import config_folder, list_names
from wakeloop.errors import SessionError
from wakeloop.sessions.dbos import SessionClient
from wakeloop.sessions.dbos.database import is_postgres
from wakeloop.sessions.host import DEFAULT_AGENT

POLL_SECONDS = 0.2  # between two looks at a session


@dataclass(frozen=True)
class SessionStorage:
    """Where threads and events are stored: one Postgres database, or two SQLite files side by side."""

    db: str | None

    def __post_init__(self) -> None:
        if "://" not in (self.db or ""):
            return
        if self.on_postgres:
            from wakeloop.cli.sessions.postgres import is_valid_address  # SQLite works without the driver

            if is_valid_address(str(self.db)):
                return
        raise usage_error(
            "The database must be a file name or an address postgresql://…, in which a password has %40 for "
            "@ and %2F for /."
        )

    @property
    def on_postgres(self) -> bool:
        """Whether the database is a server."""
        return is_postgres(self.db or "")

    @property
    def database(self) -> DatabaseFile:
        """The SQLite file of the threads."""
        return DatabaseFile.of(None if self.db is None else Path(self.db))

    @property
    def url(self) -> str:
        """The address of the events."""
        return str(self.db) if self.on_postgres else f"sqlite:///{self.sibling('sessions')}"

    def sibling(self, suffix: str) -> Path:
        """Return a file next to that of the threads: two copies of SQLite must not share a file."""
        path = self.database.path.resolve()
        return path.with_name(f"{path.name}-{suffix}")

    @contextmanager
    def open_saver(self) -> Iterator[tuple[BaseCheckpointSaver[Any], Store | None]]:
        """Open the checkpoints for writing; on SQLite, yield the store too."""
        if self.on_postgres:
            from wakeloop.cli.sessions.postgres import open_postgres_saver  # SQLite works without the driver

            with open_postgres_saver(self.url) as saver:
                yield saver, None
            return
        with open_to_write(self.database) as store:
            events = DatabaseFile(self.sibling("sessions"), named=True)
            if not database_exists(events):
                create_database(events)
            try:
                yield store.saver, store
            except DatabaseError as error:
                why = format_database_error(error)
                raise CommandError(f"The database {str(events.path)!r} cannot be used: {why}.") from error

    def read_trusted(self) -> dict[str, dict[str, list[str]]]:
        """Return for each agent the hashes of its files at the last serve."""
        if not self.on_postgres and not self.sibling("sessions").is_file():
            return {}
        with self.open_client() as client:
            return client.mailbox.read_trusted()

    @contextmanager
    def open_client(self) -> Iterator[SessionClient]:
        """Open a client that sends events; it knows the agents by name and can read but not run them."""
        with self.open_saver() as (saver, _):
            graph = build_offline_graph(saver)
            agents = (DEFAULT_AGENT, *list_names(config_folder(), "agents"))
            client = SessionClient(self.url, dict.fromkeys(agents, graph))
            try:
                yield client
            finally:
                client.close()

    def resolve_session_id(self, client: SessionClient, typed: str, *, old: bool = False) -> str:
        """Return the full id of a session, which may be a new one unless it must be `old`."""
        if not old and not may_be_abbreviated(typed):  # no need to read the others
            return typed
        known = [thread for thread, *_ in client.mailbox.list_sessions()]
        if not self.on_postgres:
            with open_to_read(self.database) as store:
                stored = [record.id for record in store.threads()]
            known = list(dict.fromkeys([*known, *stored]))
        if old and typed not in known and (found := match_prefix(typed, known, "sessions")):
            return found
        return resolve_id(typed, known, "sessions")


@contextmanager
def session_errors_as_usage() -> Iterator[None]:
    """Turn a refusal by the session client into a usage error: what it refuses was typed."""
    try:
        yield
    except SessionError as refused:
        raise usage_error(str(refused)) from refused
