"""The command in a terminal of its own, where a test types."""

from __future__ import annotations

import os
import pty
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pexpect
from nursery import nursery_for
from processes import COMMAND, PROGRAM, Shell, forks
from ptyprocess import PtyProcess


class Seat(pexpect.spawn):  # type: ignore[type-arg,unused-ignore]
    """A process that pexpect has started, here one of the nursery."""

    def _spawnpty(self, args: Sequence[bytes], **given: Any) -> Any:
        arguments = [os.fsdecode(word) for word in args[1:]]
        if not forks(arguments[len(PROGRAM) :]):
            return super()._spawnpty(args, **given)
        ours, theirs = pty.openpty()
        seat = PtyProcess(0, ours)
        seat.setwinsize(*given["dimensions"])
        environment = given["env"]
        seat.pid = nursery_for(environment).fork(
            arguments, environment, given["cwd"], [theirs] * 3, terminal=True
        )
        os.close(theirs)
        return seat


def seated(shell: Shell, state: Path, *args: str, rows: int = 40, columns: int = 120, **env: str) -> Any:
    """Start the command; what it keeps apart from threads, such as the typing history, goes to `state`."""
    command, *rest = COMMAND
    child = Seat(
        command, [*rest, *args], env={**shell.env, "XDG_STATE_HOME": str(state), "TERM": "xterm", **env},
        cwd=str(shell.folder), encoding="utf-8", timeout=60, dimensions=(rows, columns),
        codec_errors="replace",
    )  # fmt: skip
    child.delaybeforesend = None
    return child
