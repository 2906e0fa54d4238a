"""A system is a dialect and settings: presets by name."""

from difflib import get_close_matches
from types import MappingProxyType

from wakeloop.errors import SettingsError
from wakeloop.settings import LoopSettings

PRESETS = MappingProxyType({"wakeloop": LoopSettings()})


def preset(name: str) -> LoopSettings:
    """Return the settings of a named system; vary them with `.model_copy(update={...})`.

    Raises `SettingsError` for an unknown name, with the nearest right one.
    """
    if name in PRESETS:
        return PRESETS[name]
    near = get_close_matches(name, PRESETS, n=1) or list(PRESETS)
    raise SettingsError(
        f"There is no preset {name!r}; did you mean {near[0]!r}? Known are: {', '.join(PRESETS)}."
    )
