"""How a thread's agent is made: why `resume` needs no options."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

from wakeloop.cli.failures import usage_error
from wakeloop.config import TOOLS
from wakeloop.text.secret_formats import SECRET_NAME
from wakeloop.text.secrets import redact_text

OWN_TOOLS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # MODULE:NAME
YAML_WORDS = {"True": True, "False": False, "Null": None, "NULL": None, "None": None, "~": None}


@dataclass(frozen=True)
class AgentSpec:
    """What a thread's agent is made of, without keys; `demo` stands for the offline model and its tools.

    `levels` are those that it all came from, `role` and `agent` the files among them; `switched_on` says that
    nobody asked for auto_continue and the preset leaves it off; without `function_calling` the model counts
    as one that cannot call tools; `verify` is the command that items are checked by; `mcp` is the file of MCP
    servers, "" where there are to be none; `imports` is the folder of the user's own tools.
    """

    model: str = ""
    base_url: str = ""
    system: str = ""
    preset: str = "wakeloop"
    settings: Mapping[str, Any] = field(default_factory=dict)
    root: str = ""
    tools: Sequence[str] = ("files",)
    demo: bool = False
    delay: float = 0
    role: str = ""
    agent: str = ""
    levels: Sequence[Mapping[str, Any]] = ()
    switched_on: bool = False
    function_calling: bool = True
    verify: str = ""
    mcp: str | None = None
    imports: str = ""

    @classmethod
    def from_json(cls, text: str) -> "Self | None":
        """Read one that was stored: what newer versions added is left out, a damaged one is None."""
        known = {one.name for one in fields(cls)}
        try:
            made = cls(**{key: value for key, value in json.loads(text).items() if key in known})
        except (ValueError, AttributeError, TypeError):
            return None
        return made if made.is_sound else None

    @property
    def is_sound(self) -> bool:
        """Whether each value is of the kind that it has here: another version may write others."""
        own: dict[str, Any] = vars(self)
        kinds: dict[type, Any] = {tuple: list | tuple, int: int | float, type(None): str | None}
        return (
            all(
                isinstance(own[key], kinds.get(type(usual), type(usual)))
                for key, usual in vars(AgentSpec()).items()
            )
            and all(isinstance(name, str) for name in own["tools"])
            and all(
                isinstance(one, Mapping) and isinstance(one.get("values"), Mapping) for one in own["levels"]
            )
        )

    def to_json(self) -> str:
        """Return it as it is stored: JSON, without a user and password in the address."""
        levels = [{**level, "values": strip_base_url(level["values"])} for level in self.levels]
        return json.dumps({**strip_base_url(asdict(self)), "levels": levels})

    @property
    def role_and_agent(self) -> tuple[tuple[str, str], ...]:
        """The role and the agent, each "" where there is none."""
        return ("role", self.role), ("agent", self.agent)

    @property
    def model_title(self) -> str:
        """The model as a person is told of it."""
        return self.model or ("offline rule-based auditor, not a language model" if self.demo else "no model")

    @property
    def doctor_command(self) -> str:
        """The command that looks into its model."""
        given = {"--model": self.model, "--base-url": self.base_url and strip_credentials(self.base_url)}
        return shlex.join(["wakeloop", "doctor", *(word for two in given.items() if two[1] for word in two)])


def strip_credentials(url: str) -> str:
    """An address without user, password and keys."""
    if not is_http_url(url):
        return redact_text(url)
    parts = urlsplit(url)
    kept = "&".join(one for one in parts.query.split("&") if not SECRET_NAME.search(one.partition("=")[0]))
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=kept))


def is_http_url(text: str) -> bool:
    """Whether a text is the address of a server, to be reached over HTTP."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of a port, or of what stands in brackets
        return False


def strip_base_url(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as they may be stored: no user, password and keys in an address."""
    url = values.get("base_url")
    return {**values, "base_url": strip_credentials(url)} if url else dict(values)


# -- from options ----------------------------------------------------------------------------------------


def parse_setting(text: str) -> tuple[str, Any]:
    """Read `key=value`; the value is JSON, or one of YAML's words, or else a text."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise usage_error(f"--set takes key=value, such as max_wake_cycles=5, not {text!r}.")
    return key.strip(), parse_value(value.strip())


def parse_value(text: str) -> Any:
    """Read a value: JSON, or one of YAML's words, or else a text."""
    if text in YAML_WORDS:
        return YAML_WORDS[text]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def parse_tools(text: str) -> tuple[str, ...]:
    """Read `files,shell,MODULE:NAME`; `none` is no tools."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if names in ((), ("none",)):
        return ()
    if wrong := next((name for name in names if name not in TOOLS and not OWN_TOOLS.fullmatch(name)), None):
        raise usage_error(
            f"There are no tools {wrong!r}; --tools takes {', '.join(TOOLS)}, MODULE:NAME for your own, or "
            "none."
        )
    return names


def parse_verify(text: str) -> str:
    """Read the command of `--verify`; `none` is no command."""
    if not text.strip() or "\0" in text:
        raise usage_error("--verify takes a command line that is not empty, or none.")
    if text.strip() == "none":
        return ""
    from wakeloop.tools.command_verifier import find_missing_program

    if name := find_missing_program(text):
        raise usage_error(
            f"The command for --verify begins with {name!r}, which /bin/sh does not find: write its path."
        )
    return text


def parse_mcp(text: str) -> str:
    """Read the file of `--mcp`; `none` is no servers."""
    if text.strip() == "none":
        return ""
    path = Path(text).expanduser()
    if not path.is_file():
        raise usage_error(f"There is no file {text!r} for --mcp.")
    return str(path.resolve())


def resolve_folder(path: Path, how: str = "name another with --root") -> str:
    """The folder of the tools, absolute."""
    if not path.is_dir():
        raise usage_error(f"The folder {str(path)!r} does not exist or is not a folder: {how}.")
    return str(path.resolve())


def read_option_file(path: Path, option: str) -> str:
    """The text of a file that an option names."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise usage_error(f"The file {str(path)!r} for {option} is not UTF-8 text.") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise usage_error(f"The file {str(path)!r} for {option} cannot be read: {why}.") from None


def parse_options(
    model: str | None = None,
    base_url: str | None = None,
    system: Path | None = None,
    preset: str | None = None,
    settings: Sequence[str] | None = None,
    root: Path | None = None,
    tools: str | None = None,
    role: str | None = None,
    agent: str | None = None,
    verify: str | None = None,
    mcp: str | None = None,
    **bounds: str | None,
) -> dict[str, Any]:
    """The options that were given, read and checked; of `bounds`, a None that was typed is no limit."""
    refuse_non_utf8(
        model, base_url, preset, *(settings or ()), tools, role, agent, verify, mcp, *bounds.values()
    )
    named = None if tools is None else parse_tools(tools)
    given: dict[str, Any] = {
        "model": model or None,
        "base_url": base_url or None,
        "system": None if system is None else read_option_file(system, "--system"),
        "preset": preset,
        "settings": dict(map(parse_setting, settings or ())) or None,
        "root": None if root is None else resolve_folder(root),
        "tools": named,
        "imports": str(Path.cwd()) if any(":" in name for name in named or ()) else None,
        "role": role,
        "agent": agent,
        "verify": None if verify is None else parse_verify(verify),
        "mcp": None if mcp is None else parse_mcp(mcp),
    }
    limits = {key: parse_value(text.strip()) for key, text in bounds.items() if text is not None}
    return {key: value for key, value in given.items() if value is not None} | limits


def refuse_non_utf8(*words: str | None) -> None:
    """Refuse what is typed and is not UTF-8: half a pair of characters, which no server and no file takes."""
    for word in words:
        try:
            (word or "").encode()
        except UnicodeEncodeError:
            raise usage_error(f"{word!r} is not UTF-8: type it again.") from None


def is_openai(model: str) -> bool:
    """Whether a model's name means langchain-openai."""
    return bool(model) and (":" not in model or model.startswith("openai:"))
