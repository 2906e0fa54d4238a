"""Reads `.mcp.json`: the MCP servers, and what they need."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from wakeloop.cli.agent_spec import is_http_url
from wakeloop.cli.failures import CommandError, usage_error
from wakeloop.model.redaction import collect_secrets
from wakeloop.text.characters import quote_path

DEFAULT_FILE = ".mcp.json"  # what other tools look for in a working folder
STRING_KEYS, LIST_KEYS, MAPPING_KEYS, BOOLEAN_KEYS = (
    ("type", "command", "cwd", "url"),
    ("args",),
    ("env", "headers"),
    ("disabled",),
)
KEYS = (*STRING_KEYS, *LIST_KEYS, *MAPPING_KEYS, *BOOLEAN_KEYS)
COMMAND_KEYS, ADDRESS_KEYS = ("args", "env", "cwd"), ("headers",)
HTTP_TYPES = ("http", "streamable-http", "streamable_http", "streamableHttp")
PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
VARIABLE = re.compile(r"([A-Za-z_]\w*)(?::-(.*))?", re.DOTALL)


@dataclass(frozen=True)
class McpServer:
    """How an MCP server is reached, by a command or an address; `secrets` are what no error may tell."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    cwd: str = ""
    url: str = field(default="", repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


def read_servers(path: Path) -> list[McpServer]:
    """Read and check a file, and put variables in their places; a server that is `disabled` is left out."""
    servers = read_json_file(path).get("mcpServers")
    if not isinstance(servers, dict):
        shape = '{"mcpServers": {"NAME": {"command": "…", "args": []}}}'
        raise usage_error(f"{quote_path(path)}: it names no servers; its form is {shape}.")
    checked = {
        name: check_server(given, f"{quote_path(path)}: the server {name!r}")
        for name, given in servers.items()
    }
    return [
        expand_server(name, given, f"{quote_path(path)}: the server {name!r}")
        for name, given in checked.items()
        if not given.get("disabled")
    ]


def read_json_file(path: Path) -> dict[str, Any]:
    """Read a file that holds a JSON object; it may begin with a byte order mark."""
    try:
        given = json.loads(
            path.read_text(encoding="utf-8-sig"), object_pairs_hook=refuse_duplicate_keys(path)
        )
    except UnicodeDecodeError:
        raise usage_error(f"{quote_path(path)} is not UTF-8 text.") from None
    except (OSError, RecursionError) as error:
        why = getattr(error, "strerror", None) or "it is nested too deeply"
        raise usage_error(f"{str(path)!r} for --mcp cannot be read: {why}.") from None
    except json.JSONDecodeError as error:
        raise usage_error(
            f"{quote_path(path)}, line {error.lineno}: this is not JSON: {error.msg}."
        ) from None
    if not isinstance(given, dict):
        raise usage_error(f"{quote_path(path)}: a JSON object is due here.")
    return given


def refuse_duplicate_keys(path: Path) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Make the reader of an object in which no key stands twice."""

    def taken(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise usage_error(f"{quote_path(path)}: the key {key!r} stands twice.")
            found[key] = value
        return found

    return taken


def check_server(given: Any, which: str) -> dict[str, Any]:
    """Check one server's keys, and what they hold."""
    if not isinstance(given, dict):
        raise usage_error(f"{which} must be an object of keys and values.")
    for key, value in given.items():
        if key not in KEYS:
            near = get_close_matches(key, KEYS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"allowed are {', '.join(KEYS)}."
            raise usage_error(f"{which} has a key {key!r}, which there is not; {hint}")
        if due := find_expected_type(key, value):
            raise usage_error(f"{which}: {key} must be {due}.")
    kind = given.get("type", "http" if "url" in given else "stdio")
    if kind not in ("stdio", *HTTP_TYPES):
        raise usage_error(f"{which}: there is no type {kind!r} here; there are stdio and http.")
    way, other, strange = (
        ("command", "url", ADDRESS_KEYS) if kind == "stdio" else ("url", "command", COMMAND_KEYS)
    )
    if not given.get(way):
        raise usage_error(f"{which} needs a {way}, since its type is {kind}.")
    if odd := [key for key in (other, *strange) if key in given]:
        raise usage_error(f"{which} has a {way}, so {odd[0]!r} has no place there.")
    return given


def find_expected_type(key: str, value: Any) -> str:
    """What is due under a key where its value does not fit; "" where it does."""
    if key in STRING_KEYS:
        return "" if isinstance(value, str) and "\0" not in value else "a text"
    if key in BOOLEAN_KEYS:
        return "" if isinstance(value, bool) else "true or false"
    parts = value if key in LIST_KEYS else [*value.values()] if isinstance(value, dict) else None
    due = "a list of texts" if key in LIST_KEYS else "an object of names and texts"
    fits = isinstance(parts, list) and all(isinstance(one, str) and "\0" not in one for one in parts)
    return "" if fits else due


def expand_server(name: str, given: Mapping[str, Any], which: str) -> McpServer:
    """Put the variables in their places, `${NAME}` and `${NAME:-otherwise}`."""
    used: dict[str, str] = {}

    def put(value: Any) -> Any:
        if isinstance(value, str):
            return PLACEHOLDER.sub(lambda found: expand_variable(found[1], which, used), value)
        return {key: put(one) for key, one in value.items()} if isinstance(value, dict) else map(put, value)

    whole = {key: put(given[key]) for key in KEYS if key in given and key not in ("type", *BOOLEAN_KEYS)}
    server = McpServer(name, **{**whole, "args": tuple(whole.get("args", ()))})
    if server.url and not is_http_url(server.url):
        raise usage_error(f"{which}: its url cannot be read: write http://HOST/PATH or https://HOST/PATH.")
    carried = {"variables": used, "env": server.env, "headers": server.headers, "url": server.url}
    return McpServer(**{**vars(server), "secrets": tuple(collect_secrets(carried))})


def expand_variable(said: str, which: str, used: dict[str, str]) -> str:
    """What a variable of the environment says; it is noted as `used`."""
    if (found := VARIABLE.fullmatch(said)) is None:
        raise server_error(which, f"${{{said}}} is no variable; write ${{NAME}} or ${{NAME:-otherwise}}.")
    name, otherwise = found.groups()
    value = os.environ.get(name) or otherwise
    if value is None:
        raise server_error(which, f"it needs the variable {name}, which is not set.")
    used[name] = value
    return value


def server_error(which: str, why: str) -> CommandError:
    """An error of whoever wrote the file or set the variables."""
    return usage_error(f"{which}: {why}")
