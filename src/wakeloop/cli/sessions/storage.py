"""Where sessions are kept: a Postgres database, or two files."""

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

POLL_SECONDS = 0.2  # seconds between two looks at a session that is waited for


@dataclass(frozen=True)
class SessionStorage:
    """Where threads and events are kept: one Postgres database, or two SQLite files side by side."""

    db: str | None

    def __post_init__(self) -> None:
        if "://" not in (self.db or ""):
            return
        if self.on_postgres:
            from wakeloop.cli.sessions.postgres import is_valid_address  # SQLite does without its driver

            if is_valid_address(str(self.db)):
                return
        raise usage_error(
            "The address of the database cannot be read: write the name of a file or a postgresql://…, "
            "with %40 and %2F for @ and / in a password."
        )

    @property
    def on_postgres(self) -> bool:
        """Whether it is a server's address."""
        return is_postgres(self.db or "")

    @property
    def database(self) -> DatabaseFile:
        """The SQLite file of the threads."""
        return DatabaseFile.of(None if self.db is None else Path(self.db))

    @property
    def url(self) -> str:
        """Where the events are."""
        return str(self.db) if self.on_postgres else f"sqlite:///{self.beside('sessions')}"

    def beside(self, what: str) -> Path:
        """A file beside that of the threads: two copies of SQLite must not meet in one file."""
        path = self.database.path.resolve()
        return path.with_name(f"{path.name}-{what}")

    @contextmanager
    def open_saver(self) -> Iterator[tuple[BaseCheckpointSaver[Any], Store | None]]:
        """Open the checkpoints to write."""
        if self.on_postgres:
            from wakeloop.cli.sessions.postgres import open_postgres_saver  # SQLite does without its driver

            with open_postgres_saver(self.url) as saver:
                yield saver, None
            return
        with open_to_write(self.database) as store:
            events = DatabaseFile(self.beside("sessions"), named=True)
            if not database_exists(events):
                create_database(events)
            assert store.saver is not None  # noqa: S101 - it is open
            try:
                yield store.saver, store
            except DatabaseError as error:
                raise CommandError(
                    f"The database {str(events.path)!r} cannot be used: {format_database_error(error)}."
                ) from error

    @contextmanager
    def open_post(self) -> Iterator[SessionClient]:
        """Open the way in for events; agents are known by name, and can be read but not run."""
        with self.open_saver() as (saver, _):
            graph = build_offline_graph(saver)
            post = SessionClient(
                self.url, dict.fromkeys((DEFAULT_AGENT, *list_names(config_folder(), "agents")), graph)
            )
            try:
                yield post
            finally:
                post.close()

    def resolve_session_id(self, post: SessionClient, typed: str, *, old: bool = False) -> str:
        """The id of a session, which may be cut short; a new one's, too, unless it is to be `old`."""
        if not old and not may_be_abbreviated(typed):  # whatever there is
            return typed
        known = [thread for thread, *_ in post.mailbox.list_sessions()]
        if not self.on_postgres:
            with open_to_read(self.database) as store:
                there = {*known}
                known += [one.id for one in store.threads() if one.id not in there]
        if old and typed not in known and (found := match_prefix(typed, known, "sessions")):
            return found
        return resolve_id(typed, known, "sessions")


@contextmanager
def session_errors_as_usage() -> Iterator[None]:
    """What the way in refuses was typed wrong."""
    try:
        yield
    except SessionError as refused:
        raise usage_error(str(refused)) from refused
