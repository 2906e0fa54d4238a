"""The DBOS engine, its workflows and its clients."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NoReturn

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, Serializer

from wakeloop.errors import SessionError
from wakeloop.sessions.dbos.database import is_postgres

APP_NAME = "wakeloop"
RUN_WORKFLOW, RUN_QUEUE = "run", "wakeloop-runs"
TIMER_WORKFLOW, TIMER_QUEUE = "timer", "wakeloop-timers"
TIMER_POLLING = 1.0  # seconds; the engine puts timers that are due into their queue no more often
WORKFLOW_VERSION = "1"  # of the workflows: a worker of another version of this package may take over
PICKLE_SERIALIZER = "DefaultSerializer"  # the class of DBOS that reads pickles


def launch_engine(
    url: str,
    engine: sa.Engine,
    worker: str,
    workflows: Mapping[str, Callable[..., None]],
    at_work: list[str],
    *,
    concurrency: int,
    polling: float,
) -> None:
    """Start the engine of this process with its workflows, by name, and its queues.

    `at_work` holds the ids of the workflows that are running in this process.
    """
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
    DBOS(config=config)
    for name, work in workflows.items():
        DBOS.workflow(name=name, max_recovery_attempts=None)(track(work, at_work))
    DBOS.launch()
    update: Any = {"on_conflict": "always_update"}
    DBOS.register_queue(
        RUN_QUEUE,
        partition_concurrency=1,
        worker_concurrency=concurrency,
        polling_interval_sec=polling,
        **update,
    )
    DBOS.register_queue(TIMER_QUEUE, polling_interval_sec=max(polling, TIMER_POLLING), **update)


def track(work: Callable[..., None], at_work: list[str]) -> Callable[..., None]:
    """Return a workflow that keeps its id in `at_work` while it runs."""

    def workflow(*given: str) -> None:
        key = str(DBOS.workflow_id)
        at_work.append(key)
        try:
            work(*given)
        finally:
            at_work.remove(key)

    return workflow


stop_engine = partial(DBOS.destroy, destroy_registry=True)


def call_in_thread(call: Callable[[], None]) -> None:
    """Call in a thread without an event loop. The engine refuses to start in one, such as a notebook's."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(call).result()


def make_client(engine: sa.Engine) -> DBOSClient:
    """Create a client of the engine's tables."""
    return DBOSClient(
        system_database_engine=engine,
        dbos_system_schema=APP_NAME,
        application_name=APP_NAME,
        retry_connection_errors=False,
        serializer=refuse_pickles(),
    )


def refuse_pickles() -> Serializer:
    """Return the serializer of all rows, and disable the reading of pickles in this process.

    A row names its own serializer, and DBOS would unpickle a row that asks for it, whatever serializer it was
    configured with. Whoever can write to the database could then run code. DBOS ends such a row with an
    error.
    """
    pickles = [kind for kind in Serializer.__subclasses__() if kind.__name__ == PICKLE_SERIALIZER]
    if not pickles:
        raise SessionError("This version of dbos stores its rows differently. Install dbos>=3.4,<4.")
    for kind in pickles:
        setattr(kind, "deserialize", refuse_pickle)  # noqa: B010 - a method of another package's class
    return DBOSPortableJSONSerializer()


def refuse_pickle(*_: Any) -> NoReturn:
    """Refuse to read a pickle."""
    raise SessionError("Refused to unpickle a DBOS row: unpickling runs code.")
