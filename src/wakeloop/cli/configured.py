"""From levels of configuration to a thread's recipe."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from wakeloop.cli.failures import usage
from wakeloop.cli.recipe import Recipe, folder, is_address, is_openai
from wakeloop.config.levels import (
    Held,
    Level,
    Resolved,
    agent_level,
    config_folder,
    global_levels,
    plain,
    resolve,
    role_level,
)
from wakeloop.display.words import LIMITS
from wakeloop.guesses.prices import SHAPE
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
SET = "--set"
BOUNDS = {name: f"--{name.replace('_', '-')}" for name in LIMITS.values()}  # each a --set of its own
NOBODY = "null"  # the name that leaves a role or an agent


@dataclass(frozen=True)
class Stack:
    """The levels beneath a thread's own values, lowest first; an agent file is the last."""

    levels: Sequence[Level]
    role: str = ""
    agent: str = ""

    @property
    def whole(self) -> Level | None:
        """The agent file, which overrides all settings."""
        return next((level for level in self.levels if level.name == AGENT), None)

    def resolved(self) -> Resolved:
        """What holds in the end, and what the command line brings where no level says it outright.

        The preset loki is switched on, and a preset without a limit of requests has the usual one.
        """
        whole = self.whole
        beneath = [level for level in self.levels if level is not whole]
        found = resolve(beneath, whole=whole)
        speak = [whole] if whole else beneath
        brought = {}
        if found.get("preset") == "loki" and found.get("function_calling") is not False:
            brought["auto_continue"] = outright(
                speak, "auto_continue", unsaid=True, why="switched on under loki"
            )
        if found.settings.max_requests is None:  # by a preset, or outright
            usual = LoopSettings().max_requests
            brought["max_requests"] = outright(speak, "max_requests", unsaid=usual, why="a run has a limit")
        return replace(found, held={**found.held, **brought})


def outright(levels: Iterable[Level], key: str, *, unsaid: Any, why: str) -> Held:
    """What the highest level says of a key itself, not by its preset; else what the command line brings."""
    held = Held(unsaid, "command line", why, outright=False)
    for level in levels:
        if key in level.values:
            held = Held(level.values[key], level.name, level.source, outright=True)
    return held


def configured(before: Recipe | None, given: Mapping[str, Any]) -> Recipe:
    """The recipe of a thread: a new one's from files, environment and options; else as it was, and options.

    A thread keeps the levels that it was begun with. The files are read again where `given` names a role or
    an agent. Raises `SettingsError` for a wrong file, `CommandError` for options that go against an agent.
    """
    return recipe_of(stack_of(before, given), before or Recipe(), given)


def recipe_of(stack: Stack, before: Recipe, given: Mapping[str, Any]) -> Recipe:
    """What the levels come to, as it is stored with the thread."""
    found = stack.resolved()
    model = found.get("model") or ""
    if not model and not before.demo:
        raise usage(
            "No model is named: give --model, such as --model openai:NAME, or set WAKELOOP_MODEL; "
            "wakeloop init finds what there is."
        )
    refuse_unpriced(found.settings)
    name = found.get("preset") or "wakeloop"
    chosen = preset(name).model_dump(mode="json")
    settings = found.settings.model_dump(mode="json")
    return replace(
        before,
        model=model,
        base_url=address(found),
        system=found.get("system_prompt") or "",
        preset=name,
        settings={key: value for key, value in settings.items() if value != chosen[key]},
        root=given.get("root") or before.root or folder(Path()),
        tools=tools_of(found),
        function_calling=found.get("function_calling") is not False,
        verify=given.get("verify", before.verify),
        mcp=found.get("mcp"),
        imports=given.get("imports", before.imports),
        role=stack.role,
        agent=stack.agent,
        levels=[asdict(level) for level in stack.levels],
        switched_on=found.held["auto_continue"].level == "command line",
    )


def settings_of(recipe: Recipe) -> LoopSettings:
    """The settings of a recipe: a preset, and what was set on top of it; an agent file's are whole."""
    settings = preset(recipe.preset).model_copy(update=recipe.settings)
    return WholeSettings.model_validate(settings.model_dump()) if recipe.agent else settings


def refuse_unpriced(settings: LoopSettings) -> None:
    """Refuse a limit of cost where nothing has a price."""
    if settings.max_cost is not None and not settings.prices:
        where = config_folder() / "config.yaml"
        raise usage(f"max_cost needs prices: write them into {str(where)!r}, as in {SHAPE}.")


def tools_of(found: Resolved) -> tuple[str, ...]:
    """The tools that are named; else the usual ones, where the model can call any."""
    if (named := found.get("tools")) is not None:
        return tuple(named)
    return () if found.get("function_calling") is False else tuple(Recipe.tools)


def address(found: Resolved) -> str:
    """The server's address; one that no option names is left out for models of another kind."""
    held = found.held.get("base_url")
    if not held or not held.value or not (is_openai(found.get("model") or "") or held.level == BASE):
        return ""
    if not is_address(url := str(held.value)):
        raise usage(f"{held.source}: {url!r} is no address of a server: write http://HOST:PORT/v1.")
    return url


# -- the levels ------------------------------------------------------------------------------------------


def stack_of(before: Recipe | None, given: Mapping[str, Any]) -> Stack:
    """Put the levels together: those of the files or of the thread, and the options."""
    old = [] if before is None else levels_of(before)
    role, agent = (called(given.get(key), getattr(before, key, "")) for key in ("role", "agent"))
    if before is None or "role" in given or "agent" in given:
        outside = from_files(role, agent)
    else:
        outside = [level for level in old if level.name != BASE]
        if "max_cost" in given and not any("prices" in level.values for level in old):
            outside = [*prices_alone(from_files(role, agent)), *outside]
    above = [level for level in outside if level.name == AGENT]
    for level in above:
        refuse_beside(level, agent, given)
    base = options_over([level for level in old if level.name == BASE], given)
    return Stack([*(level for level in outside if level not in above), *base, *above], role, agent)


def called(name: str | None, before: str) -> str:
    """The role or agent that is meant: another, none, or the one there was."""
    if name is None:
        return before
    return "" if name == NOBODY else name


def from_files(role: str, agent: str) -> list[Level]:
    """Read what lies in the folder of configuration and in the environment."""
    where = config_folder()
    url = os.environ.get("OPENAI_BASE_URL")
    levels = [Level("global", "OPENAI_BASE_URL", {"base_url": url})] if url else []
    levels += global_levels(where)
    if role:
        levels.append(role_level(where, role))
    return [*levels, agent_level(where, agent)] if agent else levels


def prices_alone(levels: Iterable[Level]) -> list[Level]:
    """What levels say of prices: a thread that was begun without them takes those of today."""
    return [
        replace(level, values={"prices": level.values["prices"]})
        for level in levels
        if "prices" in level.values
    ]


def levels_of(recipe: Recipe) -> list[Level]:
    """The levels that a recipe was made from; one without is all base."""
    if recipe.levels:
        return [Level(**level) for level in recipe.levels]
    given = {key: value for key in (*OPTIONS, "settings") if (value := getattr(recipe, key))}
    return options_over([], given)


def options_over(base: Iterable[Level], given: Mapping[str, Any]) -> list[Level]:
    """The base of the agent: earlier options, overridden by those given now."""
    by_option = {level.source: level for level in base}
    for key, (name, option) in OPTIONS.items():
        if key in given:
            by_option[option] = Level(BASE, option, {name: given[key]})
    if "preset" in given:
        preset(given["preset"])  # refuses an unknown one
    for option, values in said(given).items():
        for other in (SET, *BOUNDS.values()):  # the newest word holds, however it is said
            if other in by_option:
                rest = {key: value for key, value in by_option[other].values.items() if key not in values}
                by_option[other] = replace(by_option[other], values=rest)
        before = by_option[option].values if option in by_option else {}
        by_option[option] = Level(BASE, option, {**before, **values})
    return sorted(by_option.values(), key=lambda level: level.source in (SET, *BOUNDS.values()))


def said(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings that were typed, checked, by option. Raises `CommandError` for one that is typed twice."""
    by_set = plain(given.get("settings") or {})
    found = {SET: by_set} if by_set else {}
    for key, option in BOUNDS.items():
        if key in given:
            if key in by_set:
                raise usage(f"{key} is given twice, by {SET} and by {option}: give it once.")
            found[option] = plain({key: given[key]})
    return found


def typed(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that were typed, checked, whatever the option."""
    return {key: value for values in said(given).values() for key, value in values.items()}


def refuse_beside(level: Level, agent: str, given: Mapping[str, Any]) -> None:
    """Refuse options that an agent file overrides, instead of leaving them without effect."""
    for key, option in {"preset": OPTIONS["preset"][1], "settings": SET, **BOUNDS}.items():
        if key in given:
            raise usage(
                f"The agent {agent!r} overrides all settings: leave {option} out, or change {level.source}."
            )
    for key, (name, option) in OPTIONS.items():
        if key in given and name in level.values:
            raise usage(
                f"The agent {agent!r} says its {name} itself: leave {option} out, or change {level.source}."
            )
