"""Runs an agent with a time limit on its requests."""

from collections.abc import Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from wakeloop.bench.meter import OutageError, RequestMeter
from wakeloop.text.characters import pluralize

TIMEOUT = 180.0  # seconds that a request may take, including its client's retries
THREAD_NAME = "wakeloop-bench-agent"
TICK = 0.2  # seconds between two checks


def run_with_timeout(run: Callable[[], Any], meter: RequestMeter, timeout: float) -> Any:
    """Return the result of an agent. Raises its errors, and `OutageError` if the model does not answer.

    The agent runs in a thread. After an outage the thread is abandoned, because it may wait for the server
    forever; the meter refuses replies that come too late. Ctrl-C works at any time.
    """
    heard: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def work() -> None:
        try:
            heard.put((run(), None))
        except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
            heard.put((None, error))

    Thread(target=copy_context().run, args=(work,), name=THREAD_NAME, daemon=True).start()
    while True:
        try:
            ending, error = heard.get(timeout=TICK)
        except Empty:
            if meter.waiting <= timeout:
                continue
            meter.given_up = True
            raise OutageError(
                f"The model did not answer within {pluralize(round(timeout), 'second')}; "
                "--timeout sets how long to wait for a request."
            ) from None
        except BaseException:
            meter.given_up = True
            raise
        if error := error or meter.raised:
            raise error
        return ending
