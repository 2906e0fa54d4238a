"""From levels of configuration to a thread's recipe."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from wakeloop.cli.agent_spec import AgentSpec, is_http_url, is_openai, resolve_folder
from wakeloop.cli.failures import usage_error
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
from wakeloop.guesses.prices import SHAPE
from wakeloop.loop.gates import LIMITS
from wakeloop.presets import preset
from wakeloop.settings import LoopSettings, WholeSettings

BASE, AGENT = "base", "agent"
OPTIONS = {  # options that are no --set, and what a level calls them
    "preset": ("preset", "--preset"),
    "model": ("model", "--model"),
    "base_url": ("base_url", "--base-url"),
    "system": ("system_prompt", "--system"),
    "tools": ("tools", "--tools"),
    "mcp": ("mcp", "--mcp"),
}
SET_OPTION = "--set"
LIMIT_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in LIMITS.values()}  # each a --set of its own
NO_NAME = "null"  # the name that leaves a role or an agent


@dataclass(frozen=True)
class LevelStack:
    """The levels beneath a thread's own values, lowest first; an agent file is the last."""

    levels: Sequence[Level]
    role: str = ""
    agent: str = ""

    @property
    def whole(self) -> Level | None:
        """The agent file, which overrides all settings."""
        return next((level for level in self.levels if level.name == AGENT), None)

    def resolve(self) -> ResolvedConfig:
        """What holds in the end, and what the command line brings where no level says it outright.

        The preset loki is switched on, and a preset without a limit of requests has the usual one.
        """
        whole = self.whole
        beneath = [level for level in self.levels if level is not whole]
        found = resolve_levels(beneath, whole=whole)
        speak = [whole] if whole else beneath
        brought = {}
        if found.get("preset") == "loki" and found.get("function_calling") is not False:
            brought["auto_continue"] = find_explicit_value(
                speak, "auto_continue", unsaid=True, why="switched on under loki"
            )
        if found.settings.max_requests is None:  # by a preset, or outright
            usual = LoopSettings().max_requests
            brought["max_requests"] = find_explicit_value(
                speak, "max_requests", unsaid=usual, why="a run has a limit"
            )
        return replace(found, values={**found.values, **brought})


def find_explicit_value(levels: Iterable[Level], key: str, *, unsaid: Any, why: str) -> ResolvedValue:
    """What the highest level says of a key itself, not by its preset; else what the command line brings."""
    held = ResolvedValue(unsaid, "command line", why, explicit=False)
    for level in levels:
        if key in level.values:
            held = ResolvedValue(level.values[key], level.name, level.source, explicit=True)
    return held


def build_recipe(before: AgentSpec | None, given: Mapping[str, Any]) -> AgentSpec:
    """The recipe of a thread: a new one's from files, environment and options; else as it was, and options.

    A thread keeps the levels that it was begun with. The files are read again where `given` names a role or
    an agent. Raises `SettingsError` for a wrong file, `CommandError` for options that go against an agent.
    """
    return recipe_from_stack(build_stack(before, given), before or AgentSpec(), given)


def recipe_from_stack(stack: LevelStack, before: AgentSpec, given: Mapping[str, Any]) -> AgentSpec:
    """What the levels come to, as it is stored with the thread."""
    found = stack.resolve()
    model = found.get("model") or ""
    if not model and not before.demo:
        raise usage_error(
            "No model is named: give --model, such as --model openai:NAME, or set WAKELOOP_MODEL; "
            "wakeloop init finds what there is."
        )
    require_prices(found.settings)
    name = found.get("preset") or "wakeloop"
    chosen = preset(name).model_dump(mode="json")
    settings = found.settings.model_dump(mode="json")
    return replace(
        before,
        model=model,
        base_url=select_base_url(found),
        system=found.get("system_prompt") or "",
        preset=name,
        settings={key: value for key, value in settings.items() if value != chosen[key]},
        root=given.get("root") or before.root or resolve_folder(Path()),
        tools=select_tools(found),
        function_calling=found.get("function_calling") is not False,
        verify=given.get("verify", before.verify),
        mcp=found.get("mcp"),
        imports=given.get("imports", before.imports),
        role=stack.role,
        agent=stack.agent,
        levels=[asdict(level) for level in stack.levels],
        switched_on=found.values["auto_continue"].level == "command line",
    )


def settings_from_recipe(recipe: AgentSpec) -> LoopSettings:
    """The settings of a recipe: a preset, and what was set on top of it; an agent file's are whole."""
    settings = preset(recipe.preset).model_copy(update=recipe.settings)
    return WholeSettings.model_validate(settings.model_dump()) if recipe.agent else settings


def require_prices(settings: LoopSettings) -> None:
    """Refuse a limit of cost where nothing has a price."""
    if settings.max_cost is not None and not settings.prices:
        where = config_folder() / "config.yaml"
        raise usage_error(f"max_cost needs prices: write them into {str(where)!r}, as in {SHAPE}.")


def select_tools(found: ResolvedConfig) -> tuple[str, ...]:
    """The tools that are named; else the usual ones, where the model can call any."""
    if (named := found.get("tools")) is not None:
        return tuple(named)
    return () if found.get("function_calling") is False else tuple(AgentSpec.tools)


def select_base_url(found: ResolvedConfig) -> str:
    """The server's address; one that no option names is left out for models of another kind."""
    held = found.values.get("base_url")
    if not held or not held.value or not (is_openai(found.get("model") or "") or held.level == BASE):
        return ""
    if not is_http_url(url := str(held.value)):
        raise usage_error(f"{held.source}: {url!r} is no address of a server: write http://HOST:PORT/v1.")
    return url


# -- the levels ------------------------------------------------------------------------------------------


def build_stack(before: AgentSpec | None, given: Mapping[str, Any]) -> LevelStack:
    """Put the levels together: those of the files or of the thread, and the options."""
    old = [] if before is None else levels_from_recipe(before)
    role, agent = (choose_name(given.get(key), getattr(before, key, "")) for key in ("role", "agent"))
    if before is None or "role" in given or "agent" in given:
        outside = read_file_levels(role, agent)
    else:
        outside = [level for level in old if level.name != BASE]
        if "max_cost" in given and not any("prices" in level.values for level in old):
            outside = [*keep_only_prices(read_file_levels(role, agent)), *outside]
    above = [level for level in outside if level.name == AGENT]
    for level in above:
        refuse_agent_conflicts(level, agent, given)
    base = apply_options([level for level in old if level.name == BASE], given)
    return LevelStack([*(level for level in outside if level not in above), *base, *above], role, agent)


def choose_name(name: str | None, before: str) -> str:
    """The role or agent that is meant: another, none, or the one there was."""
    if name is None:
        return before
    return "" if name == NO_NAME else name


def read_file_levels(role: str, agent: str) -> list[Level]:
    """Read what lies in the folder of configuration and in the environment."""
    where = config_folder()
    url = os.environ.get("OPENAI_BASE_URL")
    levels = [Level("global", "OPENAI_BASE_URL", {"base_url": url})] if url else []
    levels += read_global_levels(where)
    if role:
        levels.append(read_role(where, role))
    return [*levels, read_agent(where, agent)] if agent else levels


def keep_only_prices(levels: Iterable[Level]) -> list[Level]:
    """What levels say of prices: a thread that was begun without them takes those of today."""
    return [
        replace(level, values={"prices": level.values["prices"]})
        for level in levels
        if "prices" in level.values
    ]


def levels_from_recipe(recipe: AgentSpec) -> list[Level]:
    """The levels that a recipe was made from; one without is all base."""
    if recipe.levels:
        return [Level(**level) for level in recipe.levels]
    given = {key: value for key in (*OPTIONS, "settings") if (value := getattr(recipe, key))}
    return apply_options([], given)


def apply_options(base: Iterable[Level], given: Mapping[str, Any]) -> list[Level]:
    """The base of the agent: earlier options, overridden by those given now."""
    by_option = {level.source: level for level in base}
    for key, (name, option) in OPTIONS.items():
        if key in given:
            by_option[option] = Level(BASE, option, {name: given[key]})
    if "preset" in given:
        preset(given["preset"])  # refuses an unknown one
    for option, values in group_typed_settings(given).items():
        for other in (SET_OPTION, *LIMIT_OPTIONS.values()):  # the newest word holds, however it is said
            if other in by_option:
                rest = {key: value for key, value in by_option[other].values.items() if key not in values}
                by_option[other] = replace(by_option[other], values=rest)
        before = by_option[option].values if option in by_option else {}
        by_option[option] = Level(BASE, option, {**before, **values})
    return sorted(by_option.values(), key=lambda level: level.source in (SET_OPTION, *LIMIT_OPTIONS.values()))


def group_typed_settings(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings that were typed, checked, by option. Raises `CommandError` for one that is typed twice."""
    by_set = normalize_settings(given.get("settings") or {})
    found = {SET_OPTION: by_set} if by_set else {}
    for key, option in LIMIT_OPTIONS.items():
        if key in given:
            if key in by_set:
                raise usage_error(f"{key} is given twice, by {SET_OPTION} and by {option}: give it once.")
            found[option] = normalize_settings({key: given[key]})
    return found


def collect_typed_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that were typed, checked, whatever the option."""
    return {key: value for values in group_typed_settings(given).values() for key, value in values.items()}


def refuse_agent_conflicts(level: Level, agent: str, given: Mapping[str, Any]) -> None:
    """Refuse options that an agent file overrides, instead of leaving them without effect."""
    for key, option in {"preset": OPTIONS["preset"][1], "settings": SET_OPTION, **LIMIT_OPTIONS}.items():
        if key in given:
            raise usage_error(
                f"The agent {agent!r} overrides all settings: leave {option} out, or change {level.source}."
            )
    for key, (name, option) in OPTIONS.items():
        if key in given and name in level.values:
            raise usage_error(
                f"The agent {agent!r} says its {name} itself: leave {option} out, or change {level.source}."
            )
