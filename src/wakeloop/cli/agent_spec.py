"""Agent specs, stored with threads, and their options."""

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from wakeloop.cli.failures import usage_error
from wakeloop.config import TOOLS
from wakeloop.config.levels import Level
from wakeloop.text.addresses import is_http_url
from wakeloop.text.secret_formats import SECRET_NAME
from wakeloop.text.secrets import redact_text
from wakeloop.text.time_spans import read_span

DEFAULT_WAIT = 900.0  # seconds, of --wait
OWN_TOOLS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # MODULE:NAME
GOAL_SECONDS = 300.0  # that the command of --done-when may take
YAML_WORDS = {"True": True, "False": False, "Null": None, "NULL": None, "None": None, "~": None}


@dataclass(frozen=True)
class AgentSpec:
    """Everything needed to build a thread's agent again, except API keys.

    It is stored with the thread, so that `wakeloop resume` needs no options.

    - `model_options`: what is passed to the model, such as its temperature
    - `demo`: use the offline model and its tools
    - `levels`: the configuration levels of the values; `role` and `agent` are the files among them
    - `switched_on`: auto_continue is on although the preset leaves it off and nobody asked for it
    - `function_calling`: False for a model that cannot call tools
    - `verify`: the command that checks items
    - `done_when`: the command that checks the goal, and the seconds that it may take
    - `mcp`: the file with MCP servers; "" for no servers, None for the default
    - `imports`: the folder from which the user's own tools are imported
    - `trusted`: hashes of the files that start code, as they were when the thread last used them
    """

    model: str = ""
    base_url: str = ""
    model_options: Mapping[str, Any] = field(default_factory=dict)
    system: str = ""
    preset: str = "wakeloop"
    settings: Mapping[str, Any] = field(default_factory=dict)
    root: str = ""
    tools: Sequence[str] = ("files",)
    demo: bool = False
    delay: float = 0
    role: str = ""
    agent: str = ""
    levels: Sequence[Level] = ()
    switched_on: bool = False
    function_calling: bool = True
    verify: str = ""
    done_when: str = ""
    done_when_seconds: float = GOAL_SECONDS
    mcp: str | None = None
    imports: str = ""
    trusted: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str) -> "AgentSpec | None":
        """Read a stored spec. Unknown keys (of newer versions) are ignored; a damaged spec gives None."""
        try:
            spec: AgentSpec = _make_reader().validate_json(text, strict=True)
        except ValueError:
            return None
        return spec

    def to_json(self) -> str:
        """Return the spec as JSON to store, without user and password in URLs."""
        levels = [replace(level, values=strip_base_url(level.values)) for level in self.levels]
        return json.dumps(strip_base_url(asdict(replace(self, levels=levels))))

    @property
    def model_title(self) -> str:
        """The model's name for people."""
        return self.model or ("offline rule-based auditor, not a language model" if self.demo else "no model")

    @property
    def doctor_command(self) -> str:
        """The `wakeloop doctor` command that checks this model."""
        words = ["wakeloop", "doctor"]
        if self.model:
            words += ["--model", self.model]
        if self.base_url:
            words += ["--base-url", strip_credentials(self.base_url)]
        return shlex.join(words)


@cache
def _make_reader() -> Any:
    from pydantic import TypeAdapter  # takes a moment to import

    return TypeAdapter(AgentSpec)


def strip_credentials(url: str) -> str:
    """Return a URL without user, password and secret query parameters."""
    if not is_http_url(url):
        return redact_text(url)
    parts = urlsplit(url)
    kept = "&".join(one for one in parts.query.split("&") if not SECRET_NAME.search(one.partition("=")[0]))
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=kept))


def strip_base_url(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with the credentials in `base_url` removed, so that they can be stored."""
    url = values.get("base_url")
    return {**values, "base_url": strip_credentials(url)} if url else dict(values)


# -- from options ----------------------------------------------------------------------------------------


def parse_setting(text: str) -> tuple[str, Any]:
    """Parse `key=value`; the value is read by `parse_value`."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise usage_error(f"--set expects key=value, such as max_wake_cycles=5, got {text!r}.")
    return key.strip(), parse_value(value.strip())


def parse_value(text: str) -> Any:
    """Parse JSON or a YAML word such as `~`; anything else is a string."""
    if text in YAML_WORDS:
        return YAML_WORDS[text]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def parse_tools(text: str) -> tuple[str, ...]:
    """Parse `files,shell,MODULE:NAME`; `none` means no tools."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if names in ((), ("none",)):
        return ()
    for name in names:
        if name not in TOOLS and not OWN_TOOLS.fullmatch(name):
            raise usage_error(
                f"Unknown tools {name!r}. --tools takes {', '.join(TOOLS)} and MODULE:NAME for your own, "
                "with commas between, or none."
            )
    return names


def parse_command(text: str, option: str) -> str:
    """Check the command of `--verify` or `--done-when`; `none` means no command."""
    if not text.strip() or "\0" in text:
        raise usage_error(f"{option} expects a command or 'none', got an empty string.")
    if text.strip() == "none":
        return ""
    from wakeloop.tools.shell import find_missing_program

    if name := find_missing_program(text):
        raise usage_error(f"/bin/sh does not find {name!r}, the program of {option}. Check its path.")
    return text


def parse_seconds(text: str) -> float:
    """Parse the number of `--done-when-seconds`."""
    value = parse_value(text.strip())
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise usage_error(f"--done-when-seconds expects a number of seconds above 0, got {text!r}.")
    return float(value)


def parse_wait(text: str) -> float:
    """Return the seconds of `--wait`: 15m, 1h30m, 90; 'none' is 0."""
    if text.strip() in ("none", "0"):
        return 0.0
    found = float(text) if text.strip().isdecimal() else read_span(text)
    if found is None:
        raise usage_error(f"--wait takes a time such as 15m, or 'none', got {text!r}.")
    return found


def parse_mcp(text: str) -> str:
    """Return the absolute path of the `--mcp` file; `none` means no servers."""
    if text.strip() == "none":
        return ""
    path = Path(text).expanduser()
    if not path.is_file():
        raise usage_error(f"{text!r} of --mcp is not a file.")
    return str(path.resolve())


def resolve_folder(path: Path, fix: str = "Name another one with --root") -> str:
    """Return the absolute path of the tools' folder."""
    if not path.is_dir():
        raise usage_error(f"{str(path)!r} is not a folder. {fix}.")
    return str(path.resolve())


def read_option_file(path: Path, option: str) -> str:
    """Read the text file that an option names."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise usage_error(f"The file {str(path)!r} of {option} is not UTF-8 text.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise usage_error(f"Cannot read the file {str(path)!r} of {option}: {reason}.") from None


def parse_limit(text: str) -> Any:
    """Parse a limit such as `--max-requests`; `none` means no limit."""
    return None if text.strip() == "none" else parse_value(text.strip())


OPTION_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("model", "base_url", "preset", "role", "agent"), str),
    "system": partial(read_option_file, option="--system"),
    "settings": lambda words: dict(map(parse_setting, words)),
    "root": resolve_folder,
    "tools": parse_tools,
    "verify": partial(parse_command, option="--verify"),
    "done_when": partial(parse_command, option="--done-when"),
    "done_when_seconds": parse_seconds,
    "mcp": parse_mcp,
    "wait": parse_wait,
}
"""How the value of an option is read; all others are limits."""


def parse_options(**typed: Any) -> dict[str, Any]:
    """Parse and check the options that were given; a limit may be None, for no limit."""
    given: dict[str, Any] = {}
    for name, value in typed.items():
        if value is None or (not value and name in ("model", "base_url", "settings")):
            continue
        refuse_non_utf8(*([value] if isinstance(value, str) else value if name == "settings" else ()))
        parse: Callable[[Any], Any] = OPTION_PARSERS.get(name, parse_limit)
        given[name] = parse(value)
    if any(":" in name for name in given.get("tools", ())):
        # own tools are imported from the folder in which the option was typed, also by a later `resume`
        given["imports"] = str(Path.cwd())
    return given


def refuse_non_utf8(*words: str) -> None:
    """Refuse lone surrogates: Python decodes input that is not UTF-8 to them, and no server accepts them."""
    for word in words:
        word.encode()  # `format_error` says what is wrong


def is_openai(model: str) -> bool:
    """Whether a model name is one for langchain-openai."""
    return bool(model) and (":" not in model or model.startswith("openai:"))
