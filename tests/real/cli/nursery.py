"""The command in processes that need not import it: one has, and forks for each start.

A start of `wakeloop run` takes two seconds of CPU, nearly all of it for imports. `Nursery` keeps a process
that has made them and runs nothing. For each start it receives arguments, environment, folder and the three
streams; it forks twice, so that the new process becomes a child of the tests, which wait for it and kill it
like any other. One that has its own terminal leads a session there. In the full matrix the first start of
each command in each test uses a new interpreter, and so does every start on systems other than Linux.
"""

from __future__ import annotations

import array
import atexit
import ctypes
import fcntl
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import termios
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, NoReturn

IMPORTED = [  # what takes the time, much of it imported only by the first request
    "aiosqlite",
    "anyio.streams.tls",
    "dbos",
    "genai_prices.data",
    "h11",
    "httpcore",
    "httpcore2",
    "langchain_core.messages.block_translators.langchain_v0",
    "langchain_core.tracers.run_collector",
    "langchain_core.tracers.stdout",
    "langchain_openai",
    "langgraph.checkpoint.sqlite",
    "langgraph.store.sqlite.aio",
    "linkify_it",
    "markdown_it",
    "mcp.client.streamable_http",
    "numpy",
    "openai.lib.streaming.chat",
    "openai.resources.chat.chat",
    "openai.resources.chat.completions",
    "platformdirs.unix",
    "prompt_toolkit",
    "psycopg_pool",
    "rich.markdown",
    "truststore",
    "typer",
]
COMMAND = "wakeloop.cli.commands.app"  # never this module itself, which is run anew each time
AT_START = (
    "PYTHON",
    "LANG",
    "LC_",
    "LD_",
    "COV",
)  # read by the interpreter and by imports
LATER = "PYTHONWARNINGS"  # of these, a fork can still apply this one
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


# -- the process that forks --------------------------------------------------------------------------------


def own_modules() -> Iterator[str]:
    """All modules of this package except the programs."""
    import wakeloop

    for found in walk_packages(wakeloop.__path__, "wakeloop."):
        if not found.name.endswith((".__main__", ".peer_program")) and found.name != COMMAND:
            yield found.name


def serve(line: socket.socket) -> None:
    """Fork for each job until the line is closed; in a new process, run the command and return."""
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # see conftest.py
    defaults = [*warnings.filters]
    for name in (*IMPORTED, *own_modules()):
        if find_spec(name.split(".")[0]):
            __import__(name)
    sys.modules["wakeloop.display.screen"].is_wakeloop_event({})  # it makes its reader at the first event
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line.send(b"ready")
    while True:
        data, ancillary, *_ = line.recvmsg(1 << 20, socket.CMSG_SPACE(3 * array.array("i").itemsize))
        if not data:
            return
        streams = array.array("i")
        for *_, sent in ancillary:
            streams.frombytes(sent)
        told, tells = os.pipe()
        first = os.fork()
        if first == 0:
            second = os.fork()
            if second == 0:
                for stream in (told, tells, line.detach()):
                    os.close(stream)
                run(json.loads(data), streams, defaults)
                return
            os.write(tells, str(second).encode())
            os._exit(0)
        os.waitpid(first, 0)  # from here on the second is the tests' child
        line.send(os.read(told, 16))
        for stream in (told, tells, *streams):
            os.close(stream)


def run(job: Mapping[str, Any], streams: Sequence[int], defaults: Sequence[Any]) -> None:
    """Become what Python would be with these arguments: `-m MODULE …`, `-c CODE …` or `FILE …`."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    if job["terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(job["environment"])
    if job["folder"]:
        os.chdir(job["folder"])
    read_late(defaults)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run_program(*job["arguments"])
    except SystemExit as left:
        if not isinstance(left.code, int | None):
            raise
        end(left.code or 0)
    end(0)


def run_program(first: str, *more: str) -> None:
    sys.path[0] = "" if first == "-c" else os.getcwd() if first == "-m" else os.path.dirname(first)  # noqa: PTH109, PTH120 - a string
    sys.argv = [first, *(more if first not in ("-c", "-m") else more[1:])]
    if first == "-m":
        runpy.run_module(more[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(more[0], main.__dict__)
    else:
        runpy.run_path(first, run_name="__main__")


def read_late(defaults: Sequence[Any]) -> None:
    """Put filters where an interpreter does: before its initial ones, after those of imports."""
    if wanted := os.environ.get(LATER):
        first = min(warnings.filters.index(one) for one in defaults if one in warnings.filters)
        imported, own = warnings.filters[:first], warnings.filters[first:]
        sys.warnoptions[:] = wanted.split(",")
        warnings.filters[:] = own  # type: ignore[index]
        warnings._processoptions(sys.warnoptions)  # type: ignore[attr-defined]
        warnings.filters[:0] = imported  # type: ignore[index]
        warnings._filters_mutated()  # type: ignore[attr-defined]


def end(code: int) -> NoReturn:
    """Do all that an interpreter does at its end, except tearing down the modules, which would copy them."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError):  # it has its own words and code for that
        sys.exit(code)
    os._exit(code)


# -- the tests' side ---------------------------------------------------------------------------------------


class Forked(subprocess.Popen[str]):
    """A process of the nursery, to be waited for, written to and killed like one of our own."""

    def __init__(
        self, nursery: Nursery, arguments: Sequence[str], *, terminal: bool = False, **options: Any
    ) -> None:
        self.nursery, self.terminal = nursery, terminal
        super().__init__(arguments, **options)

    def _execute_child(self, arguments: Sequence[str], *given: Any) -> None:
        folder, environment = given[4:6]
        streams = [
            stream if stream != -1 else own
            for stream, own in zip((given[9], given[12], given[14]), (0, 1, 2), strict=True)
        ]
        self.pid = self.nursery.fork(arguments, environment, folder, streams, terminal=self.terminal)
        self._child_created = True
        self._close_pipe_fds(*given[9:15])  # type: ignore[attr-defined]


class Nursery:
    """A process that forks, for starts with the same environment for interpreter and imports."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.line, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self.keeper = subprocess.Popen(
                [sys.executable, __file__, str(other.fileno())],
                pass_fds=[other.fileno()],
                env={name: value for name, value in environment.items() if name != LATER},
                start_new_session=True,  # Ctrl-C is for the tests
            )
        assert self.line.recv(16) == b"ready"

    def fork(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Any,
        streams: list[int],
        *,
        terminal: bool = False,
    ) -> int:
        """Run Python with these arguments; return the id of the new process, a child of this one."""
        job = {
            "arguments": arguments,
            "environment": environment,
            "folder": folder and str(folder),
            "terminal": terminal,
        }
        adopts(yes=True)
        try:
            self.line.sendmsg(
                [json.dumps(job).encode()],
                [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))],
            )
            pid = int(self.line.recv(16))
        finally:
            adopts(yes=False)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # an error if it is not our child
        return pid

    def close(self) -> None:
        self.line.close()
        self.keeper.wait()


NURSERIES: dict[frozenset[tuple[str, str]], Nursery] = {}


def nursery_for(environment: Mapping[str, str]) -> Nursery:
    """Return the process that forks for starts in this environment."""
    early = {name: value for name, value in environment.items() if name != LATER}
    found = frozenset((name, value) for name, value in early.items() if name.startswith(AT_START))
    if found not in NURSERIES:
        NURSERIES[found] = Nursery(environment)
    return NURSERIES[found]


@atexit.register
def close() -> None:
    """End them with the tests' process."""
    while NURSERIES:
        NURSERIES.popitem()[1].close()


def adopts(*, yes: bool) -> None:
    """Return whether processes whose parent has ended become children of this one."""
    assert ctypes.CDLL(None).prctl(SUBREAPER, int(yes), 0, 0, 0) == 0


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
