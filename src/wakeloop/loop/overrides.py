"""What a thread may override, and which settings are in force."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from wakeloop.errors import SettingsError
from wakeloop.loop.ledger import Ledger
from wakeloop.settings import AgentFileSettings, LoopSettings, resolve_aliases

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
