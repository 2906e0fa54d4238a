"""Tools of MCP servers, with approval and text results."""

import json
import re
from collections.abc import Callable
from typing import Any

from langchain_core.tools import BaseTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp import types as mcp

from wakeloop.cli.failures import usage_error
from wakeloop.cli.mcp_servers import McpConnection
from wakeloop.loop.approval import Review
from wakeloop.text.characters import pluralize, shorten, to_one_line
from wakeloop.text.secrets import HIDDEN

MAX_RESULT = 100_000  # characters of a result
INVALID_NAME_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")  # providers reject these in tool names
MAX_NAME = 64  # characters of a tool name


def make_mcp_tools(server: McpConnection, wait: Callable[[Any], Any], *, ask: bool) -> list[BaseTool]:
    """Make the tools of a server; `wait` runs their calls.

    With `ask`, the user approves each call of a tool that does more than read. Raises `CommandError` for a
    tool that cannot be shown to a model.
    """
    tools: list[BaseTool] = []
    review = Review(("approve", "edit", "reject"), f"Make this call of {server.label}?")
    for remote in server.tools:
        only_reads = remote.annotations is not None and remote.annotations.readOnlyHint
        tool = McpTool(
            name=INVALID_NAME_CHARACTER.sub("_", remote.name)[:MAX_NAME],
            description=remote.description or remote.name,
            args_schema=remote.inputSchema,
            remote=remote.name,
            metadata=review.to_metadata() if ask and not only_reads else None,
            server=server,
            wait=wait,
        )
        if problem := find_schema_problem(tool):
            raise usage_error(server.redact(f"T{server.label[1:]} cannot be used: {problem}."))
        tools.append(tool)
    return tools


def find_schema_problem(tool: BaseTool) -> str:
    """Return why a tool cannot be shown to a model; "" if it can."""
    if not tool.name:
        return "it has a tool without a name"
    try:
        convert_to_openai_tool(tool)
    except Exception as error:  # noqa: BLE001 - a broken schema can raise anything
        return f"the arguments of its tool {tool.name!r} cannot be read: {to_one_line(shorten(str(error)))}"
    return ""


class McpTool(BaseTool):
    """A tool of an MCP server; where its metadata say so, a person is asked before each call."""

    remote: str
    server: McpConnection
    wait: Callable[[Any], Any]

    def _run(self, /, *_: Any, **arguments: Any) -> str:
        result: mcp.CallToolResult = self.wait(self.server.call_tool(self.remote, arguments))
        text = format_result(result)
        if result.isError:
            raise ToolException(cut_middle(self.server.redact(text)))
        # Only the configured secrets: a result may be about keys and must not lose its own words.
        for secret in self.server.server.secrets:
            text = text.replace(secret, HIDDEN)
        return cut_middle(text)


def format_result(result: mcp.CallToolResult) -> str:
    """Format a result as text; other content is named, not shown."""
    parts = [format_block(block) for block in result.content]
    if not parts and result.structuredContent is not None:
        parts = [json.dumps(result.structuredContent, ensure_ascii=False)]
    return "\n".join(parts) or "(no content)"


def cut_middle(text: str) -> str:
    """Cut the middle out of text that is too long."""
    missing = len(text) - MAX_RESULT
    if missing <= 0:
        return text
    half = MAX_RESULT // 2
    return f"{text[:half]}\n[{pluralize(missing, 'character')} left out]\n{text[-half:]}"


def format_block(block: mcp.ContentBlock) -> str:
    """Format one block of a result: its text, or what kind of content it is."""
    match block:
        case mcp.TextContent():
            return block.text
        case mcp.ImageContent() | mcp.AudioContent():
            return f"[{block.type}, {block.mimeType}, {format_base64_size(block.data)}: not shown]"
        case mcp.ResourceLink():
            kind = f", {block.mimeType}" if block.mimeType else ""
            return f"[resource {block.uri}{kind}: not read]"
    resource = block.resource
    if isinstance(resource, mcp.TextResourceContents):
        return resource.text
    kind = resource.mimeType or "bytes"
    return f"[resource {resource.uri}, {kind}, {format_base64_size(resource.blob)}: not shown]"


def format_base64_size(base64: str) -> str:
    """Return how many bytes a base64 string encodes."""
    return pluralize(len(base64.rstrip("=")) * 3 // 4, "byte")
