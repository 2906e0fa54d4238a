"""Brings the workers of a database to rest."""

import time

from wakeloop.cli.failures import FAILED, SETTLED
from wakeloop.cli.sessions.storage import POLL_SECONDS, SessionStorage


def drain_workers(where: SessionStorage, timeout: float) -> tuple[list[str], int]:
    """Ask all workers to come to rest and wait for them."""
    with where.open_post() as post:
        begun = post.mailbox.list_workers()
        post.mailbox.request_drain()
        deadline = time.monotonic() + timeout
        while (left := post.mailbox.list_workers()) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
    if not begun:
        return ["No worker is at work here."], SETTLED
    if left:
        return [f"Still at work, or dead and not missed yet: {len(left)} of {len(begun)}."], FAILED
    return [f"{len(begun)} drained. What was under way goes on at the next start."], SETTLED
