"""A goal that a command checks: exit code 0 means met."""

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from wakeloop.loop.goal import LONGEST_REASON, Verdict, impossible, wait
from wakeloop.tools.bounded_process import BoundedOutput
from wakeloop.tools.shell import run_command

IMPOSSIBLE, WAIT = 3, 4  # exit codes, as the command line's own for an open list and a waiting thread
LAST_LINES = 20  # of the output, which say what is missing
KEPT = 20_000  # bytes of the output


def command_goal(
    command: str, root: str | Path, *, timeout: float = 300, stop: Event | None = None
) -> Callable[[Any], str | Verdict | None]:
    """Return a `done_when` function that runs a command with `/bin/sh`.

    Exit code 0 means that the goal is met, 3 that it is impossible, 4 that something else must happen first;
    any other code means that something is missing. The last lines of the output are the reason. Variables
    that look like secrets are left out of the environment, and the command is not sandboxed.

    Args:
        command: The command line.
        root: The folder in which it starts.
        timeout: Seconds after which it is killed with its process group; then the goal is not met.
        stop: When set, a running command is killed. That is not a verdict: the run stops as with Ctrl-C.

    Example:
        >>> done_when = command_goal("echo 2 failed; exit 1", ".")
        >>> done_when({})
        '2 failed'
    """
    ending = stop or Event()

    def done_when(state: Any) -> str | Verdict | None:  # noqa: ARG001 - the signature of a goal
        output = BoundedOutput(KEPT)
        code = run_command(command, Path(root), timeout, output, ending)
        if ending.is_set():
            raise KeyboardInterrupt
        if code == 0:
            return None
        if code is None:
            return f"did not finish in {timeout:g} s"
        reason = cut_to_last_lines(output.render()) or f"the command ended with exit code {code}"
        if code == IMPOSSIBLE:
            return impossible(reason)
        return wait(reason) if code == WAIT else reason

    return done_when


def cut_to_last_lines(text: str) -> str:
    """Return the last lines of an output that are not blank, cut at their beginning if they are too long."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-LAST_LINES:])[-LONGEST_REASON:].strip()
