"""Run a process with limits on its time and output."""

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
    """Keeps the beginning and the end of an output, within a limit of bytes."""

    limit: int
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    def add(self, data: bytes) -> None:
        """Add output. Half of the limit holds the first bytes, the other half the newest."""
        self.total += len(data)
        room = self.limit // 2 - len(self.head)
        self.head += data[: max(room, 0)]
        self.tail += data[max(room, 0) :]
        keep = self.limit - self.limit // 2
        del self.tail[: max(len(self.tail) - keep, 0)]

    def render(self) -> str:
        """Return what was kept as text, with a line where something is missing."""
        missing = self.total - len(self.head) - len(self.tail)
        if not missing:
            return (self.head + self.tail).decode(errors="replace")
        start, end = self.head.decode(errors="replace"), self.tail.decode(errors="replace")
        gap = f"[{pluralize(missing, 'byte')} left out; write the output to a file to see all of it]"
        return f"{start}\n{gap}\n{end}"


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
    """Run a command in its own process group, kill the group afterwards, and return the exit code.

    Returns None if the time ran out or `stop` was set first. A process that has left the group is not killed.
    Without `errors`, stderr goes to `output` as well. Raises `OSError` or `ValueError` if the command cannot
    be started.
    """
    deadline = time.monotonic() + seconds
    with ExitStack() as files:
        stdin = files.enter_context(TemporaryFile()) if typed else None
        if stdin is not None:
            stdin.write(typed.encode(errors="replace"))
            stdin.seek(0)
        process = subprocess.Popen(  # noqa: S603 - the caller decides what is run
            command,
            cwd=folder,
            env=env,
            stdin=stdin or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if errors is None else subprocess.PIPE,
            start_new_session=True,
        )
        pipes: dict[int, BoundedOutput] = {}
        for pipe, target in ((process.stdout, output), (process.stderr, errors)):
            if pipe is not None and target is not None:
                pipes[files.enter_context(pipe).fileno()] = target
        try:
            collect_output(process, pipes, deadline, stop or Event())
            code = process.poll()
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for number, target in pipes.items():
            drain_pipe(number, target)
        return code


def collect_output(
    process: subprocess.Popen[bytes], pipes: Mapping[int, BoundedOutput], deadline: float, stop: Event
) -> None:
    """Collect output until the command ends, the time runs out, or `stop` is set."""
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
                if not data:  # the command closed its output, but may still run
                    selector.unregister(key.fd)


def drain_pipe(pipe: int, output: BoundedOutput) -> None:
    """Read what is left in the pipe, but not forever: a process that left the group may keep writing."""
    with suppress(BlockingIOError):
        for _ in range(16):
            output.add(os.read(pipe, CHUNK))
