"""The engine in this process: its workflows, its queues."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import sqlalchemy as sa
from dbos import DBOS, DBOSConfig

from wakeloop.sessions.dbos.database import on_postgres
from wakeloop.sessions.dbos.queues import NAME, QUEUE, TIMER, TIMERS, TURN

VERSION = "1"  # of the workflows below: a worker of another release takes over what this one left


def launch(
    url: str,
    engine: sa.Engine,
    worker: str,
    *,
    run: Callable[[str], None],
    fire: Callable[[str, str], None],
    concurrency: int,
    polling: float,
) -> None:
    """Start the engine: `run` a thread for which was rung, `fire` a schedule that is due."""
    config: DBOSConfig = {
        "name": NAME,
        "system_database_url": url,
        "system_database_engine": None if on_postgres(url) else engine,
        "dbos_system_schema": NAME,
        "executor_id": worker,
        "application_version": VERSION,
        "log_level": "ERROR",
        "console_log_level": "ERROR",
    }
    DBOS(config=config)

    @DBOS.workflow(name=TURN, max_recovery_attempts=None)
    def turn(thread: str) -> None:
        run(thread)

    @DBOS.workflow(name=TIMER, max_recovery_attempts=None)
    def timer(schedule: str, due: str) -> None:
        fire(schedule, due)

    DBOS.launch()
    DBOS.register_queue(
        QUEUE,
        partition_concurrency=1,
        worker_concurrency=concurrency,
        polling_interval_sec=polling,
        on_conflict="always_update",
    )
    DBOS.register_queue(TIMERS, polling_interval_sec=polling, on_conflict="always_update")


stop = partial(DBOS.destroy, destroy_registry=True)


def apart(call: Callable[[], None]) -> None:
    """Call in a thread without an event loop: the engine refuses to start in one, as in a notebook."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(call).result()
