"""Configuration levels, and which one overrides which."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from platformdirs import user_config_path

from wakeloop.config import TOOLS
from wakeloop.config.files import (
    MODEL_OPTIONS,
    NON_SETTING_ALIASES,
    PREFIX,
    Document,
    explain_loki_key,
    read_environment,
    read_markdown,
    read_yaml,
)
from wakeloop.errors import SettingsError
from wakeloop.loop.overrides import FIXED_SETTINGS
from wakeloop.presets import preset
from wakeloop.settings import (
    ALIASES,
    AgentFileSettings,
    LoopSettings,
    advise_api_key,
    resolve_aliases,
    translate_word,
)
from wakeloop.text.addresses import is_http_url
from wakeloop.text.characters import quote_path
from wakeloop.text.secret_formats import SECRET_NAME
from wakeloop.text.wording import suggest

# keys of files and options that are not settings
NON_SETTINGS = (
    "model",
    "base_url",
    "model_options",
    "preset",
    "tools",
    "mcp",
    "system_prompt",
    "function_calling",
)


@dataclass(frozen=True)
class Level:
    """One place that settings come from: its name, its source (a file, variable or option), its values."""

    name: str
    source: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def expand_preset(self) -> dict[str, Any]:
        """Return the values, with those of a named preset below the explicit ones."""
        name = self.values.get("preset")
        if name is None:
            return dict(self.values)
        return {**preset(name).model_dump(exclude_defaults=True), **self.values}


class ResolvedValue(NamedTuple):
    """The value in effect for one key, its level and source, and whether it was set explicitly."""

    value: Any
    level: str
    source: str
    explicit: bool


@dataclass(frozen=True)
class ResolvedConfig:
    """The values in effect by key; `whole` if an agent file overrides all settings."""

    values: Mapping[str, ResolvedValue]
    whole: bool = False
    ignored: Sequence[str] = ()

    @property
    def settings(self) -> LoopSettings:
        """The agent's base settings, below the thread's own values."""
        kind = AgentFileSettings if self.whole else LoopSettings
        return kind.model_validate({key: self.values[key].value for key in LoopSettings.model_fields})

    def get(self, key: str) -> Any:
        """Return the value of one of `NON_SETTINGS`, or None."""
        return self.values[key].value if key in self.values else None


def resolve_levels(levels: Iterable[Level], *, whole: Level | None = None) -> ResolvedConfig:
    """Let each level override the ones before it, field by field; a `whole` level overrides all settings.

    The built-in values are below all levels. If several levels name a preset, only the highest one counts.
    What a `whole` level leaves out of model, address and tools comes from the other levels.

    >>> levels = [Level("global", "config.yaml", {"nag_after": 4}), Level("base", "--set", {"nag_after": 2})]
    >>> resolve_levels(levels).values["nag_after"]
    ResolvedValue(value=2, level='base', source='--set', explicit=True)
    """
    standard = LoopSettings()
    found = {}
    for key in LoopSettings.model_fields:
        found[key] = ResolvedValue(getattr(standard, key), "built-in", "wakeloop", explicit=False)
    given = list(levels)
    ignored: list[str] = []
    if whole is not None:
        for level in given:
            if not found.keys().isdisjoint(level.expand_preset()):
                ignored.append(level.name)
        given = [*map(_drop_settings, given), whole]
    named = None
    for level in given:
        if "preset" in level.values:
            named = level
    for level in given:
        values = level.expand_preset() if level is named else level.values
        for key, value in values.items():
            if key in ("prompts", "prices", "model_options") and key in found:
                value = {**found[key].value, **value}  # noqa: PLW2901 - these are merged, entry by entry
            found[key] = ResolvedValue(value, level.name, level.source, explicit=key in level.values)
    return ResolvedConfig(found, whole is not None, tuple(dict.fromkeys(ignored)))


def _drop_settings(level: Level) -> Level:
    kept = {key: level.values[key] for key in NON_SETTINGS if key in level.values and key != "preset"}
    return replace(level, values=kept)


# -- the levels ------------------------------------------------------------------------------------------


def config_folder() -> Path:
    """Return the configuration folder: `$WAKELOOP_CONFIG`, else the user's own for wakeloop."""
    given = os.environ.get("WAKELOOP_CONFIG")
    return Path(given).expanduser() if given else user_config_path("wakeloop", appauthor=False)


def read_global_levels(folder: Path) -> list[Level]:
    """Read `config.yaml`, if it exists, and above it the variables `WAKELOOP_…`."""
    levels = []
    path = folder / "config.yaml"
    if os.path.lexists(path):  # a folder or a dead link raises: its settings must not be left out
        levels.append(Level("global", str(path), check_document(read_yaml(path))))
    for key, value in read_environment(NON_SETTINGS).items():
        variable = f"{PREFIX}{key.upper()}"
        levels.append(Level("global", variable, check_document(Document(Path(variable), {key: value}))))
    return levels


def read_role(folder: Path, name: str) -> Level:
    """Read `roles/NAME.md`: settings in its front matter, the system prompt below it."""
    document = read_markdown(_find_named_file(folder / "roles", name, ".md", "role"))
    values = check_document(document)
    if document.body:
        values["system_prompt"] = document.body
    return Level("role", str(document.path), values)


def read_agent(folder: Path, name: str) -> Level:
    """Read `agents/NAME.yaml` or `agents/NAME/config.yaml`.

    Its settings are in a mapping `settings`, or, as loki has them, at the top next to the other keys.
    """
    document = read_yaml(_find_agent_file(folder, name))
    top = dict(document.values)
    inner = top.pop("settings", None) or {}
    if not isinstance(inner, Mapping):
        raise document.error("settings", f"settings must be a mapping, got {inner!r}.")
    lines = {key: document.lines.get(f"settings.{key}", 0) for key in inner}
    settings = check_document(Document(document.path, inner, lines), allowed=())
    values = check_document(Document(document.path, top, document.lines))
    return Level("agent", str(document.path), {**values, **settings})


def list_names(folder: Path, kind: str) -> list[str]:
    """List the names of all roles or agents; `kind` is `roles` or `agents`."""
    names = set()
    for path in (folder / kind).glob("*.md" if kind == "roles" else "*.yaml"):
        names.add(path.stem)
    if kind == "agents":
        for path in (folder / kind).glob("*/config.yaml"):
            names.add(path.parent.name)
    return sorted(names)


def _find_agent_file(folder: Path, name: str) -> Path:
    """Return an agent's file, or the `config.yaml` of its folder, as loki has it."""
    nested = folder / "agents" / name / "config.yaml"
    if nested.is_file() and nested.parent.parent == folder / "agents":
        return nested
    return _find_named_file(folder / "agents", name, ".yaml", "agent")


def _find_named_file(folder: Path, name: str, suffix: str, what: str) -> Path:
    path = folder / f"{name}{suffix}"
    if path.parent != folder or not path.is_file():  # a name with a slash would leave the folder
        available = ", ".join(list_names(folder.parent, folder.name))
        there = f"Available: {available}." if available else f"There is no {what} yet."
        raise SettingsError(f"Unknown {what} {name!r} in {quote_path(folder)}. {there}")
    return path


def check_document(document: Document, allowed: Sequence[str] = NON_SETTINGS) -> dict[str, Any]:
    """Check a file's values one by one, and name file, line and key of all that are wrong at once.

    `allowed` are the keys that may occur besides settings.
    """
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for given, value in document.values.items():
        try:
            checked = _check_value(document, given, value, allowed)
        except SettingsError as error:
            wrong.append(str(error))
            continue
        if "model_options" in checked:
            checked["model_options"] = values.get("model_options", {}) | checked["model_options"]
        values |= checked
    if wrong:
        raise SettingsError("\n".join(wrong))
    return values


def _check_value(document: Document, given: str, value: Any, allowed: Sequence[str]) -> dict[str, Any]:
    """Return one value of a file under its canonical name; {} for an empty key of loki's."""
    key = canonical_key(given)
    option = MODEL_OPTIONS.get(given) if "model_options" in allowed else None
    if value is None and key not in allowed and (given in MODEL_OPTIONS or explain_loki_key(given)):
        return {}  # loki's example file lists most keys without a value
    if key not in (*allowed, *LoopSettings.model_fields) and option is None:
        raise document.error(given, explain_loki_key(given) or _explain_unknown(given, allowed))
    try:
        if key in allowed:
            return {key: _check_non_setting(key, value, document.path)}
        if option is not None:
            return {"model_options": _check_model_options({option: value})}
        return normalize_settings({key: value})
    except SettingsError as error:
        raise document.error(given, str(error)) from None


def _explain_unknown(key: str, allowed: Sequence[str]) -> str:
    known = (*LoopSettings.model_fields, *ALIASES, *allowed)
    hint = advise_api_key(key) or suggest(key, known, translate_word(key))
    if key == "settings":  # which an agent file has
        hint = "Write its keys at the top of the file."
    return f"unknown setting {key!r}. {hint}"


def normalize_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check settings and return them under their canonical names as plain values.

    >>> normalize_settings({"max_auto_continues": 3})
    {'max_wake_cycles': 3}

    Raises:
        SettingsError: For an unknown setting or a wrong value.
    """
    named = resolve_aliases(given)
    checked = LoopSettings.model_validate(named).model_dump()
    return {key: checked[key] for key in named}


def _check_non_setting(key: str, value: Any, path: Path) -> Any:
    """Check a value that is not a setting; a variable gives each of them as a string."""
    if key == "model_options":
        return _check_model_options(value)
    if key == "tools":
        return _check_tools(value)
    if key == "function_calling":
        switch = {"true": True, "false": False}.get(str(value).lower())
        if switch is None:
            raise SettingsError(f"{key} must be true or false, got {value!r}.")
        return switch
    if not isinstance(value, str):
        raise SettingsError(f"{key} must be a string, got {value!r}.")
    if key == "base_url" and value and not is_http_url(value):
        raise SettingsError(f"{key} must be an address such as http://HOST:PORT/v1, got {value!r}.")
    if key == "preset":
        preset(value)  # raises for an unknown one
    if key == "mcp":  # relative to the file that names it
        return "" if value in ("", "none") else str((path.parent / Path(value).expanduser()).resolve())
    return value


def _check_model_options(value: Any) -> dict[str, Any]:
    """Read the options that are passed to the model; they are stored with the thread, so without keys."""
    with suppress(TypeError, ValueError, RecursionError):
        value = json.loads(value)
    if not isinstance(value, Mapping):
        raise SettingsError(f"model_options must be a mapping such as {{temperature: 0.2}}, got {value!r}.")
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SettingsError(f"model_options must be plain JSON values: {error}.") from None
    for name in re.findall(r'"([^"]+)": "', text):  # with a string: max_tokens is not a secret
        if SECRET_NAME.search(name):
            raise SettingsError(f"model_options must not contain {name!r}: set it in the environment.")
    return dict(value)


def _check_tools(value: Any) -> tuple[str, ...]:
    """Read a list of tools, or `files,shell`; `none` means no tools."""
    names = list(map(str.strip, value.split(","))) if isinstance(value, str) else value
    if names in (["none"], [""]):
        return ()
    if isinstance(names, list) and set(map(str, names)) <= set(TOOLS):
        return tuple(names)
    raise SettingsError(
        f"tools must be a list of {', '.join(TOOLS)}, got {value!r}. Your own need the option --tools."
    )


def canonical_key(given: str) -> str:
    """Return the canonical name of a key; loki's names are known."""
    return ALIASES.get(given) or NON_SETTING_ALIASES.get(given, given)


def is_thread_setting(key: str) -> bool:
    """Whether a thread may set a key."""
    return ALIASES.get(key, key) in LoopSettings.model_fields and key not in FIXED_SETTINGS
