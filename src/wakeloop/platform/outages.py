"""Waits for a database that is away, and calls again."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event
from typing import TypeVar

from wakeloop.platform.database_errors import OUTAGES, classify_outage

LOG = logging.getLogger("wakeloop")
PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)  # seconds between attempts; the last one repeats
PATIENCE = 300.0  # seconds from the first failed attempt
T = TypeVar("T")


@dataclass
class Patience:
    """How long the calls to one database wait for it.

    Attributes:
        stopped: Ends every wait when it is set.
        bounded: Whether a wait ends by itself, five minutes after the first attempt that failed. After that,
            no call waits until one succeeds.
        away_since: When the database was first found away since the last call that succeeded.
        logged: Whether that was logged.
    """

    stopped: Event = field(default_factory=Event)
    bounded: bool = True
    away_since: float | None = None
    logged: bool = False

    def may_try_again(self, error: Exception, failures: Sequence[float]) -> bool:
        """Pause after an outage and return True; return False for another error, or if the time is up.

        `failures` are the times at which this call failed.
        """
        outage, now = classify_outage(error), failures[-1]
        if outage is None:
            return False
        self.away_since = self.away_since or now
        if self.bounded and now - min(self.away_since, failures[0]) >= PATIENCE:
            return False
        if len(failures) > 1 and not self.logged:  # not for a moment
            self.logged = True
            LOG.warning("The database cannot be used: %s. Trying again.", OUTAGES[outage])
        return not self.stopped.wait(PAUSES[min(len(failures), len(PAUSES)) - 1])

    def note_success(self) -> None:
        """Begin anew after a call that succeeded."""
        self.away_since, self.logged = None, False


def wait_out(call: Callable[[], T], patience: Patience, repair: Callable[[], object] = lambda: None) -> T:
    """Call, and call again while the database is away. Raises the last error if the wait ends first.

    The call must be one transaction that may be repeated: it may have been committed although it failed.
    `repair` is called after each pause; its own errors do not count, since the database is still away.
    """
    failures = list[float]()
    while True:
        try:
            result = call()
        except Exception as error:
            failures.append(time.monotonic())
            if not patience.may_try_again(error, failures):
                raise
            with suppress(Exception):
                repair()
        else:
            patience.note_success()
            return result


async def await_out(
    call: Callable[[], Awaitable[T]], patience: Patience, repair: Callable[[], object] = lambda: None
) -> T:
    """Await a call, and again while the database is away."""
    failures = list[float]()
    while True:
        try:
            result = await call()
        except Exception as error:
            failures.append(time.monotonic())
            if not await asyncio.to_thread(patience.may_try_again, error, failures):
                raise
            with suppress(Exception):
                await asyncio.to_thread(repair)
        else:
            patience.note_success()
            return result
