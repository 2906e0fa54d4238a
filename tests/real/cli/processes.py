"""The command in separate processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply, Script, Server
from levels import Level
from nursery import Forked, nursery_for
from typer.testing import CliRunner

from wakeloop.cli.commands.app import app

TAKES_IT = (  # the first terminal that a session opens is its own: Ctrl-C arrives as a signal
    "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); os.execv(sys.argv[1], sys.argv[1:])"
)
PROGRAM = ["-m", "wakeloop.cli.commands.app"]  # Python's arguments
COMMAND = [sys.executable, *PROGRAM]


ANEW: set[tuple[str, ...]] = set()  # tests, and the commands that they have started in a new interpreter


def forks(command: Sequence[str]) -> bool:
    """Return whether a start is a fork of a process that has imported the command: see nursery.py.

    In the full matrix a test starts each command once in a new interpreter before it forks.
    """
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0].partition("[")[0]
    if not (test and sys.platform.startswith("linux")):
        return False
    start = test, *command[:1]
    if Level.whole() and start not in ANEW:
        ANEW.add(start)
        return False
    return True


def start_python(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Start Python, with `-m MODULE …`, `-c CODE …` or `FILE …`; a fork has its imports already."""
    first, *more = map(os.fspath, arguments)
    env = {**os.environ, **options.pop("env", {})}
    options |= {"text": True, "env": env}
    if forks([first]):
        return Forked(nursery_for(env), [first, *more], **options)
    return subprocess.Popen([sys.executable, first, *more], **options)


def run_python(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python until it ends, for example with `COMMAND`; its output is captured unless redirected."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with start_python(*arguments, **options) as process:
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


class Shell:
    """Runs the command in other processes, in a folder and with a database of the test."""

    def __init__(self, folder: Path, db: Path) -> None:
        self.folder, self.db = folder, db
        self.env: dict[str, str] = {
            **{name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")},
            "WAKELOOP_DB": str(db),
            "OPENAI_API_KEY": "sk-loopback-secret",
            "PYTHONUNBUFFERED": "1",
        }

    def start(self, *args: str, terminal: int | None = None, **more: Any) -> subprocess.Popen[str]:
        """Start the command; a given terminal becomes its own, and all of its streams."""
        options: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        env = {**self.env, **more.pop("env", {})}
        options |= {"text": True, "cwd": self.folder, "env": env, **more}
        if terminal is not None:
            options |= dict.fromkeys(("stdin", "stdout", "stderr"), terminal)
        if forks(args):
            return Forked(nursery_for(env), [*PROGRAM, *args], terminal=terminal is not None, **options)
        command = COMMAND if terminal is None else [sys.executable, "-c", TAKES_IT, *COMMAND]
        return subprocess.Popen([*command, *args], start_new_session=terminal is not None, **options)

    def __call__(self, *args: str, typed: str | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
        if typed is not None:
            more["stdin"] = subprocess.PIPE
        process = self.start(*args, **more)
        out, err = process.communicate(typed, timeout=60)
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(args, process.returncode, out, err)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder = tmp_path / "folder"
    folder.mkdir()
    return Shell(folder, tmp_path / "threads.sqlite")


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start a server with a script; it is closed afterwards."""
    servers: list[Server] = []

    def start(*replies: Reply, script: Script | None = None) -> Server:
        servers.append(Server(script or list(replies)))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def wakeloop(*args: str, **more: Any) -> tuple[int, str, str]:
    """Run a command in this process, which has already imported everything; return code, output, errors."""
    done = CliRunner().invoke(app, list(args), **more)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def lines(text: str, beginning: str) -> Sequence[str]:
    return [line for line in text.splitlines() if line.startswith(beginning)]


def until(
    reached: Callable[[], object], process: subprocess.Popen[str], seconds: float = 60, pause: float = 0.02
) -> None:
    """Wait until a process has come this far; fail if it ends before, or takes too long."""
    deadline = time.monotonic() + seconds
    while not reached():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            out, err = process.communicate()
            pytest.fail(f"It ended or took too long:\n{out}\n{err}")
        time.sleep(pause)


def is_gone(pid: int, seconds: float = 60) -> bool:
    """Wait for a process to end, whoever its parent is; a zombie counts as ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        told = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        if not told.stdout.strip() or told.stdout.startswith("Z"):
            return True
        time.sleep(0.05)
    return False
