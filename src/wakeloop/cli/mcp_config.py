"""Read `.mcp.json`: MCP servers and their variables."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wakeloop.cli.failures import usage_error
from wakeloop.text.addresses import is_http_url
from wakeloop.text.characters import quote_path
from wakeloop.text.wording import suggest

DEFAULT_FILE = ".mcp.json"  # where other tools look in the working folder
PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
VARIABLE = re.compile(r"([A-Za-z_]\w*)(?::-(.*))?", re.DOTALL)


class ServerEntry(BaseModel):
    """A server as the file has it."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    type: Literal["stdio", "http", "streamable-http", "streamable_http", "streamableHttp"] = "stdio"
    command: str = ""
    args: list[str] = Field(default_factory=list)
    cwd: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    disabled: bool = False


@dataclass(frozen=True)
class McpServer:
    """How to reach an MCP server, by a command or an address; errors never show its `secrets`."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    cwd: str = ""
    url: str = field(default="", repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


def read_servers(path: Path) -> list[McpServer]:
    """Read and check a file, and fill in its variables; `disabled` servers are left out."""
    servers = read_json_file(path).get("mcpServers")
    if not isinstance(servers, dict) or not all(isinstance(one, dict) for one in servers.values()):
        shape = '{"mcpServers": {"NAME": {"command": "…", "args": []}}}'
        raise usage_error(f"{quote_path(path)} must contain servers, as in {shape}.")
    found = []
    for name, given in servers.items():
        which = f"{quote_path(path)}: the server {name!r}"
        entry = check_server(given, which)
        if not entry.disabled:
            found.append(expand_server(name, entry, which))
    return found


def read_json_file(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file, which may start with a byte order mark."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        given = json.loads(text)
    except UnicodeDecodeError:
        raise usage_error(f"{quote_path(path)} is not UTF-8 text.") from None
    except (OSError, RecursionError) as error:
        why = getattr(error, "strerror", None) or "it is nested too deeply"
        raise usage_error(f"The file {str(path)!r} for --mcp cannot be read: {why}.") from None
    except json.JSONDecodeError as error:
        raise usage_error(
            f"{quote_path(path)}, line {error.lineno} is not valid JSON: {error.msg}."
        ) from None
    if not isinstance(given, dict):
        raise usage_error(f"{quote_path(path)} must contain a JSON object.")
    return given


def check_server(given: Any, which: str) -> ServerEntry:
    """Check one server's keys and their values."""
    try:
        entry = ServerEntry.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        key = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            raise usage_error(
                f"{which} has an unknown key {key!r}. {suggest(key, ServerEntry.model_fields)}"
            ) from None
        why = first["msg"].replace("Input should be", "must be")
        raise usage_error(f"{which}: {key or 'it'} {why}.") from None
    if bool(entry.command) == bool(entry.url):
        raise usage_error(f"{which} needs a command or a url, and not both.")
    return entry


def expand_server(name: str, entry: ServerEntry, which: str) -> McpServer:
    """Fill in the variables `${NAME}` and `${NAME:-default}` of one server."""
    used: dict[str, str] = {}

    def expand(value: Any) -> Any:
        if isinstance(value, str):
            return PLACEHOLDER.sub(lambda found: expand_variable(found[1], which, used), value)
        if isinstance(value, dict):
            return {key: expand(part) for key, part in value.items()}
        return tuple(map(expand, value))

    server = McpServer(name, **expand(entry.model_dump(exclude={"type", "disabled"})))
    if server.url and not is_http_url(server.url):
        raise usage_error(f"{which}: url must be an address such as https://HOST/PATH.")
    from wakeloop.model.redaction import collect_secrets  # imports LangChain

    carriers = {"variables": used, "env": server.env, "headers": server.headers, "url": server.url}
    return replace(server, secrets=tuple(collect_secrets(carriers)))


def expand_variable(text: str, which: str, used: dict[str, str]) -> str:
    """Return the value of an environment variable, and note it in `used`."""
    if (found := VARIABLE.fullmatch(text)) is None:
        raise usage_error(f"{which}: ${{{text}}} is not a variable: write ${{NAME}} or ${{NAME:-default}}.")
    name, default = found.groups()
    value = os.environ.get(name) or default
    if value is None:
        raise usage_error(f"{which} needs the environment variable {name}, which is not set.")
    used[name] = value
    return value
