"""Build specs from configuration levels, and those of runs."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from wakeloop.cli.agent_spec import DEFAULT_WAIT, AgentSpec, is_openai, resolve_folder, strip_credentials
from wakeloop.cli.failures import usage_error
from wakeloop.cli.store import DatabaseFile
from wakeloop.cli.streams import OutputOptions
from wakeloop.config.levels import (
    Level,
    ResolvedConfig,
    ResolvedValue,
    config_folder,
    normalize_settings,
    read_agent,
    read_global_levels,
    read_role,
    resolve_levels,
)
from wakeloop.loop.gates import LIMITS
from wakeloop.presets import preset
from wakeloop.settings import PRICES_EXAMPLE, AgentFileSettings, LoopSettings
from wakeloop.text.addresses import is_http_url

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig


BASE, AGENT = "base", "agent"
OPTIONS = {  # options with a flag of their own: the level's key for each, and the flag
    "preset": ("preset", "--preset"),
    "model": ("model", "--model"),
    "base_url": ("base_url", "--base-url"),
    "system": ("system_prompt", "--system"),
    "tools": ("tools", "--tools"),
    "mcp": ("mcp", "--mcp"),
}
SET_OPTION = "--set"
LIMIT_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in LIMITS.values()}  # flags for settings
NO_NAMES = ("none", "null")  # instead of a name: no role, no agent


@dataclass(frozen=True)
class LevelStack:
    """The levels below a thread's own values, lowest first; an agent file comes last."""

    levels: Sequence[Level]
    role: str = ""
    agent: str = ""

    @property
    def whole(self) -> Level | None:
        """The agent file, which overrides all settings."""
        return next((level for level in self.levels if level.name == AGENT), None)

    def resolve(self) -> ResolvedConfig:
        """Resolve the levels, and add the command line's defaults where no level sets them explicitly.

        Under the preset loki, `auto_continue` is on: without it the command line would have no loop. A preset
        without a request limit gets the default one.
        """
        whole = self.whole
        others = [level for level in self.levels if level is not whole]
        found = resolve_levels(others, whole=whole)
        sources = others if whole is None else [whole]
        added = {}
        if found.get("preset") == "loki" and found.get("function_calling") is not False:
            added["auto_continue"] = find_explicit_value(
                sources, "auto_continue", default=True, why="switched on under loki"
            )
        if found.settings.max_requests is None:  # by a preset, or explicitly
            limit = LoopSettings().max_requests
            added["max_requests"] = find_explicit_value(
                sources, "max_requests", default=limit, why="a run has a limit"
            )
        return replace(found, values={**found.values, **added})


def find_explicit_value(levels: Iterable[Level], key: str, *, default: Any, why: str) -> ResolvedValue:
    """Return what the highest level (not its preset) sets for a key, else the command line's default."""
    found = ResolvedValue(default, "command line", why, explicit=False)
    for level in levels:
        if key in level.values:
            found = ResolvedValue(level.values[key], level.name, level.source, explicit=True)
    return found


def build_spec(before: AgentSpec | None, given: Mapping[str, Any]) -> AgentSpec:
    """Build a thread's spec: a new one from files, environment and options, or `before` plus options.

    A thread keeps the levels it started with; the files are read again only if `given` names a role or an
    agent. Raises `SettingsError` for a wrong file, `CommandError` for options that contradict an agent file.
    """
    return spec_from_stack(build_stack(before, given), before or AgentSpec(), given)


def spec_from_stack(stack: LevelStack, before: AgentSpec, given: Mapping[str, Any]) -> AgentSpec:
    """Turn resolved levels into the spec that is stored with the thread."""
    found = stack.resolve()
    model = found.get("model") or ""
    if not model and not before.demo:
        raise usage_error(
            "No model is configured: pass --model openai:NAME, set WAKELOOP_MODEL, or run wakeloop init "
            "to find one."
        )
    require_prices(found.settings)
    name = found.get("preset") or "wakeloop"
    preset_values = preset(name).model_dump(mode="json")
    settings = found.settings.model_dump(mode="json")
    # A value that was set is kept even if it is the preset's: the command line has defaults of its own.
    kept = [key for key in settings if found.values[key].explicit or settings[key] != preset_values[key]]
    return replace(
        before,
        model=model,
        base_url=select_base_url(found),
        model_options=found.get("model_options") or {},
        system=found.get("system_prompt") or "",
        preset=name,
        settings={key: settings[key] for key in kept},
        root=given.get("root") or before.root or resolve_folder(Path()),
        tools=select_tools(found),
        function_calling=found.get("function_calling") is not False,
        verify=given.get("verify", before.verify),
        done_when=given.get("done_when", before.done_when),
        done_when_seconds=given.get("done_when_seconds", before.done_when_seconds),
        mcp=found.get("mcp"),
        imports=given.get("imports", before.imports),
        role=stack.role,
        agent=stack.agent,
        levels=[*stack.levels],
        switched_on=found.values["auto_continue"].level == "command line",
    )


def settings_from_spec(spec: AgentSpec, *, person: bool | None = None) -> LoopSettings:
    """Return a spec's settings: its preset plus what was set; an agent file's settings are whole.

    Unless it was set otherwise, a question in words is put to the `person` at the other end at once; where
    nobody is there, the model continues with what needs no answer. None leaves the preset's own value.
    """
    settings = preset(spec.preset).model_copy(update=spec.settings)
    if person is not None and settings.announces and "on_question" not in spec.settings:
        settings = settings.model_copy(update={"on_question": "park" if person else "wake"})
    return AgentFileSettings.model_validate(settings.model_dump()) if spec.agent else settings


def require_prices(settings: LoopSettings) -> None:
    """Refuse a cost limit if nothing has a price."""
    if settings.max_cost is not None and not settings.prices:
        where = config_folder() / "config.yaml"
        raise usage_error(
            f"max_cost needs prices: add them to {str(where)!r}, for example prices: {PRICES_EXAMPLE}."
        )


def select_tools(found: ResolvedConfig) -> tuple[str, ...]:
    """Return the configured tools, else the default ones if the model can call tools."""
    if (named := found.get("tools")) is not None:
        return tuple(named)
    return () if found.get("function_calling") is False else tuple(AgentSpec.tools)


def select_base_url(found: ResolvedConfig) -> str:
    """Return the server's address; one not given as an option applies only to OpenAI-compatible models."""
    address = found.values.get("base_url")
    if not address or not address.value:
        return ""
    if address.level != BASE and not is_openai(found.get("model") or ""):
        return ""
    if not is_http_url(url := str(address.value)):
        raise usage_error(f"{address.source} must be an address such as http://HOST:PORT/v1, got {url!r}.")
    return url


# -- the levels ------------------------------------------------------------------------------------------


def build_stack(before: AgentSpec | None, given: Mapping[str, Any]) -> LevelStack:
    """Stack the levels of the files, or those that the thread keeps, and the options."""
    old: list[Level] = []
    role = agent = ""
    if before is not None:
        old, role, agent = levels_from_spec(before), before.role, before.agent
    role = choose_name(given.get("role"), role)
    agent = choose_name(given.get("agent"), agent)
    outside = [level for level in old if level.name != BASE]
    if before is None or "role" in given or "agent" in given:
        outside = read_file_levels(role, agent)
    elif "max_cost" in given and not keep_only_prices(old):
        # a thread that started without prices can only be limited by today's
        outside = [*keep_only_prices(read_file_levels(role, agent)), *outside]
    base = apply_options([level for level in old if level.name == BASE], given)
    stack = LevelStack(sorted([*outside, *base], key=lambda level: level.name == AGENT), role, agent)
    if stack.whole is not None:
        refuse_agent_conflicts(stack.whole, agent, given)
    return stack


def choose_name(name: str | None, before: str) -> str:
    """Return the role or agent to use: the one named, none, or the one before."""
    if name is None:
        return before
    return "" if name in NO_NAMES else name


def read_file_levels(role: str, agent: str) -> list[Level]:
    """Read the levels in the configuration folder and the environment."""
    where = config_folder()
    url = os.environ.get("OPENAI_BASE_URL")
    levels = []
    if url:
        levels.append(Level("global", "OPENAI_BASE_URL", {"base_url": url}))
    levels += read_global_levels(where)
    if role:
        levels.append(read_role(where, role))
    if agent:
        levels.append(read_agent(where, agent))
    return levels


def keep_only_prices(levels: Iterable[Level]) -> list[Level]:
    """Reduce levels to their prices; those without any are dropped."""
    priced = []
    for level in levels:
        if "prices" in level.values:
            priced.append(replace(level, values={"prices": level.values["prices"]}))
    return priced


def levels_from_spec(spec: AgentSpec) -> list[Level]:
    """Return the levels that a spec was built from; a spec without any is one base level."""
    if not spec.levels:
        return apply_options([], {key: getattr(spec, key) for key in OPTIONS if getattr(spec, key)})
    return [replace(level, values=restore_credentials(level.values)) for level in spec.levels]


def restore_credentials(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return stored values, with the user and password of OPENAI_BASE_URL if that is their address."""
    url = os.environ.get("OPENAI_BASE_URL", "")
    same = url and values.get("base_url") == strip_credentials(url)
    return {**values, "base_url": url} if same else values


def apply_options(base: Iterable[Level], given: Mapping[str, Any]) -> list[Level]:
    """Return the base levels: earlier options, overridden by the ones given now."""
    levels = list(base)
    for key, (name, option) in OPTIONS.items():
        if key in given:
            levels.append(Level(BASE, option, {name: given[key]}))
    if "preset" in given:
        preset(given["preset"])  # raises for an unknown one
    for option, values in group_typed_settings(given).items():
        levels.append(Level(BASE, option, values))
    setting_options = (SET_OPTION, *LIMIT_OPTIONS.values())  # above a preset, whichever is newer
    return sorted(levels, key=lambda level: level.source in setting_options)


def group_typed_settings(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Check the typed settings and group them by option. Raises `CommandError` for one typed twice."""
    by_set = normalize_settings(given.get("settings") or {})
    found = {}
    if by_set:
        found[SET_OPTION] = by_set
    for key, option in LIMIT_OPTIONS.items():
        if key in given:
            if key in by_set:
                raise usage_error(f"{key} is given twice, as {SET_OPTION} and as {option}: use one of them.")
            found[option] = normalize_settings({key: given[key]})
    return found


def collect_typed_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the typed settings and return them, whatever the option."""
    found: dict[str, Any] = {}
    for values in group_typed_settings(given).values():
        found |= values
    return found


def refuse_agent_conflicts(level: Level, agent: str, given: Mapping[str, Any]) -> None:
    """Refuse options that an agent file overrides, rather than ignore them."""
    for key, option in {"preset": OPTIONS["preset"][1], "settings": SET_OPTION, **LIMIT_OPTIONS}.items():
        if key in given:
            raise usage_error(
                f"The agent {agent!r} overrides all settings: drop {option}, or edit {level.source}."
            )
    for key, (name, option) in OPTIONS.items():
        if key in given and name in level.values:
            raise usage_error(
                f"The agent {agent!r} sets its own {name}: drop {option}, or edit {level.source}."
            )


# -- the specification of one run of one thread ----------------------------------------------------------


@dataclass(frozen=True)
class RunSpec:
    """One run of one thread.

    `request` is the thread's first message. `message` is sent now: a new input, or, if the run `resumes`, an
    answer, a message, or None to continue as is. `given` are the options of this command. With `ask`, the
    user approves each shell command. Setting `stop` ends running commands. `todos` replaces the list.
    """

    database: DatabaseFile
    thread: str
    spec: AgentSpec
    request: str
    message: str | None
    given: Mapping[str, Any] = field(default_factory=dict)
    resumes: bool = False
    output: OutputOptions = field(default_factory=OutputOptions)
    ask: bool = True
    todos: Sequence[Mapping[str, Any]] | None = None
    stop: Event = field(default_factory=Event)

    @property
    def config(self) -> "RunnableConfig":
        """The config under which the graph finds the thread."""
        return {"configurable": {"thread_id": self.thread}}

    @property
    def typed_settings(self) -> Mapping[str, Any]:
        """The settings that were typed with this command."""
        return collect_typed_settings(self.given)

    @property
    def wait(self) -> float:
        """The longest time, in seconds, to wait for a limit."""
        return float(self.given.get("wait", DEFAULT_WAIT))
