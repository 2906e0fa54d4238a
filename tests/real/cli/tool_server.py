"""An MCP server with tools of every kind, for tests: over stdio, or on a port over HTTP."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # see conftest.py

try:
    from mcp.server.mcpserver import Context, Image, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
except ImportError:  # mcp 1
    from mcp.server.fastmcp import Context, Image
    from mcp.server.fastmcp import FastMCP as MCPServer
    from mcp.server.fastmcp.exceptions import ToolError
from mcp.types import (  # noqa: E402
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

server = MCPServer("tests", log_level="ERROR")
READS = ToolAnnotations(readOnlyHint=True)


@server.tool(annotations=READS)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=READS)
def echo(config: str, run_manager: str) -> str:
    """Say it again, with arguments named like LangChain's own."""
    return f"{config} {run_manager}"


@server.tool(name="dotted.name/one", annotations=READS)
def dotted() -> str:
    """A name that providers refuse."""
    return "dotted"


@server.tool(annotations=READS)
def pid() -> str:
    """The number of this process."""
    return str(os.getpid())


@server.tool(annotations=READS)
def surroundings(name: str) -> str:
    """A variable of the environment, or the folder."""
    return os.environ.get(name, "not set") if name else str(Path.cwd())


@server.tool(annotations=READS)
def fail(words: str) -> str:
    """Fail, with the values of variables in the words."""
    raise ToolError(os.path.expandvars(words))


@server.tool(annotations=READS, structured_output=False)
def blocks() -> list[Any]:
    """Return every kind of block."""
    data = base64.b64encode(b"12345").decode()
    uri: Any = "file:///notes.bin"
    kind = "application/x-notes"
    return [
        TextContent(type="text", text="first"),
        Image(data=b"1234", format="png"),  # the library makes a block of it
        AudioContent(type="audio", data=data, mimeType="audio/wav"),
        ResourceLink(type="resource_link", name="notes", uri=uri, mimeType=kind),
        ResourceLink(type="resource_link", name="notes", uri=uri),
        EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, text="inside")),
        EmbeddedResource(type="resource", resource=BlobResourceContents(uri=uri, blob=data, mimeType=kind)),
    ]


@server.tool(annotations=READS, structured_output=False)
def nothing() -> list[Any]:
    """Return no block at all."""
    return []


@server.tool(annotations=READS)
def shapes() -> CallToolResult:
    """Return structured content, and no block."""
    return CallToolResult(content=[], structuredContent={"ä": [1]})


@server.tool(annotations=READS)
def header(name: str, ctx: Context) -> str:
    """Return a header of this very request."""
    return str(ctx.request_context.request.headers[name])


@server.tool(annotations=READS)
def long(count: int) -> str:
    """Return this many letters."""
    return "a" * count


@server.tool(annotations=READS)
async def slow(seconds: float) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return "slept"


@server.tool(annotations=READS)
def die() -> str:
    """End the process during a call."""
    print("out of memory", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
def write(path: str, text: str) -> str:
    """Write a file, so that the tool does more than read."""
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)
    return "written"


if __name__ == "__main__":
    if file := os.environ.get("PID"):
        Path(file).write_text(str(os.getpid()))
    if os.environ.get("STUBBORN"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        threading.Thread(target=time.sleep, args=(60,)).start()  # it outlives the end of its input
    if not sys.argv[1:]:
        server.run("stdio")
    elif hasattr(server.settings, "port"):  # mcp 1
        server.settings.port = int(sys.argv[1])
        server.run("streamable-http")
    else:
        server.run("streamable-http", port=int(sys.argv[1]))
