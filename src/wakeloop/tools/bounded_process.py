"""A process with bounds: of its time, and of what it says."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event

from wakeloop.text.characters import pluralize

CHUNK = 65_536
POLL_EVERY = 0.01


@dataclass
class BoundedOutput:
    """The first and the last half of what was written, however much it was."""

    limit: int
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    def add(self, data: bytes) -> None:
        """Keep what fits; of the rest only the end."""
        self.total += len(data)
        room = self.limit // 2 - len(self.head)
        self.head += data[: max(room, 0)]
        self.tail += data[max(room, 0) :]
        keep = self.limit - self.limit // 2
        del self.tail[: max(len(self.tail) - keep, 0)]

    def render(self) -> str:
        """What was kept, with a line where something is missing."""
        missing = self.total - len(self.head) - len(self.tail)
        if not missing:
            return (self.head + self.tail).decode(errors="replace")
        start, end = self.head.decode(errors="replace"), self.tail.decode(errors="replace")
        told = f"[{pluralize(missing, 'byte')} left out; write the output to a file to see all of it]"
        return f"{start}\n{told}\n{end}"


def run_process(
    command: Sequence[str],
    folder: Path,
    seconds: float,
    output: BoundedOutput,
    *,
    errors: BoundedOutput | None = None,
    env: Mapping[str, str] | None = None,
    typed: str = "",
    stop: Event | None = None,
) -> int | None:
    """Run a command in a process group of its own and end the group; None if it had to be ended.

    Who has left the group goes on. Without `errors` these are in the output, in their order; `stop` ends it
    when it is set. Raises `OSError` or `ValueError` where it can't be started.
    """
    deadline = time.monotonic() + seconds
    with ExitStack() as files:
        given = files.enter_context(TemporaryFile()) if typed else None
        if given is not None:
            given.write(typed.encode(errors="replace"))
            given.seek(0)
        process = subprocess.Popen(  # noqa: S603 - what is run is whoever calls this who says
            command,
            cwd=folder,
            env=env,
            stdin=given or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if errors is None else subprocess.PIPE,
            start_new_session=True,
        )
        pipes: dict[int, BoundedOutput] = {}
        for pipe, taken in ((process.stdout, output), (process.stderr, errors)):
            if pipe is not None and taken is not None:
                pipes[files.enter_context(pipe).fileno()] = taken
        try:
            collect_output(process, pipes, deadline, stop or Event())
            code = process.poll()
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for number, taken in pipes.items():
            drain_pipe(number, taken)
        return code


def collect_output(
    process: subprocess.Popen[bytes], pipes: Mapping[int, BoundedOutput], deadline: float, stop: Event
) -> None:
    """Take output until the command has ended, the time is up, or it is to stop."""
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            os.set_blocking(pipe, False)
            selector.register(pipe, selectors.EVENT_READ)
        while time.monotonic() < deadline and process.poll() is None and not stop.is_set():
            if not selector.get_map():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_EVERY)
                continue
            for key, _ in selector.select(POLL_EVERY):
                data = os.read(key.fd, CHUNK)
                pipes[key.fd].add(data)
                if not data:  # it has closed its output, and may go on without
                    selector.unregister(key.fd)


def drain_pipe(pipe: int, output: BoundedOutput) -> None:
    """Take what is left in the pipe; something that escaped the group may go on writing, so not for ever."""
    with suppress(BlockingIOError):
        for _ in range(16):
            output.add(os.read(pipe, CHUNK))
