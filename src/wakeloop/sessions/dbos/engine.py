"""Makes the engine and its clients: their rows are JSON."""

import logging
import sys
from typing import Any, NoReturn

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, Serializer

from wakeloop.errors import SessionError
from wakeloop.sessions.dbos.database import is_postgres

APP_NAME = "wakeloop"
WORKFLOW_VERSION = "1"  # of the workflows: a worker of another release takes over what this one left
PICKLE_SERIALIZER = "DefaultSerializer"  # the engine's own reader of pickles
CONSOLE_HANDLER = "__dbos_console_log_handler__"


def make_engine(url: str, engine: sa.Engine, worker: str) -> DBOS:
    """Make the engine of this process; it is not launched."""
    config: DBOSConfig = {
        "name": APP_NAME,
        "system_database_url": url,
        "system_database_engine": None if is_postgres(url) else engine,
        "dbos_system_schema": APP_NAME,
        "executor_id": worker,
        "application_version": WORKFLOW_VERSION,
        "log_level": "ERROR",
        "console_log_level": "ERROR",
        "serializer": refuse_pickles(),
    }
    refresh_console()
    return DBOS(config=config)


def refresh_console() -> None:
    """Let the engine find its console again: it keeps the stderr of its first start, which may be closed."""
    for handler in logging.getLogger("dbos").handlers:
        if isinstance(handler, logging.StreamHandler) and handler.name == CONSOLE_HANDLER:
            handler.stream = sys.stderr


def make_client(engine: sa.Engine) -> DBOSClient:
    """Make a way to the engine's tables."""
    return DBOSClient(
        system_database_engine=engine,
        dbos_system_schema=APP_NAME,
        application_name=APP_NAME,
        retry_connection_errors=False,
        serializer=refuse_pickles(),
    )


def refuse_pickles() -> Serializer:
    """Return the serializer of all rows, and let none be read as a pickle.

    A row names its own serializer, and the engine takes a pickle's whatever it was configured with. So that
    one refuses to read, in the whole process. The engine ends such a row with an error.
    """
    pickles = [kind for kind in Serializer.__subclasses__() if kind.__name__ == PICKLE_SERIALIZER]
    if not pickles:
        raise SessionError("This release of dbos keeps its rows in another way: install dbos>=3.4,<4.")
    for kind in pickles:
        setattr(kind, "deserialize", refuse_pickle)  # noqa: B010 - a method of another package's class
    return DBOSPortableJSONSerializer()


def refuse_pickle(*_: Any) -> NoReturn:
    """Read no pickle."""
    raise SessionError("A row of the engine is a pickle, which would run code: it is not read.")
