"""Tools from outside: MCP servers, and the user's own."""

import asyncio
import concurrent.futures
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from langchain_core.tools import BaseTool, ToolException

from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.failures import TERMINATED, CommandError
from wakeloop.cli.mcp_config import DEFAULT_FILE, read_servers
from wakeloop.cli.own_tools import load_own_tools

if TYPE_CHECKING:
    from wakeloop.cli.mcp_servers import McpConnection

POLL_SECONDS = 0.05  # seconds between two looks whether the run is being stopped
SHUTDOWN_SECONDS = (
    8.0  # seconds that servers have to end: two until they are asked to, two more until they are made to
)
Group = tuple[str, Sequence[BaseTool]]  # who the tools belong to, and the tools


class ExternalTools:
    """Holds what tools from outside need, until it is closed: server processes, and a loop for what waits.

    The loop runs in a thread of its own, so that a synchronous graph can call asynchronous tools. Setting
    `stop` ends the calls that are under way.
    """

    def __init__(self, stop: Event | None = None) -> None:
        self.stop = stop or Event()
        self.loop_lock = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None
        self.connected: dict[tuple[str, str], list[McpConnection]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def tool_groups(self, spec: AgentSpec, *, ask: bool) -> list[Group]:
        """The tools of a spec; servers that are not held yet are started.

        `ask` puts each call of a server's tool that does more than read to the person first. Raises
        `CommandError` for a file, a server or a module that is not as it should be.
        """
        if spec.demo:
            return []
        own = [
            (name, load_own_tools(name, spec.imports, self.run_in_loop)) for name in spec.tools if ":" in name
        ]
        servers = self.start_servers(spec.mcp, spec.root) if spec.mcp else []
        if not servers:
            return [*own]
        from wakeloop.cli.mcp_tools import make_mcp_tools

        return [*own, *((one.label, make_mcp_tools(one, self.run_in_loop, ask=ask)) for one in servers)]

    def start_servers(self, path: str, root: str) -> "list[McpConnection]":
        """The servers of a file, which begin in a folder; each is started once."""
        if (path, root) in self.connected:
            return self.connected[path, root]
        if not (found := read_servers(Path(path))):
            return []
        try:
            from wakeloop.cli.mcp_servers import McpConnection
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("mcp", "httpx", "anyio"):
                raise
            raise CommandError("MCP servers need the extra mcp: pip install 'wakeloop[mcp]'.") from None
        connected = [McpConnection(one, root) for one in found]
        try:
            with exit_on_sigterm():
                self.run_in_loop(gather_all(one.connect() for one in connected))
        except BaseException:
            self.stop_servers(connected)
            raise
        self.connected[path, root] = connected
        return connected

    # -- the loop --------------------------------------------------------------------------------------

    def run_in_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the loop and wait for it; a stop cancels it, as an error of the tool."""
        with self.loop_lock:  # calls of one round come from several threads
            if self.loop is None:
                loop = asyncio.new_event_loop()
                self.thread = threading.Thread(target=loop.run_forever, name="wakeloop-outside", daemon=True)
                self.thread.start()
                self.loop = loop
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            while not concurrent.futures.wait((future,), POLL_SECONDS).done:
                if self.stop.is_set():
                    raise ToolException("The run is being stopped; the call was ended.")
            return future.result()
        finally:
            future.cancel()  # nothing to one that is done

    def stop_servers(self, servers: "Sequence[McpConnection]") -> None:
        """End servers: their input is closed; who stays is asked to end, and then made to."""
        if self.loop is None:
            return
        future = asyncio.run_coroutine_threadsafe(gather_all(one.close() for one in servers), self.loop)
        with suppress(TimeoutError):
            future.result(SHUTDOWN_SECONDS)

    def close(self) -> None:
        """End all servers, and the loop."""
        if self.loop is None or self.thread is None:
            return
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(cancel_tasks(), self.loop).result(SHUTDOWN_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(1)
        if not self.thread.is_alive():
            self.loop.close()
        self.connected, self.loop, self.thread = {}, None, None


@contextmanager
def exit_on_sigterm(heard: Callable[[SystemExit], object] = lambda _: False) -> Iterator[None]:
    """Let SIGTERM end the command in order where nobody has `heard` of it: no server stays behind."""

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        if not heard(SystemExit(TERMINATED)):
            raise SystemExit(TERMINATED)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


async def gather_all(work: Any) -> None:
    """Wait for all of them; the first error is raised when all have ended."""
    for done in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(done, BaseException):
            raise done


async def cancel_tasks() -> None:
    """Cancel what is in the loop: a session that is held, a call that a stop has left."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def unused_mcp_notes(spec: AgentSpec) -> list[str]:
    """Say of a file in the working folder that nobody named that its servers are not started."""
    if spec.mcp is not None or spec.demo or not Path(DEFAULT_FILE).is_file():
        return []
    return [
        (
            f"There is a {DEFAULT_FILE} here; its servers are started by --mcp {DEFAULT_FILE} only "
            "(--mcp none: never)."
        )
    ]
