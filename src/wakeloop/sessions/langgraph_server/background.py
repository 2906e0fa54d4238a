"""Sees to threads in the background, each by one at a time."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import count
from threading import Event, Lock

import httpx
from langgraph_sdk.errors import APIConnectionError, InternalServerError

from wakeloop.sessions.host import PAUSES

AWAY = (httpx.TransportError, APIConnectionError, InternalServerError)


class Background:
    """Calls `run` for a thread that was rung for, until it returns False; again while the server is away."""

    def __init__(self, run: Callable[[str], bool]) -> None:
        self.run = run
        self.pool = ThreadPoolExecutor(8, thread_name_prefix="wakeloop-runs")
        self.at_work: dict[str, Future[None]] = {}
        self.rung: set[str] = set()  # at work, and rung for meanwhile
        self.guard, self.draining = Lock(), Event()

    def ring(self, thread: str) -> None:
        """See to a thread; where that is being done, once more afterwards."""
        with self.guard:
            if self.draining.is_set():
                return
            if thread in self.at_work:
                self.rung.add(thread)
            else:
                self.at_work[thread] = self.pool.submit(self._see_to, thread)

    def drain(self, timeout: float | None) -> bool:
        """Begin nothing any more and wait for what was begun; False when `timeout` seconds have passed."""
        self.draining.set()
        with self.guard:
            left = list(self.at_work.values())
        return not wait(left, timeout).not_done

    def _see_to(self, thread: str) -> None:
        try:
            while not self.draining.is_set() and (self._tried(thread) or self._rung_again(thread)):
                pass
        finally:
            with self.guard:
                del self.at_work[thread]
                again = thread in self.rung
                self.rung.discard(thread)
            if again:  # since the last look, or the run raised
                self.ring(thread)

    def _tried(self, thread: str) -> bool:
        for tries in count():
            try:
                return self.run(thread)
            except AWAY:
                if self.draining.wait(PAUSES[min(tries, len(PAUSES) - 1)]):
                    break
        return False

    def _rung_again(self, thread: str) -> bool:
        with self.guard:
            again = thread in self.rung
            self.rung.discard(thread)
            return again
