"""The countdown of a run that a limit has refused."""

import sys
import time
from collections.abc import Callable
from typing import Any

from langgraph.types import StateSnapshot

from wakeloop.cli.output_formats import at_a_terminal
from wakeloop.display.formatting import format_elapsed
from wakeloop.loop.waits import build_clock_event, find_next_wait, read_wait_kind

TICK_SECONDS = 0.2


def count_down(snapshot: StateSnapshot, speaks: Callable[[], object], longest: float) -> Any:
    """Wait at a terminal until a limit is over, and return the input to continue with.

    None if the thread waits for something else or too long, or the person ends the wait: by Ctrl-C, or
    because the person `speaks`.
    """
    values = snapshot.values or {}
    first = find_next_wait(values.get("waiting_on") or ())
    if first is None or read_wait_kind(first) != "limit" or snapshot.tasks:
        return None
    if first["until"] - time.time() > longest or not (at_a_terminal() and sys.stdin.isatty()):
        return None
    try:
        while (left := first["until"] - time.time()) > 0:
            if speaks():
                return None
            show(f"The provider limits requests: the next one in {format_elapsed(left)}. Ctrl-C to stop.")
            time.sleep(min(left, TICK_SECONDS))
    except KeyboardInterrupt:
        return None
    finally:
        show("")
    return {"todo_inbox": [build_clock_event([first], time.time())]}


def show(line: str) -> None:
    """Write a line in the place of the one before it."""
    sys.stderr.write(f"\r\x1b[K{line}")
    sys.stderr.flush()
