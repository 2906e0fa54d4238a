"""Sees to threads in the background, each by one at a time."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import count
from threading import Event, Lock

import httpx
from langgraph_sdk.errors import APIConnectionError, InternalServerError

from wakeloop.sessions.host import RETRY_PAUSES, describe_error

OUTAGE_ERRORS = (httpx.TransportError, APIConnectionError)


class BackgroundRunner:
    """Calls `run` for a thread that was rung for, until it returns False; again while the server is away.

    What it raises else, and a server that fails again and again, is given up by `give_up`; where not even
    that can be noted on the server, the words stand in `errors`.
    """

    def __init__(self, run: Callable[[str], bool], give_up: Callable[[str, Exception], None]) -> None:
        self.run, self.give_up = run, give_up
        self.errors: dict[str, str] = {}
        self.pool = ThreadPoolExecutor(8, thread_name_prefix="wakeloop-runs")
        self.at_work: dict[str, Future[None]] = {}
        self.requested: set[str] = set()  # at work, and rung for meanwhile
        self.guard, self.draining = Lock(), Event()

    def request_run(self, thread: str) -> None:
        """See to a thread; where that is being done, once more afterwards."""
        with self.guard:
            if self.draining.is_set():
                return
            if thread in self.at_work:
                self.requested.add(thread)
            else:
                self.at_work[thread] = self.pool.submit(self._process, thread)

    def drain(self, timeout: float | None) -> bool:
        """Begin nothing any more and wait for what was begun; False when `timeout` seconds have passed."""
        self.draining.set()
        with self.guard:
            left = list(self.at_work.values())
        return not wait(left, timeout).not_done

    def _process(self, thread: str) -> None:
        try:
            while not self.draining.is_set() and (
                self._run_with_retries(thread) or self._take_request(thread)
            ):
                pass
        finally:
            with self.guard:
                del self.at_work[thread]
                again = thread in self.requested
                self.requested.discard(thread)
            if again:  # since the last look, or the run raised
                self.request_run(thread)

    def _run_with_retries(self, thread: str) -> bool:
        for tries in count():
            try:
                again = self.run(thread)
            except Exception as error:  # noqa: BLE001 - it reaches whoever asks how the session stands
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
        with suppress(Exception):  # the words are kept here
            self.give_up(thread, error)
            del self.errors[thread]

    def _take_request(self, thread: str) -> bool:
        with self.guard:
            again = thread in self.requested
            self.requested.discard(thread)
            return again
