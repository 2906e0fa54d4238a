"""Reads `.mcp.json`: the MCP servers, and what they need."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from wakeloop.cli.failures import CommandError, usage
from wakeloop.cli.recipe import is_address
from wakeloop.model.redaction import secrets_of
from wakeloop.text.characters import to_copy

FOUND = ".mcp.json"  # what other tools look for in a working folder
TEXTS, LISTS, MAPS, SWITCHES = ("type", "command", "cwd", "url"), ("args",), ("env", "headers"), ("disabled",)
KEYS = (*TEXTS, *LISTS, *MAPS, *SWITCHES)
OF_COMMANDS, OF_ADDRESSES = ("args", "env", "cwd"), ("headers",)
HTTP = ("http", "streamable-http", "streamable_http", "streamableHttp")
BLANK = re.compile(r"\$\{([^}]*)\}")
VARIABLE = re.compile(r"([A-Za-z_]\w*)(?::-(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Server:
    """How an MCP server is reached, by a command or an address; `secrets` are what no error may tell."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    cwd: str = ""
    url: str = field(default="", repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


def servers_in(path: Path) -> list[Server]:
    """Read and check a file, and put variables in their places; a server that is `disabled` is left out."""
    servers = read(path).get("mcpServers")
    if not isinstance(servers, dict):
        shape = '{"mcpServers": {"NAME": {"command": "…", "args": []}}}'
        raise usage(f"{to_copy(path)}: it names no servers; its form is {shape}.")
    checked = {name: check(given, f"{to_copy(path)}: the server {name!r}") for name, given in servers.items()}
    return [
        filled(name, given, f"{to_copy(path)}: the server {name!r}")
        for name, given in checked.items()
        if not given.get("disabled")
    ]


def read(path: Path) -> dict[str, Any]:
    """Read a file that holds a JSON object; it may begin with a byte order mark."""
    try:
        given = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=once(path))
    except UnicodeDecodeError:
        raise usage(f"{to_copy(path)} is not UTF-8 text.") from None
    except (OSError, RecursionError) as error:
        why = getattr(error, "strerror", None) or "it is nested too deeply"
        raise usage(f"{str(path)!r} for --mcp cannot be read: {why}.") from None
    except json.JSONDecodeError as error:
        raise usage(f"{to_copy(path)}, line {error.lineno}: this is not JSON: {error.msg}.") from None
    if not isinstance(given, dict):
        raise usage(f"{to_copy(path)}: a JSON object is due here.")
    return given


def once(path: Path) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Make the reader of an object in which no key stands twice."""

    def taken(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise usage(f"{to_copy(path)}: the key {key!r} stands twice.")
            found[key] = value
        return found

    return taken


def check(given: Any, which: str) -> dict[str, Any]:
    """Check one server's keys, and what they hold."""
    if not isinstance(given, dict):
        raise usage(f"{which} must be an object of keys and values.")
    for key, value in given.items():
        if key not in KEYS:
            near = get_close_matches(key, KEYS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"allowed are {', '.join(KEYS)}."
            raise usage(f"{which} has a key {key!r}, which there is not; {hint}")
        if due := misfit(key, value):
            raise usage(f"{which}: {key} must be {due}.")
    kind = given.get("type", "http" if "url" in given else "stdio")
    if kind not in ("stdio", *HTTP):
        raise usage(f"{which}: there is no type {kind!r} here; there are stdio and http.")
    way, other, strange = (
        ("command", "url", OF_ADDRESSES) if kind == "stdio" else ("url", "command", OF_COMMANDS)
    )
    if not given.get(way):
        raise usage(f"{which} needs a {way}, since its type is {kind}.")
    if odd := [key for key in (other, *strange) if key in given]:
        raise usage(f"{which} has a {way}, so {odd[0]!r} has no place there.")
    return given


def misfit(key: str, value: Any) -> str:
    """What is due under a key where its value does not fit; "" where it does."""
    if key in TEXTS:
        return "" if isinstance(value, str) and "\0" not in value else "a text"
    if key in SWITCHES:
        return "" if isinstance(value, bool) else "true or false"
    parts = value if key in LISTS else [*value.values()] if isinstance(value, dict) else None
    due = "a list of texts" if key in LISTS else "an object of names and texts"
    fits = isinstance(parts, list) and all(isinstance(one, str) and "\0" not in one for one in parts)
    return "" if fits else due


def filled(name: str, given: Mapping[str, Any], which: str) -> Server:
    """Put the variables in their places, `${NAME}` and `${NAME:-otherwise}`."""
    used: dict[str, str] = {}

    def put(value: Any) -> Any:
        if isinstance(value, str):
            return BLANK.sub(lambda found: variable(found[1], which, used), value)
        return {key: put(one) for key, one in value.items()} if isinstance(value, dict) else map(put, value)

    whole = {key: put(given[key]) for key in KEYS if key in given and key not in ("type", *SWITCHES)}
    server = Server(name, **{**whole, "args": tuple(whole.get("args", ()))})
    if server.url and not is_address(server.url):
        raise usage(f"{which}: its url cannot be read: write http://HOST/PATH or https://HOST/PATH.")
    carried = {"variables": used, "env": server.env, "headers": server.headers, "url": server.url}
    return Server(**{**vars(server), "secrets": tuple(secrets_of(carried))})


def variable(said: str, which: str, used: dict[str, str]) -> str:
    """What a variable of the environment says; it is noted as `used`."""
    if (found := VARIABLE.fullmatch(said)) is None:
        raise refused(which, f"${{{said}}} is no variable; write ${{NAME}} or ${{NAME:-otherwise}}.")
    name, otherwise = found.groups()
    value = os.environ.get(name) or otherwise
    if value is None:
        raise refused(which, f"it needs the variable {name}, which is not set.")
    used[name] = value
    return value


def refused(which: str, why: str) -> CommandError:
    """An error of whoever wrote the file or set the variables."""
    return usage(f"{which}: {why}")
