"""A process with a bound; what it began ends with it."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event, Timer
from typing import IO, NamedTuple

LONGEST = 1_000_000  # bytes of what a process says


class Ended(NamedTuple):
    """What a process came to; `late`, where its time was up."""

    code: int
    output: str
    errors: str
    late: bool


def run(
    command: Sequence[str],
    folder: Path,
    seconds: float,
    *,
    env: Mapping[str, str] | None = None,
    typed: str = "",
    together: bool = False,
) -> Ended:
    """Run a command in a process group of its own, and end the group: who has left that goes on.

    `together` has the errors in the output, in their order. Raises `OSError` where it can't be started.
    """
    with TemporaryFile() as said, TemporaryFile() as out, TemporaryFile() as errors:
        said.write(typed.encode(errors="replace"))
        said.seek(0)
        process = subprocess.Popen(  # noqa: S603 - what is run is whoever calls this who says
            command,
            cwd=folder,
            env=env,
            stdin=said,
            stdout=out,
            stderr=subprocess.STDOUT if together else errors,
            start_new_session=True,
        )
        late = Event()

        def end() -> None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

        def end_late() -> None:
            late.set()
            end()

        timer = Timer(seconds, end_late)
        timer.daemon = True
        timer.start()
        try:
            code = process.wait()
        finally:
            timer.cancel()
            end()
            process.wait()
        return Ended(code, _text(out), _text(errors), late.is_set())


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(LONGEST).decode(errors="replace").replace("\r\n", "\n")
