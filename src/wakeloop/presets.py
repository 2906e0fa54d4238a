"""Presets: settings by the name of a system."""

from types import MappingProxyType
from typing import Any, Never

from wakeloop.errors import ArgumentError, SettingsError
from wakeloop.settings import LoopSettings
from wakeloop.text.wording import nearest

_DESCRIBED = {  # rules of this package that the systems described by these presets do not have
    "max_idle_wakes": 0,
    "max_idle_rounds": 0,
    "max_requests": None,
    "repeats": "store",
    "guard_rearms": False,
    "earn_wakes": 0,
    "retries_fall": False,
    "reply_retries": 2,
    "on_question": "wake",
    "on_new_topic": "ignore",
    "on_no_list": "accept",
    "force_call": "never",
    "max_context": 0,
}
_QUIET = {"nag_after": 0, "guard_retries": 0, "max_items": None, "in_progress": "any"}
_CUBEPI = {
    "dialect": "write_todos",
    "max_wake_cycles": 0,
    "max_items": None,
    "in_progress": "exactly_one",
}
_SYSTEMS: dict[str, dict[str, Any]] = {
    "agentparley": {**_QUIET, "statuses": ("done", "blocked")},
    "loki": {
        **_QUIET,
        "dialect": "loki",
        "auto_continue": False,
        "max_wake_cycles": 10,
        "stop_on_repeat": True,
    },
    "lesson": {
        "dialect": "checklist",
        "max_items": 20,
        "max_wake_cycles": 0,
        "nag_after": 3,
        "nag_every": 1,
        "nag_when": "always",
        "guard_retries": 0,
    },
    "cubepi": _CUBEPI,
    "cubepi-strict": {**_CUBEPI, "guard_retries": 2, "on_guard_exhausted": "block"},
}
PRESETS = MappingProxyType(
    {"wakeloop": LoopSettings(), "langchain": LoopSettings(dialect="write_todos", in_progress="any")}
    | {name: LoopSettings.model_validate({**_DESCRIBED, **own}) for name, own in _SYSTEMS.items()}
)
LoopSettings.known_presets.update(PRESETS)


def preset(name: str, **varied: Never) -> LoopSettings:
    """Return the settings of a preset. Vary them with `.model_copy(update={...})`.

    Raises `SettingsError` for an unknown name.

    >>> preset("loki").dialect
    'loki'
    """
    if varied:
        update = ", ".join(f"{key!r}: …" for key in varied)
        raise ArgumentError(f"Vary a preset with preset({name!r}).model_copy(update={{{update}}}).")
    if not isinstance(name, str):
        raise SettingsError(f"A preset's name must be a string such as 'loki', got {name!r}.")
    if name not in PRESETS:
        near = nearest(name, PRESETS)
        hint = f"Did you mean {near!r}? " if near else ""
        raise SettingsError(f"Unknown preset {name!r}. {hint}Available: {', '.join(PRESETS)}.")
    return PRESETS[name]
