"""Tools of MCP servers, asked for, their results as text."""

import json
import re
from collections.abc import Callable
from typing import Any

from langchain_core.tools import BaseTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp import types as mcp

from wakeloop.cli.failures import usage_error
from wakeloop.cli.mcp_servers import McpConnection
from wakeloop.text.characters import pluralize, shorten, to_one_line
from wakeloop.text.secrets import HIDDEN

MAX_RESULT = 100_000  # characters of a result
INVALID_NAME_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")  # what providers refuse in the name of a tool
MAX_NAME = 64  # characters of such a name


def make_mcp_tools(server: McpConnection, wait: Callable[[Any], Any], *, ask: bool) -> list[BaseTool]:
    """The tools of a server, which run by `wait`; with `ask`, what does more than read is asked for first.

    Raises `CommandError` for one that no model can be shown.
    """
    asked = f"Make this call of {server.label}?"
    tools: list[BaseTool] = [
        McpTool(
            name=INVALID_NAME_CHARACTER.sub("_", one.name)[:MAX_NAME],
            description=one.description or one.name,
            args_schema=one.inputSchema,
            remote=one.name,
            asked="" if not ask or (one.annotations and one.annotations.readOnlyHint) else asked,
            server=server,
            wait=wait,
        )
        for one in server.tools
    ]
    for tool in tools:
        if why := find_schema_problem(tool):
            raise usage_error(server.redact(f"T{server.label[1:]} cannot be used: {why}."))
    return tools


def find_schema_problem(tool: BaseTool) -> str:
    """Why a model cannot be shown a tool; "" where it can."""
    if not tool.name:
        return "it has a tool without a name"
    try:
        convert_to_openai_tool(tool)
    except Exception as error:  # noqa: BLE001 - whatever a schema can be
        return f"the arguments of its tool {tool.name!r} cannot be read: {to_one_line(shorten(str(error)))}"
    return ""


class McpTool(BaseTool):
    """A tool of an MCP server; `asked` is what the person is asked before each call."""

    remote: str
    asked: str
    server: McpConnection
    wait: Callable[[Any], Any]

    def _run(self, /, *_: Any, **arguments: Any) -> str:
        result: mcp.CallToolResult = self.wait(self.server.call_tool(self.remote, arguments))
        said = format_result(result)
        if result.isError:
            raise ToolException(cut_middle(self.server.redact(said)))
        for secret in self.server.server.secrets:
            said = said.replace(secret, HIDDEN)
        return cut_middle(said)


def format_result(result: mcp.CallToolResult) -> str:
    """A result as text: what is no text is named."""
    parts = [format_block(block) for block in result.content]
    if not parts and result.structuredContent is not None:
        parts = [json.dumps(result.structuredContent, ensure_ascii=False)]
    return "\n".join(parts) or "(no content)"


def cut_middle(text: str) -> str:
    """A text without its middle where it is too long."""
    if (missing := len(text) - MAX_RESULT) <= 0:
        return text
    half = MAX_RESULT // 2
    return f"{text[:half]}\n[{pluralize(missing, 'character')} left out]\n{text[-half:]}"


def format_block(block: mcp.ContentBlock) -> str:
    """One block of a result: its text, or what it is in a word."""
    match block:
        case mcp.TextContent():
            return block.text
        case mcp.ImageContent() | mcp.AudioContent():
            return f"[{block.type}, {block.mimeType}, {format_base64_size(block.data)}: not shown]"
        case mcp.ResourceLink():
            kind = f", {block.mimeType}" if block.mimeType else ""
            return f"[resource {block.uri}{kind}: not read]"
    if isinstance(block.resource, mcp.TextResourceContents):
        return block.resource.text
    kind = block.resource.mimeType or "bytes"
    return f"[resource {block.resource.uri}, {kind}, {format_base64_size(block.resource.blob)}: not shown]"


def format_base64_size(base64: str) -> str:
    """How many bytes stand in base 64."""
    return pluralize(len(base64.rstrip("=")) * 3 // 4, "byte")
