"""Who overrides whom: levels, and what holds in the end."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from platformdirs import user_config_path

from wakeloop.checks.prices import check_prices
from wakeloop.config import TOOLS
from wakeloop.config.environment import PREFIX, read_environment
from wakeloop.config.files import Document, read_markdown, read_yaml
from wakeloop.config.loki_keys import NON_SETTING_ALIASES, explain_loki_key
from wakeloop.errors import SettingsError
from wakeloop.loop.overrides import FIXED_SETTINGS
from wakeloop.presets import preset
from wakeloop.settings import ALIASES, AgentFileSettings, LoopSettings, resolve_aliases
from wakeloop.text.characters import quote_path

NON_SETTINGS = (
    "model",
    "base_url",
    "preset",
    "tools",
    "mcp",
    "system_prompt",
    "function_calling",
)  # no settings


@dataclass(frozen=True)
class Level:
    """One place that settings come from: its name, where exactly, and what it says."""

    name: str
    source: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def expand_preset(self) -> dict[str, Any]:
        """Return the values, with what a named preset brings beneath those that are said outright."""
        named = self.values.get("preset")
        if named is None:
            return dict(self.values)
        standard = LoopSettings()
        chosen = preset(named)
        brought = {
            name: getattr(chosen, name)
            for name in LoopSettings.model_fields
            if getattr(chosen, name) != getattr(standard, name)
        }
        return {**brought, **self.values}


class ResolvedValue(NamedTuple):
    """What holds for one key: the value, its level and place, and whether it was said outright."""

    value: Any
    level: str
    source: str
    explicit: bool


@dataclass(frozen=True)
class ResolvedConfig:
    """What holds in the end, key by key; `whole` where an agent file overrides everything."""

    values: Mapping[str, ResolvedValue]
    whole: bool = False
    ignored: Sequence[str] = ()

    @property
    def settings(self) -> LoopSettings:
        """The agent's base: everything beneath the thread's own values."""
        kind = AgentFileSettings if self.whole else LoopSettings
        base = {name: held.value for name, held in self.values.items() if name in LoopSettings.model_fields}
        return kind.model_validate(base)

    def get(self, key: str) -> Any:
        """Return one value that is no setting: one of `BESIDE`."""
        return self.values[key].value if key in self.values else None


def resolve_levels(levels: Iterable[Level], *, whole: Level | None = None) -> ResolvedConfig:
    """Let each level override those before it, field by field; a `whole` level overrides all of them.

    Beneath every level stand the built-in values. Of several presets only the highest counts: it takes the
    place of the others. Of a whole level the settings count alone; what it does not say of model, address or
    tools is taken from the others.
    """
    built_in = {name: getattr(LoopSettings(), name) for name in LoopSettings.model_fields}
    held = {
        name: ResolvedValue(value, "built-in", "wakeloop", explicit=False) for name, value in built_in.items()
    }
    given = list(levels)
    ignored: list[str] = []
    if whole is not None:
        ignored = [level.name for level in given if any(key in built_in for key in level.expand_preset())]
        given = [Level(v.name, v.source, _drop_settings(v.values)) for v in given] + [whole]
    named = [level for level in given if "preset" in level.values]
    for level in given:
        for key, value in (level.expand_preset() if level in named[-1:] else level.values).items():
            outright = key in level.values
            before = held.get(key)
            if key in ("prompts", "prices") and before is not None:
                value = {**before.value, **value}  # noqa: PLW2901 - texts and prices are replaced one by one
            held[key] = ResolvedValue(value, level.name, level.source, outright)
    return ResolvedConfig(held, whole is not None, tuple(dict.fromkeys(ignored)))


def _drop_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key in NON_SETTINGS and key != "preset"}


# -- the levels ------------------------------------------------------------------------------------------


def config_folder() -> Path:
    """Return the folder of configuration: `WAKELOOP_CONFIG`, else the user's own for wakeloop."""
    given = os.environ.get("WAKELOOP_CONFIG")
    return Path(given).expanduser() if given else user_config_path("wakeloop", appauthor=False)


def read_global_levels(folder: Path) -> list[Level]:
    """Return `config.yaml` (where there is one) and above it the variables `WAKELOOP_…`."""
    path = folder / "config.yaml"
    levels = [Level("global", str(path), check_document(read_yaml(path)))] if path.is_file() else []
    for key, value in read_environment(NON_SETTINGS).items():
        variable = f"{PREFIX}{key.upper()}"
        levels.append(Level("global", variable, check_document(Document(Path(variable), {key: value}))))
    return levels


def read_role(folder: Path, name: str) -> Level:
    """Return a role: `roles/NAME.md`, settings in its front matter, the system prompt beneath it."""
    document = read_markdown(_find_named_file(folder / "roles", name, ".md", "role"))
    values = check_document(document)
    if document.body:
        values["system_prompt"] = document.body
    return Level("role", str(document.path), values)


def read_agent(folder: Path, name: str) -> Level:
    """Return an agent: `agents/NAME.yaml` or `agents/NAME/config.yaml`.

    It has model, tools, system_prompt, preset and settings; these stand in a mapping `settings`, or at the
    top, as loki has them.
    """
    document = read_yaml(_find_agent_file(folder, name))
    top = {key: value for key, value in document.values.items() if key != "settings"}
    inner = document.values.get("settings") or {}
    if not isinstance(inner, Mapping):
        raise document.error("settings", "settings must be a mapping of setting to value.")
    for key in top:
        if canonical_key(key) in map(canonical_key, inner):
            raise document.error(key, f"the key {key!r} stands here and under 'settings'; give it once.")
    lines = {key: document.lines.get(f"settings.{key}", 0) for key in inner}
    values = check_document(Document(document.path, inner, lines), beside=())
    return Level(
        "agent",
        str(document.path),
        {**check_document(Document(document.path, top, document.lines)), **values},
    )


def list_names(folder: Path, kind: str) -> list[str]:
    """List the roles or agents that there are: `kind` is `roles` or `agents`."""
    if kind == "roles":
        return sorted(path.stem for path in (folder / kind).glob("*.md"))
    files = {path.stem for path in (folder / kind).glob("*.yaml")}
    return sorted(files | {path.parent.name for path in (folder / kind).glob("*/config.yaml")})


def _find_agent_file(folder: Path, name: str) -> Path:
    """Return an agent's file, or its folder's `config.yaml`, as loki has it."""
    agents = folder / "agents"
    if (nested := agents / name / "config.yaml").is_file() and nested.parent.parent == agents:
        if (agents / f"{name}.yaml").is_file():
            raise SettingsError(
                f"There are two agents {name!r}, {quote_path(nested)} and {name}.yaml: keep one."
            )
        return nested
    return _find_named_file(agents, name, ".yaml", "agent")


def _find_named_file(folder: Path, name: str, suffix: str, what: str) -> Path:
    path = folder / f"{name}{suffix}"
    if path.parent != folder or not path.is_file():
        there = ", ".join(list_names(folder.parent, folder.name)) or "none"
        raise SettingsError(f"There is no {what} {name!r} in {quote_path(folder)}; there are: {there}.")
    return path


def check_document(document: Document, beside: Sequence[str] = NON_SETTINGS) -> dict[str, Any]:
    """Check a file's values one by one, so that an error names file, line, key and what is allowed."""
    values: dict[str, Any] = {}
    for given, value in document.values.items():
        key = canonical_key(given)
        if key in beside:
            values[key] = _check_non_setting(document, given, key, value)
            continue
        if value is None and explain_loki_key(given):  # as loki's own example of a file has most of its keys
            continue
        if key not in LoopSettings.model_fields:
            known = (*LoopSettings.model_fields, *ALIASES, *beside)
            why = explain_loki_key(given) or f"there is no setting {given!r}; {_suggest_key(given, known)}"
            raise document.error(given, why)
        try:
            values |= normalize_settings({key: value})
        except SettingsError as error:
            raise document.error(given, str(error)) from None
    return values


def normalize_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check settings and return them under their own names, as plain values. Raises `SettingsError`."""
    said = resolve_aliases(given)
    if "prices" in said:
        check_prices(said["prices"])
    read = LoopSettings.model_validate(said).model_dump()
    return {key: read[key] for key in said}


def _check_non_setting(document: Document, given: str, key: str, value: Any) -> Any:
    if key == "tools":
        names_given = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
        if names_given in (["none"], [""]):
            names_given = []
        if not isinstance(names_given, list) or any(name not in TOOLS for name in names_given):
            own = isinstance(names_given, list) and any(":" in str(name) for name in names_given)
            hint = " Your own tools are named on the command line alone: --tools MODULE:NAME." if own else ""
            raise document.error(given, f"tools must be a list of {', '.join(TOOLS)}, not {value!r}.{hint}")
        return tuple(names_given)
    if key == "function_calling":
        return _check_switch(document, given, value)
    if not isinstance(value, str):
        raise document.error(given, f"{key} must be a text, not {value!r}.")
    if key == "mcp":
        path = document.path.parent / Path(value).expanduser()  # beside the file that says it
        return "" if value in ("", "none") else str(path.resolve())
    if key == "preset":
        try:
            preset(value)
        except SettingsError as error:
            raise document.error(given, str(error)) from None
    return value


def _check_switch(document: Document, given: str, value: Any) -> bool:
    """Read true or false, also as the environment has them."""
    read = {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value
    if not isinstance(read, bool):
        raise document.error(given, f"{given} must be true or false, not {value!r}.")
    return read


def canonical_key(given: str) -> str:
    """Return a key under its own name; loki's are known."""
    return ALIASES.get(given) or NON_SETTING_ALIASES.get(given, given)


def _suggest_key(key: str, known: Sequence[str]) -> str:
    near = get_close_matches(key, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"allowed are {', '.join(known)}."


def is_thread_setting(key: str) -> bool:
    """Tell whether a thread may set a key."""
    return ALIASES.get(key, key) in LoopSettings.model_fields and key not in FIXED_SETTINGS
