"""Tools of MCP servers, with approval and text results."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from hashlib import blake2s
from itertools import chain
from typing import Any

from langchain_core.tools import BaseTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp import types as mcp

from wakeloop.cli.failures import usage_error
from wakeloop.cli.mcp_servers import McpConnection, read_wire
from wakeloop.loop.approval import Review
from wakeloop.text.characters import pluralize, shorten, to_one_line
from wakeloop.text.secrets import HIDDEN

MAX_RESULT = 100_000  # characters of a result
INVALID_NAME_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")  # providers reject these in tool names
MAX_NAME = 64  # characters of a tool name
MAX_SCHEMA = 10_000  # parts of a tool's schema, with its references filled in


def choose_tool_names(servers: Sequence[McpConnection]) -> list[list[str]]:
    """Return the names under which a model sees each tool of each server.

    Characters that providers reject become `_`. Names that would be the same get a suffix made from the names
    of server and tool, so it is the same at every start. The first tool that really has the name keeps it.
    """
    shown = [[make_valid_name(remote.name) for remote in server.tools] for server in servers]
    uses = Counter(chain.from_iterable(shown))
    taken = set(uses)
    kept: set[str] = set()
    for server, names in zip(servers, shown, strict=True):
        for place, remote in enumerate(server.tools):
            name = names[place]
            is_own = name == remote.name and name not in kept
            if is_own:
                kept.add(name)
            elif uses[name] > 1 or (name and not name.strip("_-")):
                names[place] = add_suffix(name, f"{server.server.name}/{remote.name}", taken)
                taken.add(names[place])
    return shown


def add_suffix(name: str, origin: str, taken: Collection[str]) -> str:
    """Return a name with a suffix made from `origin`, longer where a short one would give a taken name."""
    named = ""
    for size in range(2, 17):
        suffix = blake2s(origin.encode("utf-8", "replace"), digest_size=size).hexdigest()
        named = f"{name.strip('_-')[: MAX_NAME - 1 - len(suffix)] or 'tool'}_{suffix}"
        if named not in taken:
            break
    return named


def make_valid_name(name: str) -> str:
    """Return a name without the characters that providers reject, cut to the length that they allow."""
    return INVALID_NAME_CHARACTER.sub("_", name)[:MAX_NAME]


def make_mcp_tools(
    server: McpConnection, names: Sequence[str], wait: Callable[[Any], Any], *, ask: bool
) -> list[BaseTool]:
    """Make the tools of a server under these names; `wait` runs their calls.

    With `ask`, the user approves each call of a tool that does more than read. Raises `CommandError` for a
    tool that cannot be shown to a model.
    """
    tools: list[BaseTool] = []
    review = Review(("approve", "edit", "reject"), f"Make this call of {server.label}?")
    for remote, name in zip(server.tools, names, strict=True):
        sent = read_wire(remote)
        only_reads = (sent["annotations"] or {}).get("readOnlyHint")
        tool = McpTool(
            name=name,
            description=remote.description or remote.name,
            args_schema=sent["inputSchema"],
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
        size = count_expanded(tool.args_schema)
        if size > MAX_SCHEMA:
            return (
                f"the arguments of its tool {tool.name!r} describe {size:,} values, more than {MAX_SCHEMA:,}"
            )
        convert_to_openai_tool(tool)
    except Exception as error:  # noqa: BLE001 - a broken schema can raise anything
        return f"the arguments of its tool {tool.name!r} cannot be read: {to_one_line(shorten(str(error)))}"
    return ""


def count_expanded(schema: Any) -> int:
    """Count the parts of a JSON schema with its references to `$defs` filled in, without filling them in.

    Each reference may hold two more, so filling in thirty of them could take hours.
    """
    root = schema if isinstance(schema, dict) else {}
    known: dict[str, int] = {}

    def count(part: Any) -> int:
        if isinstance(part, list):
            return 1 + sum(map(count, part))
        if not isinstance(part, dict):
            return 1
        size = 1 + sum(count(value) for key, value in part.items() if key not in ("$defs", "definitions"))
        name = part.get("$ref")
        if isinstance(name, str):
            if name not in known:
                known[name] = 0  # a reference to itself is not filled in again
                known[name] = count(find_definition(root, name))
            size += known[name]
        return size

    return count(root)


def find_definition(schema: dict[str, Any], reference: str) -> Any:
    """Return what a reference such as `#/$defs/Name` points to; None if there is nothing."""
    found: Any = schema
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, dict) else None
    return found


class McpTool(BaseTool):
    """A tool of an MCP server; where its metadata say so, a person is asked before each call."""

    remote: str
    server: McpConnection
    wait: Callable[[Any], Any]

    def _run(self, /, *_: Any, **arguments: Any) -> str:
        result: mcp.CallToolResult = self.wait(self.server.call_tool(self.remote, arguments))
        sent = read_wire(result)
        text = format_result(sent)
        if sent["isError"]:
            raise ToolException(cut_middle(self.server.redact(text)))
        # Only the configured secrets: a result may be about keys and must not lose its own words.
        for secret in self.server.server.secrets:
            text = text.replace(secret, HIDDEN)
        return cut_middle(text)


def format_result(result: dict[str, Any]) -> str:
    """Format a result as text; other content is named, not shown."""
    parts = [format_block(block) for block in result["content"]]
    if not parts and result["structuredContent"] is not None:
        parts = [json.dumps(result["structuredContent"], ensure_ascii=False)]
    return "\n".join(parts) or "(no content)"


def cut_middle(text: str) -> str:
    """Cut the middle out of text that is too long."""
    missing = len(text) - MAX_RESULT
    if missing <= 0:
        return text
    half = MAX_RESULT // 2
    return f"{text[:half]}\n[{pluralize(missing, 'character')} left out]\n{text[-half:]}"


def format_block(block: dict[str, Any]) -> str:
    """Format one block of a result: its text, or what kind of content it is."""
    match block:
        case {"type": "text", "text": str(text)} | {"resource": {"text": str(text)}}:
            return text
        case {"type": "image" | "audio" as kind, "data": data}:
            return f"[{kind}, {block['mimeType']}, {format_base64_size(data)}: not shown]"
        case {"type": "resource_link", "uri": uri}:
            kind = f", {block['mimeType']}" if block["mimeType"] else ""
            return f"[resource {uri}{kind}: not read]"
    resource = block["resource"]
    kind = resource["mimeType"] or "bytes"
    return f"[resource {resource['uri']}, {kind}, {format_base64_size(resource['blob'])}: not shown]"


def format_base64_size(base64: str) -> str:
    """Return how many bytes a base64 string encodes."""
    return pluralize(len(base64.rstrip("=")) * 3 // 4, "byte")
