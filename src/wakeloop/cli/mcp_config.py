"""Read `.mcp.json`: MCP servers and their variables."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from wakeloop.cli.failures import usage_error
from wakeloop.text.addresses import is_http_url
from wakeloop.text.characters import quote_path
from wakeloop.text.wording import suggest

DEFAULT_FILE = ".mcp.json"  # where other tools look in the working folder
Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
STRING, OBJECT = (Text, "a string"), (dict[str, Text], "an object of strings")
KEYS: Mapping[str, tuple[Any, str]] = {  # the type of each value, and its name
    **dict.fromkeys(("type", "command", "cwd", "url"), STRING),
    "args": (list[Text], "a list of strings"),
    **dict.fromkeys(("env", "headers"), OBJECT),
    "disabled": (bool, "true or false"),
}
SERVER_FIELDS = ("command", "cwd", "url", "args", "env", "headers")  # of an McpServer
COMMAND_KEYS, ADDRESS_KEYS = ("args", "env", "cwd"), ("headers",)
HTTP_TYPES = ("http", "streamable-http", "streamable_http", "streamableHttp")
PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
VARIABLE = re.compile(r"([A-Za-z_]\w*)(?::-(.*))?", re.DOTALL)


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
    if not isinstance(servers, dict):
        shape = '{"mcpServers": {"NAME": {"command": "…", "args": []}}}'
        raise usage_error(f"{quote_path(path)} must contain servers, as in {shape}.")
    for name, given in servers.items():  # before any variable is looked up
        check_server(given, f"{quote_path(path)}: the server {name!r}")
    found = []
    for name, given in servers.items():
        if not given.get("disabled"):
            found.append(expand_server(name, given, f"{quote_path(path)}: the server {name!r}"))
    return found


def read_json_file(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file, which may start with a byte order mark."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        given = json.loads(text, object_pairs_hook=partial(refuse_duplicate_keys, path))
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


def refuse_duplicate_keys(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its pairs. Raises `CommandError` for a key that occurs twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise usage_error(f"{quote_path(path)} has the key {key!r} twice.")
        found[key] = value
    return found


def check_server(given: Any, which: str) -> None:
    """Check one server's keys and their values."""
    if not isinstance(given, dict):
        raise usage_error(f"{which} must be an object.")
    for key, value in given.items():
        if key not in KEYS:
            raise usage_error(f"{which} has an unknown key {key!r}. {suggest(key, KEYS)}")
        kind, expected = KEYS[key]
        try:
            TypeAdapter(kind).validate_python(value, strict=True)
        except ValidationError:
            raise usage_error(f"{which}: {key} must be {expected}.") from None
    kind = given.get("type", "http" if "url" in given else "stdio")
    if kind not in ("stdio", *HTTP_TYPES):
        raise usage_error(f"{which}: type must be stdio or http, got {kind!r}.")
    needed, forbidden = "url", ["command", *COMMAND_KEYS]
    if kind == "stdio":
        needed, forbidden = "command", ["url", *ADDRESS_KEYS]
    if not given.get(needed):
        raise usage_error(f"{which} needs a {needed}, since its type is {kind}.")
    for key in forbidden:
        if key in given:
            raise usage_error(f"{which} has a {needed}, so it cannot have {key!r}.")


def expand_server(name: str, given: Mapping[str, Any], which: str) -> McpServer:
    """Fill in the variables `${NAME}` and `${NAME:-default}` of one server."""
    used: dict[str, str] = {}

    def expand(value: Any) -> Any:
        if isinstance(value, str):
            return PLACEHOLDER.sub(lambda found: expand_variable(found[1], which, used), value)
        if isinstance(value, dict):
            return {key: expand(part) for key, part in value.items()}
        return tuple(map(expand, value))

    expanded = expand({key: given[key] for key in SERVER_FIELDS if key in given})
    server = McpServer(name, **expanded)
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
