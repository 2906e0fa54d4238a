"""Stop all workers of a database, losing nothing."""

import time

from wakeloop.cli.failures import FAILED, SETTLED
from wakeloop.cli.sessions.storage import POLL_SECONDS, SessionStorage


def drain_workers(storage: SessionStorage, timeout: float) -> tuple[list[str], int]:
    """Ask all workers to stop and wait for them; return lines and the exit code."""
    with storage.open_client() as client:
        before = client.mailbox.list_workers()
        client.mailbox.request_drain()
        deadline = time.monotonic() + timeout
        while (left := client.mailbox.list_workers()) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
    if not before:
        return ["No worker is running."], SETTLED
    if left:
        return [f"{len(left)} of {len(before)} still running, or dead and not yet noticed."], FAILED
    return [f"{len(before)} drained. Unfinished work continues at the next start."], SETTLED
