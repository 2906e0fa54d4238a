"""What a thread may override, and the form that lists it."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.errors import SettingsError
from wakeloop.loop.ledger import Ledger
from wakeloop.settings import PRESET_SETTINGS, AgentFileSettings, LoopSettings, resolve_aliases

FIXED_SETTINGS = frozenset(
    ("dialect", "tool_description", "max_items", "in_progress", "statuses", "repeats", "prices")
)
FIXED_PROMPTS = frozenset(("instructions", "automatic", "last_check"))


def check_overrides(base: LoopSettings, overrides: object) -> dict[str, Any]:
    """Check a thread's overrides and return those that differ from the agent's base.

    Raises `SettingsError` if it is not a mapping, a key or value is wrong, or a setting may not vary in a
    thread.
    """
    if not isinstance(overrides, Mapping):
        raise SettingsError(f"todo_settings must be a mapping of setting to value, not {overrides!r}.")
    if isinstance(base, AgentFileSettings):
        return {}
    overrides = resolve_aliases(overrides)
    for key in overrides:
        if key in FIXED_SETTINGS:
            raise SettingsError(
                f"Setting {key!r} is fixed when the agent is built. Remove it from todo_settings."
            )
    words = overrides.get("prompts")
    if isinstance(words, Mapping) and (fixed := FIXED_PROMPTS & set(words)):
        raise SettingsError(
            f"Prompt {min(fixed)!r} is fixed when the agent is built. Remove it from todo_settings."
        )
    if not overrides:
        return {}
    new, old = _merge_overrides(base, overrides).model_dump(), base.model_dump()
    return {key: new[key] for key in new if new[key] != old[key]}


def apply_overrides(base: LoopSettings, overrides: Mapping[str, Any] | None) -> LoopSettings:
    """Return the settings in force: the agent's base with a thread's checked overrides, if any."""
    return _apply_cached(base, json.dumps(overrides, sort_keys=True)) if overrides else base


def settings_in_force(base: LoopSettings, notes: Ledger) -> LoopSettings:
    """Return the settings that an activation began with: those in its notes, over the agent's base."""
    return apply_overrides(base, notes["settings"]) if "settings" in notes else base


@lru_cache(maxsize=256)
def _apply_cached(base: LoopSettings, overrides: str) -> LoopSettings:
    return _merge_overrides(base, json.loads(overrides))


def _merge_overrides(base: LoopSettings, overrides: Mapping[str, Any]) -> LoopSettings:
    update = dict(overrides)
    if isinstance(update.get("prompts"), Mapping):
        update["prompts"] = {**base.prompts, **update["prompts"]}
    return base.model_copy(update=update)


_FORM_DESCRIPTION = "Settings of this run. They override those of the thread and of the agent."


def build_context_form(base: LoopSettings) -> type[Any]:
    """Return the schema of a context with `todo_settings`, described with this agent's own values.

    It lists what a user would change in one thread. Settings that only presets use are left out, but a
    context may still carry them: the schema is a mapping's type, so nothing is filled in, checked or dropped.
    """
    names = (name for name in LoopSettings.model_fields if name not in FIXED_SETTINGS | PRESET_SETTINGS)
    return _build_form(tuple((name, _describe_setting(name, base)) for name in names))


@lru_cache(64)
def _build_form(descriptions: tuple[tuple[str, str], ...]) -> type[Any]:
    fields = {name: _annotate_setting(name, description) for name, description in descriptions}
    settings = TypedDict("TodoSettings", fields, total=False)  # type: ignore[misc]
    context = {"todo_settings": Annotated[settings, Field(description=_FORM_DESCRIPTION)]}
    return TypedDict("TodoContext", context, total=False)  # type: ignore[operator,no-any-return]


def _describe_setting(name: str, base: LoopSettings) -> str:
    value = getattr(base, name)
    here = "" if isinstance(value, dict) else f" This agent's: {json.dumps(value)}."
    return f"{LoopSettings.model_fields[name].description}{here}"


def _annotate_setting(name: str, description: str) -> Any:
    field = LoopSettings.model_fields[name]
    annotated: Any = (field.annotation, Field(description=description), *field.metadata)
    return Annotated[annotated]
