"""Connections to MCP servers, each owned by one task."""

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from anyio import BrokenResourceError, ClosedResourceError
from langchain_core.tools import ToolException
from mcp import ClientSession, StdioServerParameters
from mcp import types as mcp
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel, ValidationError

from wakeloop.cli.agent_spec import strip_credentials
from wakeloop.cli.failures import CommandError, usage_error
from wakeloop.cli.mcp_config import McpServer
from wakeloop.text.characters import shorten, to_one_line
from wakeloop.text.secrets import redact_text

START_TIMEOUT = 30.0  # seconds until a server must be ready
CALL_TIMEOUT = 300.0  # seconds for a call
CLOSE_TIMEOUT = 6.0  # seconds to close: the library sends SIGTERM after two, SIGKILL after four
MAX_STDERR_BYTES = 2_000  # the end of a server's stderr, in bytes
MAX_MESSAGE = 300  # characters of a server's message in an error
# What has another name in version 2 of the library
_library: Any = import_module("mcp")
McpError: Any = getattr(_library, "MCPError", None) or _library.McpError
httpx: Any = import_module("httpx2" if hasattr(_library, "MCPError") else "httpx")
# The library's errors for a session that has ended. Servers use the same codes with other messages.
CLOSED = {(-32000, "Connection closed")}
# What version 2 says of another HTTP answer
NOT_MCP = ("Unexpected content type", "Failed to parse JSON", "Failed to parse SSE")
HTTP_ERROR = "Server returned an error response"
CONNECTION_LOST = (ClosedResourceError, BrokenResourceError, ConnectionError, httpx.TransportError)

for _name in ("mcp", "client"):  # without a handler, their warnings would go to the terminal
    logging.getLogger(_name).addHandler(logging.NullHandler())


class McpConnection:
    """A connection to one server; the next call reopens one that has ended.

    All methods run in the event loop of `ExternalTools`.
    """

    def __init__(self, server: McpServer, root: str) -> None:
        self.server, self.root = server, root
        self.label = f"the MCP server {server.name!r}"
        self.lock = asyncio.Lock()
        self.task: asyncio.Task[None] | None = None
        self.session: ClientSession | None = None
        self.tools: list[mcp.Tool] = []
        self.stderr_tail = b""
        self.last_response = ""
        self.calls: set[asyncio.Future[mcp.CallToolResult]] = set()  # that wait for an answer
        self.unreadable: list[Exception] = []  # answers to some of them

    async def connect(self) -> ClientSession:
        """Return the session, opening it if needed. Raises `CommandError` if that fails."""
        async with self.lock:
            if self.session is None:
                await self.close()
                ready: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
                self.stderr_tail, self.last_response, self.unreadable = b"", "", []
                self.task = asyncio.create_task(self.hold_session(ready))
                try:
                    async with asyncio.timeout(START_TIMEOUT):
                        self.session = await asyncio.shield(ready)
                except Exception as error:  # noqa: BLE001 - whatever it is, the user gets a sentence
                    await self.close()
                    why = self.redact(explain_failure(self.server, error, self.last_response))
                    last = self.format_last_stderr_line()
                    raise usage_error(f"T{self.label[1:]} cannot be used: {why}{last}") from None
            return self.session

    async def hold_session(self, ready: asyncio.Future[ClientSession]) -> None:
        """Keep the session open until cancelled: anyio wants it opened and closed by the same task."""
        try:
            async with (
                self.open_streams() as (read, write),
                ClientSession(read, write, message_handler=partial(self.handle_message, ready)) as session,
            ):
                await session.initialize()
                self.tools = await list_all_tools(session)
                ready.set_result(session)
                await asyncio.get_running_loop().create_future()
        except Exception as error:  # noqa: BLE001 - raised in `connect`, which waits for it
            if not ready.done():
                ready.set_exception(error)
        finally:
            if self.task is asyncio.current_task():
                self.session = None
            ready.cancel()  # no effect if it is done

    async def handle_message(self, ready: asyncio.Future[ClientSession], message: object) -> None:
        """Fail the start, or the call, whose answer cannot be parsed: the library only passes such errors on.

        A process may also print lines that are not answers; those are ignored.
        """
        if not isinstance(message, Exception) or not (self.server.url or looks_like_answer(message)):
            return
        if not ready.done():
            ready.set_exception(message)
            return
        # Which call was answered is unknown. Once all that are left were answered so, none will come back.
        self.unreadable.append(message)
        if len(self.unreadable) >= len(self.calls):
            for call in self.calls:
                if not call.done():
                    call.set_exception(message)

    async def record_response(self, response: Any) -> None:
        """Keep status and type of the last response, for the error if it is not MCP."""
        kind = response.headers.get("content-type", "").partition(";")[0]
        self.last_response = f"{response.status_code}" + (f" with {kind}" if kind else "")

    @asynccontextmanager
    async def open_streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Open the two streams of a connection, over HTTP or to a process."""
        if self.server.url:
            limits = httpx.Timeout(START_TIMEOUT, read=CALL_TIMEOUT)
            hooks = {"response": [self.record_response]}
            async with (
                httpx.AsyncClient(
                    headers=dict(self.server.headers), timeout=limits, event_hooks=hooks
                ) as client,
                streamable_http_client(self.server.url, http_client=client) as (read, write, *_),
            ):
                yield read, write
            return
        way = StdioServerParameters(
            command=self.server.command,
            args=list(self.server.args),
            env=dict(self.server.env),
            cwd=Path(self.root) / self.server.cwd,
            encoding_error_handler="replace",
        )
        reads, writes = os.pipe()
        os.set_blocking(reads, False)
        asyncio.get_running_loop().add_reader(reads, self.read_stderr, reads)
        try:
            with os.fdopen(writes, "w") as errors:
                async with stdio_client(way, errlog=errors) as streams:
                    yield streams
        finally:
            self.read_stderr(reads)
            asyncio.get_running_loop().remove_reader(reads)
            os.close(reads)

    def read_stderr(self, stream: int) -> None:
        """Keep the end of the server's stderr: it says why the server ended."""
        with suppress(BlockingIOError):
            while data := os.read(stream, 65_536):
                self.stderr_tail = (self.stderr_tail + data)[-MAX_STDERR_BYTES:]

    async def close(self) -> None:
        """Close the session; a process has its input closed, then gets SIGTERM, then SIGKILL."""
        task, self.task, self.session = self.task, None, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,), timeout=CLOSE_TIMEOUT)

    # -- a call ----------------------------------------------------------------------------------------

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> mcp.CallToolResult:
        """Call a tool. Raises `ToolException` if the server refuses the call or has ended."""
        try:
            session = await self.connect()
        except CommandError as error:
            raise ToolException(str(error)) from None
        call = mcp.CallToolRequest(params=mcp.CallToolRequestParams(name=name, arguments=arguments))
        # Not `session.call_tool`: it checks the result against the server's own schema, whose patterns and
        # references can take longer than any call, in a way that nothing interrupts.
        asked = asyncio.ensure_future(session.send_request(cast("Any", call), mcp.CallToolResult))
        unreadable: asyncio.Future[mcp.CallToolResult] = asyncio.get_running_loop().create_future()
        self.calls.add(unreadable)
        try:
            return await self.await_answer(session, asked, unreadable)
        except CONNECTION_LOST:
            raise ToolException(await self.close_lost_session(session)) from None
        except McpError as error:
            if read_error(error) in CLOSED or self.last_response.startswith("404"):
                raise ToolException(await self.close_lost_session(session)) from None
            why = explain_http_answer(error.error.message, self.last_response)
            raise ToolException(self.redact(f"{self.label}: {why}")) from None
        except (ValueError, RuntimeError) as error:
            raise ToolException(self.redact(f"{self.label}: {explain_bad_answer(error)}")) from None
        finally:
            asked.cancel()
            unreadable.cancel()
            self.calls.discard(unreadable)
            if not self.calls:
                self.unreadable.clear()

    async def await_answer(
        self, session: ClientSession, *answers: asyncio.Future[mcp.CallToolResult]
    ) -> mcp.CallToolResult:
        """Return the answer that comes first. Raises `ToolException` if the server ends or takes too long."""
        awaited: set[asyncio.Future[Any]] = {*answers}
        if self.task is not None:
            awaited.add(self.task)  # the connection: it ends if the server does
        first = asyncio.FIRST_COMPLETED
        done, _ = await asyncio.wait(awaited, timeout=CALL_TIMEOUT, return_when=first)
        for answer in answers:
            if answer in done:
                return answer.result()
        if done:
            raise ToolException(await self.close_lost_session(session))
        raise ToolException(f"{self.label}: it did not answer within {CALL_TIMEOUT:g} s")

    async def close_lost_session(self, session: ClientSession) -> str:
        """Drop a session that has ended, and return what to tell the model."""
        if self.session is session:
            await self.close()
        return (
            f"{self.label} ended during this call, which may have taken effect. The server's state is "
            f"lost; the next call restarts it.{self.format_last_stderr_line()}"
        )

    def format_last_stderr_line(self) -> str:
        """Format the last line of the server's stderr, if there is one."""
        lines = [line for line in self.stderr_tail.decode(errors="replace").splitlines() if line.strip()]
        return (
            f" Its last output: {shorten(self.redact(to_one_line(lines[-1])), MAX_MESSAGE)}" if lines else ""
        )

    def redact(self, text: str) -> str:
        """Remove the configured secrets from `text`."""
        return redact_text(text, self.server.secrets)


async def list_all_tools(session: ClientSession) -> list[mcp.Tool]:
    """Return all tools of a server, page by page. One that is listed again is the same tool."""
    page = await session.list_tools()
    found = {tool.name: tool for tool in page.tools}
    while cursor := read_wire(page).get("nextCursor"):
        page = await session.list_tools(params=mcp.PaginatedRequestParams(cursor=cursor))
        found |= {tool.name: tool for tool in page.tools}
    return [*found.values()]


def read_wire(message: BaseModel) -> dict[str, Any]:
    """Return a message under the names of the protocol: those of Python differ between versions."""
    return message.model_dump(mode="json", by_alias=True)


def read_error(error: Any) -> tuple[int, str] | None:
    """Return the code and message of a protocol error; None for another."""
    return (error.error.code, error.error.message) if isinstance(error, McpError) else None


def looks_like_answer(error: Exception) -> bool:
    """Tell whether a line that could not be parsed was meant as MCP, and was not just printed."""
    if not isinstance(error, ValidationError):
        return False
    for one in error.errors():
        given = one["input"]  # the line, or the JSON in it
        if "jsonrpc" in str(given) or (isinstance(given, dict) and {"id", "result"} <= given.keys()):
            return True
    return False


def explain_bad_answer(error: ValueError | RuntimeError) -> str:
    """Say what is wrong with an answer that breaks the protocol or the tool's output schema."""
    if isinstance(error, ValidationError):
        found = error.errors()
        # of the forms that a message may have, an answer has this one
        first = next((one for one in found if "JSONRPCResponse" in one["loc"]), found[0])
        where = ".".join(map(str, first["loc"]))
        return f"its answer could not be read: {where}: {first['msg']}".replace(": :", ":")
    return str(error).partition("\n")[0]


def explain_http_answer(said: str, answered: str) -> str:
    """Say what is wrong with an HTTP answer that the library could not read; other words stay as they are."""
    if said == HTTP_ERROR and answered:
        return f"it answered {answered}"
    if not said.startswith(NOT_MCP):
        return said
    broken = re.search(r"Invalid JSON: [^\[\n]+", said)
    why = broken[0].strip() if broken else "it is not MCP" if "\n" in said else said
    return f"its answer could not be read: {why}"


def explain_failure(server: McpServer, error: BaseException, answered: str) -> str:
    """Say why a session could not be opened; `answered` is the last HTTP response."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    where = strip_credentials(server.url)
    text = explain_bad_answer(error) if isinstance(error, ValidationError) else str(error)
    said = to_one_line(shorten(text, MAX_MESSAGE)) or type(error).__name__
    match error:
        case TimeoutError():
            first = f"{where} answered {answered}, and then nothing" if answered else "it did not answer"
            said = f"{first} within {START_TIMEOUT:g} s"
        case FileNotFoundError() if server.command:
            said = f"the command {server.command!r} or the folder {server.cwd or '.'!r} does not exist"
        case httpx.HTTPStatusError() | McpError() if answered and not answered.startswith("200"):
            said = f"{where} answered {answered}"
        case _ if answered and (isinstance(error, ValueError | RuntimeError) or said.startswith(NOT_MCP)):
            said = f"{where} answered {answered}, which is not MCP"
        case httpx.TransportError():
            said = f"{where} cannot be reached: {said}"
        case _ if read_error(error) in CLOSED or (server.command and isinstance(error, CONNECTION_LOST)):
            said = "it ended right after its start"  # noticed by a read or a write, whichever comes first
        case OSError():
            said = f"{server.command!r} cannot be started: {error.strerror}"
    return f"{said}."
