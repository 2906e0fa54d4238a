"""External tools: MCP servers and the user's own."""

import asyncio
import concurrent.futures
import inspect
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, suppress
from functools import wraps
from importlib import import_module
from pathlib import Path
from threading import Event
from traceback import extract_tb
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, Self

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from wakeloop.checks.argument_values import list_tools, make_tool_from
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.execution import handle_signals
from wakeloop.cli.failures import TERMINATED, CommandError, usage_error
from wakeloop.cli.mcp_config import DEFAULT_FILE, read_servers
from wakeloop.errors import ToolError

if TYPE_CHECKING:
    from wakeloop.cli.mcp_servers import McpConnection


POLL_SECONDS = 0.05  # between two checks for a stop
SHUTDOWN_SECONDS = 8.0  # servers get two to exit, two after SIGTERM, and a margin
Group = tuple[str, Sequence[BaseTool]]  # the name of their owner, and the tools


class ExternalTools:
    """Owns the MCP server processes and the event loop that external tools need, until it is closed.

    The loop runs in its own thread, so that a synchronous graph can call asynchronous tools. Setting `stop`
    cancels the calls in progress.
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
        """Return the external tools of an agent, and start the servers that are not running yet.

        With `ask`, a person must approve each call of a server's tool that does more than read. Raises
        `CommandError` if a file, a server or a module is faulty.
        """
        if spec.demo:
            return []
        own = [
            (name, load_own_tools(name, spec.imports, self.run_in_loop)) for name in spec.tools if ":" in name
        ]
        servers = self.start_servers(spec.mcp, spec.root) if spec.mcp else []
        if not servers:
            return [*own]
        from wakeloop.cli.mcp_tools import choose_tool_names, make_mcp_tools

        groups: list[Group] = [*own]
        for server, names in zip(servers, choose_tool_names(servers), strict=True):
            groups.append((server.label, make_mcp_tools(server, names, self.run_in_loop, ask=ask)))
        return groups

    def start_servers(self, path: str, root: str) -> "list[McpConnection]":
        """Start the servers of a file in the folder `root`, once, and return them."""
        if (path, root) in self.connected:
            return self.connected[path, root]
        if not (found := read_servers(Path(path))):
            return []
        try:
            from wakeloop.cli.mcp_servers import McpConnection
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("mcp", "httpx", "httpx2", "anyio"):
                raise
            raise CommandError("MCP servers need the extra 'mcp'. Run: pip install 'wakeloop[mcp]'") from None
        connected = [McpConnection(one, root) for one in found]
        try:
            with exit_on_sigterm():
                self.run_in_loop(gather_all(one.connect() for one in connected))
        except BaseException:
            self.stop_servers(connected)
            raise
        self.connected[path, root] = connected
        return connected

    def run_in_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the loop and wait for it; a stop cancels it with a tool error."""
        with self.loop_lock:  # the calls of one round come from several threads
            if self.loop is None:
                loop = asyncio.new_event_loop()
                self.thread = threading.Thread(target=loop.run_forever, name="wakeloop-outside", daemon=True)
                self.thread.start()
                self.loop = loop
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            while not concurrent.futures.wait((future,), POLL_SECONDS).done:
                if self.stop.is_set():
                    raise ToolException("The run is being stopped, so this call was cancelled.")
            return future.result()
        finally:
            future.cancel()  # does nothing if it is done

    def stop_servers(self, servers: "Sequence[McpConnection]") -> None:
        """Stop servers: close their input, then send SIGTERM, then SIGKILL."""
        if self.loop is None:
            return
        future = asyncio.run_coroutine_threadsafe(gather_all(one.close() for one in servers), self.loop)
        with suppress(TimeoutError):
            future.result(SHUTDOWN_SECONDS)

    def close(self) -> None:
        """Stop all servers and the loop."""
        if self.loop is None or self.thread is None:
            return
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(cancel_tasks(), self.loop).result(SHUTDOWN_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(1)
        if not self.thread.is_alive():
            self.loop.close()
        self.connected, self.loop, self.thread = {}, None, None


def exit_on_sigterm(
    handled: Callable[[SystemExit], object] = lambda _: False,
) -> AbstractContextManager[None]:
    """Exit on SIGTERM through `SystemExit`, so that servers are stopped; `handled` may take it instead."""

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        if not handled(SystemExit(TERMINATED)):
            raise SystemExit(TERMINATED)

    return handle_signals(end, (signal.SIGTERM,))


async def gather_all(work: Any) -> None:
    """Wait until all are done, then raise the first error."""
    for done in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(done, BaseException):
            raise done


async def cancel_tasks() -> None:
    """Cancel every other task of the loop: open MCP sessions, and calls left over after a stop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def unused_mcp_notes(spec: AgentSpec) -> list[str]:
    """Return a note if there is an MCP file here that no option names: its servers are not started."""
    if spec.mcp is not None or spec.demo or not Path(DEFAULT_FILE).is_file():
        return []
    return [f"Found {DEFAULT_FILE}. Start its servers with --mcp {DEFAULT_FILE}; --mcp none hides this note."]


# -- the user's own tools, imported as MODULE:NAME -------------------------------------------------------


Wait = Callable[[Any], Any]  # runs a coroutine and returns its result


def load_own_tools(reference: str, folder: str, wait: Wait) -> list[BaseTool]:
    """Import `MODULE:NAME`: a tool, a list of tools, or a function without arguments that returns them.

    The module is searched in `folder` first. Asynchronous tools run through `wait`.
    """
    module, _, name = reference.partition(":")
    try:
        given = getattr(import_from_folder(module, folder), name)
        if is_factory(given):
            given = given()
        if inspect.iscoroutine(given):
            given = wait(given)
        listed = [given] if isinstance(given, str) else given  # a string is one wrong tool, not a list
        return [make_sync(make_tool_from(one), wait) for one in list_tools(listed)]
    except KeyboardInterrupt:
        raise
    except ToolError as error:
        raise usage_error(f"{reference} of --tools is not a list of tools: {error}") from None
    except BaseException as error:  # noqa: BLE001 - user code may raise anything, as a Rust library does
        raise explain_failure(f"{reference} of --tools", error) from None


def import_from_folder(module: str, folder: str) -> ModuleType:
    """Import a module with its folder first on `sys.path`, and last afterwards, so that it hides no other."""
    sys.path.insert(0, folder)
    try:
        return import_module(module)
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)


def explain_failure(what: str, error: BaseException) -> CommandError:
    """Return an error that says what the user's own code raised, and where."""
    last = next((f for f in reversed(extract_tb(error.__traceback__)) if f.filename != __file__), None)
    cause = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) or last is None or last.filename.startswith("<"):
        return usage_error(f"{what} cannot be used: {cause}.")  # a syntax error includes its position
    return usage_error(f"{what} cannot be used: {cause} ({Path(last.filename).name}, line {last.lineno}).")


def is_factory(given: Any) -> bool:
    """Whether an object is not a tool and can be called without arguments."""
    if isinstance(given, BaseTool | type) or not callable(given):
        return False
    try:
        inspect.signature(given).bind()
    except (TypeError, ValueError):
        return False
    return True


def make_sync(tool: BaseTool, wait: Wait) -> BaseTool:
    """Give a tool that is only asynchronous a synchronous function."""
    if not isinstance(tool, StructuredTool) or tool.func is not None or tool.coroutine is None:
        return tool
    coroutine = tool.coroutine

    @wraps(coroutine)
    def function(*args: Any, **kwargs: Any) -> Any:
        return wait(coroutine(*args, **kwargs))

    return tool.model_copy(update={"func": function})
