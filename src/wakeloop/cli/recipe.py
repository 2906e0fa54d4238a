"""How a thread's agent is made: why `resume` needs no options."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

from wakeloop.cli.failures import usage

TOOLS = ("files", "shell")
WORDS = {"True": True, "False": False, "Null": None, "NULL": None, "None": None, "~": None}


@dataclass(frozen=True)
class Recipe:
    """What a thread's agent is made of, without keys; `demo` stands for the offline model and its tools."""

    model: str = ""
    base_url: str = ""
    system: str = ""
    preset: str = "wakeloop"
    settings: Mapping[str, Any] = field(default_factory=dict)
    root: str = ""
    tools: Sequence[str] = ("files",)
    demo: bool = False
    delay: float = 0

    @classmethod
    def read(cls, text: str) -> Self:
        """Read one that was stored; what a newer version may have added is left out."""
        known = {one.name for one in fields(cls)}
        return cls(**{key: value for key, value in json.loads(text).items() if key in known})

    def written(self) -> str:
        """Return it as it is stored: JSON, without a user and password in the address."""
        return json.dumps({**asdict(self), "base_url": without_user(self.base_url)})

    def changed(self, given: Mapping[str, Any]) -> Self:
        """Return it with the options that were given; settings are changed one by one."""
        settings = {**self.settings, **given.get("settings", {})}
        return replace(self, **{**given, "settings": settings})

    @property
    def title(self) -> str:
        """The model as a person is told of it."""
        return self.model or ("offline rule-based auditor, not a language model" if self.demo else "no model")


def without_user(url: str) -> str:
    """An address without user and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


# -- from options ----------------------------------------------------------------------------------------


def setting(text: str) -> tuple[str, Any]:
    """Read `key=value`; the value is JSON, or one of YAML's words, or else a text."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise usage(f"--set takes key=value, such as max_wake_cycles=5, not {text!r}.")
    value = value.strip()
    if value in WORDS:
        return key.strip(), WORDS[value]
    try:
        return key.strip(), json.loads(value)
    except (ValueError, RecursionError):
        return key.strip(), value


def tool_names(text: str) -> tuple[str, ...]:
    """Read `files,shell`; `none` is no tools."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if names in ((), ("none",)):
        return ()
    if wrong := next((name for name in names if name not in TOOLS), None):
        raise usage(f"There are no tools {wrong!r}; --tools takes {', '.join(TOOLS)} or none.")
    return names


def folder(path: Path) -> str:
    """The folder of the tools, absolute."""
    if not path.is_dir():
        raise usage(f"The folder {str(path)!r} does not exist or is not a folder: name another with --root.")
    return str(path.resolve())


def system_text(path: Path) -> str:
    """The system prompt from its file."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise usage(f"The file {str(path)!r} for --system is not UTF-8 text.") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise usage(f"The file {str(path)!r} for --system cannot be read: {why}.") from None


def options(
    model: str | None = None,
    base_url: str | None = None,
    system: Path | None = None,
    preset: str | None = None,
    settings: Sequence[str] = (),
    root: Path | None = None,
    tools: str | None = None,
) -> dict[str, Any]:
    """The options that were given, read and checked, as `Recipe.changed` takes them."""
    given: dict[str, Any] = {
        "model": model or None,
        "base_url": base_url or None,
        "system": None if system is None else system_text(system),
        "preset": preset,
        "settings": dict(map(setting, settings)) or None,
        "root": None if root is None else folder(root),
        "tools": None if tools is None else tool_names(tools),
    }
    return {key: value for key, value in given.items() if value is not None}


def from_surroundings(recipe: Recipe) -> Recipe:
    """Fill what no option named: model and address from the environment, the root from where we are."""
    model = recipe.model or ("" if recipe.demo else os.environ.get("WAKELOOP_MODEL", ""))
    if not model and not recipe.demo:
        raise usage("No model is named: give --model, such as --model openai:NAME, or set WAKELOOP_MODEL.")
    address = recipe.base_url or (os.environ.get("OPENAI_BASE_URL", "") if is_openai(model) else "")
    return replace(recipe, model=model, base_url=address, root=recipe.root or folder(Path()))


def is_openai(model: str) -> bool:
    """Whether a model's name means langchain-openai."""
    return bool(model) and (":" not in model or model.startswith("openai:"))
