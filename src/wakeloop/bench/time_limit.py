"""Waits for an agent, and for none of its requests for ever."""

from collections.abc import Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from wakeloop.bench.meter import OutageError, RequestMeter
from wakeloop.text.characters import pluralize

TIMEOUT = 180.0  # seconds that a request may take, with what its client tries again
THREAD_NAME = "wakeloop-bench-agent"  # the name of its thread
TICK = 0.2  # seconds between two looks


def run_with_timeout(run: Callable[[], Any], meter: RequestMeter, timeout: float) -> Any:
    """Return what an agent comes to. Raises what it raises, and `OutageError` where the model is silent.

    It works in a thread that is left behind then: it may wait for a server for ever, and where a reply comes
    after all the meter refuses it. Ctrl-C is heard here, whatever the agent waits for.
    """
    heard: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def work() -> None:
        try:
            heard.put((run(), None))
        except BaseException as error:  # noqa: BLE001 - raised by whoever waits
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
        if error is not None:
            raise error
        return ending
