"""Makes the engine and its clients: their rows are JSON."""

import logging
from typing import Any, NoReturn

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, Serializer

from wakeloop.errors import SessionError
from wakeloop.sessions.dbos.database import on_postgres

NAME = "wakeloop"
VERSION = "1"  # of the workflows: a worker of another release takes over what this one left
PICKLES = "DefaultSerializer"  # the engine's own reader of pickles
CONSOLE = "__dbos_console_log_handler__"


def engine_for(url: str, engine: sa.Engine, worker: str) -> DBOS:
    """Make the engine of this process; it is not launched."""
    config: DBOSConfig = {
        "name": NAME,
        "system_database_url": url,
        "system_database_engine": None if on_postgres(url) else engine,
        "dbos_system_schema": NAME,
        "executor_id": worker,
        "application_version": VERSION,
        "log_level": "ERROR",
        "console_log_level": "ERROR",
        "serializer": json_alone(),
    }
    speak_anew()
    return DBOS(config=config)


def speak_anew() -> None:
    """Let the engine find its console again: it keeps the stderr of its first start, which may be closed."""
    log = logging.getLogger("dbos")
    for handler in [each for each in log.handlers if each.name == CONSOLE]:
        log.removeHandler(handler)


def client_on(engine: sa.Engine) -> DBOSClient:
    """Make a way to the engine's tables."""
    return DBOSClient(
        system_database_engine=engine,
        dbos_system_schema=NAME,
        application_name=NAME,
        retry_connection_errors=False,
        serializer=json_alone(),
    )


def json_alone() -> Serializer:
    """Return the serializer of all rows, and let none be read as a pickle.

    A row names its own serializer, and the engine takes a pickle's whatever it was configured with. So that
    one refuses to read, in the whole process. The engine ends such a row with an error.
    """
    pickles = [kind for kind in Serializer.__subclasses__() if kind.__name__ == PICKLES]
    if not pickles:
        raise SessionError("This release of dbos keeps its rows in another way: install dbos>=3.4,<4.")
    for kind in pickles:
        setattr(kind, "deserialize", refused)  # noqa: B010 - a method of another package's class
    return DBOSPortableJSONSerializer()


def refused(*_: Any) -> NoReturn:
    """Read no pickle."""
    raise SessionError("A row of the engine is a pickle, which would run code: it is not read.")
