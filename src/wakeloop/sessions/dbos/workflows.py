"""Launches the DBOS engine with its workflows and queues."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import sqlalchemy as sa
from dbos import DBOS

from wakeloop.sessions.dbos.engine import make_engine
from wakeloop.sessions.dbos.workflow_queues import RUN_QUEUE, RUN_WORKFLOW, TIMER_QUEUE, TIMER_WORKFLOW

TIMER_POLLING = 1.0  # seconds; the engine puts timers that are due into their queue no more often


def launch_workflows(
    url: str,
    engine: sa.Engine,
    worker: str,
    *,
    run: Callable[[str], None],
    fire: Callable[[str, str], None],
    at_work: list[str],
    concurrency: int,
    polling: float,
) -> None:
    """Start the engine. It calls `run` for a thread with a queued run, and `fire` for a schedule at its time.

    `at_work` holds the ids of the workflows that are running in this process.
    """
    make_engine(url, engine, worker)

    @DBOS.workflow(name=RUN_WORKFLOW, max_recovery_attempts=None)
    def run_thread(thread: str) -> None:
        with track_workflow(at_work):
            run(thread)

    @DBOS.workflow(name=TIMER_WORKFLOW, max_recovery_attempts=None)
    def timer(schedule: str, due: str) -> None:
        with track_workflow(at_work):
            fire(schedule, due)

    DBOS.launch()
    DBOS.register_queue(
        RUN_QUEUE,
        partition_concurrency=1,
        worker_concurrency=concurrency,
        polling_interval_sec=polling,
        on_conflict="always_update",
    )
    DBOS.register_queue(
        TIMER_QUEUE, polling_interval_sec=max(polling, TIMER_POLLING), on_conflict="always_update"
    )


@contextmanager
def track_workflow(at_work: list[str]) -> Iterator[None]:
    """Keep this workflow's id in `at_work` while it runs."""
    key = str(DBOS.workflow_id)
    at_work.append(key)
    try:
        yield
    finally:
        at_work.remove(key)


stop_engine = partial(DBOS.destroy, destroy_registry=True)


def call_in_thread(call: Callable[[], None]) -> None:
    """Call in a thread without an event loop. The engine refuses to start in one, such as a notebook's."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(call).result()
