"""The boundary around a tool call: its errors, its time limit."""

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from copy import copy
from functools import wraps
from types import TracebackType
from typing import Any

from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp

from wakeloop.errors import ToolError


def passes_boundary(error: BaseException) -> bool:
    """Tell whether what came out of a tool call is about the run, not about the tool.

    Everything else becomes the tool's result, so that no tool ends a worker or a server: also what is no
    `Exception`, such as `SystemExit` or the panic of a Rust extension.

    >>> passes_boundary(SystemExit(1)), passes_boundary(KeyboardInterrupt())
    (False, True)
    """
    if isinstance(error, GraphBubbleUp | KeyboardInterrupt | GeneratorExit):
        return True
    if isinstance(error, asyncio.CancelledError):
        return _is_task_cancelled()
    # A handler of SIGTERM usually raises SystemExit, and does so inside of whatever is running.
    return isinstance(error, SystemExit) and _comes_from_signal_handler(error.__traceback__)


def unwrap_group(error: BaseException) -> BaseException:
    """Return the one error of a group, such as the Ctrl-C or the question of a tool with a task group.

    >>> unwrap_group(ExceptionGroup("unhandled errors in a TaskGroup", [ValueError("no")]))
    ValueError('no')
    """
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def wall_off(tool: BaseTool) -> BaseTool:
    """Return a copy of a tool whose SystemExit cannot end an event loop.

    LangChain awaits an asynchronous tool in a task of its own, and asyncio lets SystemExit of any task end
    the whole loop, such as a server's, before anybody could catch it.
    """
    run = tool._arun  # noqa: SLF001 - the method that tools override, as documented

    @wraps(run)
    async def run_walled(*args: Any, **kwargs: Any) -> Any:
        try:
            return await run(*args, **kwargs)
        except SystemExit as error:
            if passes_boundary(error):
                raise
            raise ToolError(f"SystemExit: {error}") from error

    walled = copy(tool)
    object.__setattr__(walled, "_arun", run_walled)
    return walled


def _is_task_cancelled() -> bool:
    """Tell whether the task itself is being cancelled, rather than a scope of the tool's own."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        return False
    return task is not None and task.cancelling() > 0


def _comes_from_signal_handler(trace: TracebackType | None) -> bool:
    handlers = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        function = getattr(handler, "func", handler)  # of a partial
        handlers.add(getattr(getattr(function, "__func__", function), "__code__", None))  # of a method
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def find_time_limit(tool: BaseTool) -> float | None:
    """Return the seconds that a call of this tool may take: `timeout` in the tool's `metadata`."""
    limit = (tool.metadata or {}).get("timeout")
    if isinstance(limit, bool) or not isinstance(limit, int | float) or limit <= 0:
        return None
    return float(limit)


def run_within(limit: float | None, work: Callable[[], Any]) -> Any:
    """Run work that a thread of its own ends in time. Raises `ToolError` if it does not.

    Python cannot stop a thread: the work goes on in the background, and its result is dropped.
    """
    if limit is None:
        return work()
    done: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that waits
            failed.append(error)

    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    thread.join(limit)
    if failed:
        raise failed[0]
    if not done:
        raise ToolError(_format_late(limit))
    return done[0]


async def arun_within(limit: float | None, work: Awaitable[Any]) -> Any:
    """Await work for so many seconds. Raises `ToolError` if it takes longer; then it is cancelled."""
    if limit is None:
        return await work
    scope = asyncio.timeout(limit)
    try:
        async with scope:
            return await work
    except TimeoutError:
        if scope.expired():
            raise ToolError(_format_late(limit)) from None
        raise


def _format_late(limit: float) -> str:
    return f"did not finish within {limit:g} s; the call may or may not have taken effect"
