"""Tools of MCP servers, asked for, their results as text."""

import json
import re
from collections.abc import Callable
from typing import Any

from langchain_core.tools import BaseTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp import types as mcp

from wakeloop.cli.failures import usage
from wakeloop.cli.mcp_servers import Connected
from wakeloop.text.characters import one_line, plural, shorten
from wakeloop.text.secrets import HIDDEN

LONGEST = 100_000  # characters of a result
NO_NAME = re.compile(r"[^A-Za-z0-9_-]")  # what providers refuse in the name of a tool
MOST = 64  # characters of such a name


def remote_tools(server: Connected, wait: Callable[[Any], Any], *, ask: bool) -> list[BaseTool]:
    """The tools of a server, which run by `wait`; with `ask`, what does more than read is asked for first.

    Raises `CommandError` for one that no model can be shown.
    """
    asked = f"Make this call of {server.who}?"
    tools: list[BaseTool] = [
        RemoteTool(
            name=NO_NAME.sub("_", one.name)[:MOST],
            description=one.description or one.name,
            args_schema=one.inputSchema,
            remote=one.name,
            asked="" if not ask or (one.annotations and one.annotations.readOnlyHint) else asked,
            server=server,
            wait=wait,
        )
        for one in server.listed
    ]
    for tool in tools:
        if why := unshown(tool):
            raise usage(server.discreet(f"T{server.who[1:]} cannot be used: {why}."))
    return tools


def unshown(tool: BaseTool) -> str:
    """Why a model cannot be shown a tool; "" where it can."""
    if not tool.name:
        return "it has a tool without a name"
    try:
        convert_to_openai_tool(tool)
    except Exception as error:  # noqa: BLE001 - whatever a schema can be
        return f"the arguments of its tool {tool.name!r} cannot be read: {one_line(shorten(str(error)))}"
    return ""


class RemoteTool(BaseTool):
    """A tool of an MCP server; `asked` is what the person is asked before each call."""

    remote: str
    asked: str
    server: Connected
    wait: Callable[[Any], Any]

    def _run(self, /, *_: Any, **arguments: Any) -> str:
        result: mcp.CallToolResult = self.wait(self.server.call(self.remote, arguments))
        said = result_text(result)
        if result.isError:
            raise ToolException(cut(self.server.discreet(said)))
        for secret in self.server.server.secrets:
            said = said.replace(secret, HIDDEN)
        return cut(said)


def result_text(result: mcp.CallToolResult) -> str:
    """A result as text: what is no text is named."""
    parts = [block_text(block) for block in result.content]
    if not parts and result.structuredContent is not None:
        parts = [json.dumps(result.structuredContent, ensure_ascii=False)]
    return "\n".join(parts) or "(no content)"


def cut(text: str) -> str:
    """A text without its middle where it is too long."""
    if (missing := len(text) - LONGEST) <= 0:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n[{plural(missing, 'character')} left out]\n{text[-half:]}"


def block_text(block: mcp.ContentBlock) -> str:
    """One block of a result: its text, or what it is in a word."""
    match block:
        case mcp.TextContent():
            return block.text
        case mcp.ImageContent() | mcp.AudioContent():
            return f"[{block.type}, {block.mimeType}, {size_of(block.data)}: not shown]"
        case mcp.ResourceLink():
            kind = f", {block.mimeType}" if block.mimeType else ""
            return f"[resource {block.uri}{kind}: not read]"
    if isinstance(block.resource, mcp.TextResourceContents):
        return block.resource.text
    kind = block.resource.mimeType or "bytes"
    return f"[resource {block.resource.uri}, {kind}, {size_of(block.resource.blob)}: not shown]"


def size_of(base64: str) -> str:
    """How many bytes stand in base 64."""
    return plural(len(base64.rstrip("=")) * 3 // 4, "byte")
