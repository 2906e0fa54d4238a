"""Runs threads in the background, each once at a time."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import count
from threading import Event, Lock, Timer

import httpx
from langgraph_sdk.errors import APIConnectionError, InternalServerError

from wakeloop.loop.waits import CLOCK_MARGIN
from wakeloop.sessions.host import RETRY_PAUSES, describe_error

OUTAGE_ERRORS = (httpx.TransportError, APIConnectionError)


class BackgroundRunner:
    """Calls `run` for each requested thread until it returns False, and repeats it while the server is away.

    After any other error, or if the server fails again and again, it calls `give_up`. If even that fails, the
    error's words are in `errors`.
    """

    def __init__(self, run: Callable[[str], bool], give_up: Callable[[str, Exception], None]) -> None:
        self.run, self.give_up = run, give_up
        self.errors: dict[str, str] = {}
        self.pool = ThreadPoolExecutor(8, thread_name_prefix="wakeloop-runs")
        self.at_work: dict[str, Future[None]] = {}
        self.timers: dict[str, Timer] = {}
        self.requested: set[str] = set()  # threads at work that were requested again
        self.guard, self.draining = Lock(), Event()

    def request_run(self, thread: str) -> None:
        """Run a thread in the background; if it is already running, once more afterwards."""
        with self.guard:
            if self.draining.is_set():
                return
            if thread in self.at_work:
                self.requested.add(thread)
            else:
                self.at_work[thread] = self.pool.submit(self._process, thread)

    def run_later(self, thread: str, seconds: float) -> None:
        """Run a thread after so many seconds; an earlier time that was set for it is forgotten."""
        timer = Timer(seconds + CLOCK_MARGIN, self.request_run, (thread,))
        timer.daemon = True
        with self.guard:
            before, self.timers[thread] = self.timers.get(thread), timer
        if before is not None:
            before.cancel()
        timer.start()

    def drain(self, timeout: float | None) -> bool:
        """Start nothing more and wait for the current runs. Return False after `timeout` seconds."""
        self.draining.set()
        with self.guard:
            for timer in self.timers.values():
                timer.cancel()
            left = list(self.at_work.values())
        return not wait(left, timeout).not_done

    def _process(self, thread: str) -> None:
        try:
            again = True
            while again and not self.draining.is_set():
                again = self._run_with_retries(thread) or self._take_request(thread)
        finally:
            with self.guard:
                del self.at_work[thread]
                again = thread in self.requested
                self.requested.discard(thread)
            if again:  # requested since the last check, or the run raised
                self.request_run(thread)

    def _run_with_retries(self, thread: str) -> bool:
        for tries in count():
            try:
                again = self.run(thread)
            except Exception as error:  # noqa: BLE001 - the session's status shows it
                self.errors[thread] = describe_error(error)
                failing = isinstance(error, InternalServerError) and tries < len(RETRY_PAUSES)
                if not (isinstance(error, OUTAGE_ERRORS) or failing):
                    self._give_up(thread, error)
                    return False
                if self.draining.wait(RETRY_PAUSES[min(tries, len(RETRY_PAUSES) - 1)]):
                    return False
            else:
                self.errors.pop(thread, None)
                return again
        return False

    def _give_up(self, thread: str, error: Exception) -> None:
        with suppress(Exception):  # then `errors` keeps the words
            self.give_up(thread, error)
            del self.errors[thread]

    def _take_request(self, thread: str) -> bool:
        with self.guard:
            again = thread in self.requested
            self.requested.discard(thread)
            return again
