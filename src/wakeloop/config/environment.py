"""Read the environment variables WAKELOOP_… as settings."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

from wakeloop.errors import SettingsError as WrongSetting
from wakeloop.settings import ALIASES, LoopSettings, advise_api_key, translate_word
from wakeloop.text.wording import nearest, suggest

PREFIX = "WAKELOOP_"
OTHER_VARIABLES = ("DB", "CONFIG", "PROFILE")  # not settings


def read_environment(other_keys: Iterable[str]) -> dict[str, Any]:
    """Return the settings, aliases and `other_keys` that the environment sets; values are not checked.

    Raises `SettingsError` for an unknown variable and for a value that cannot be parsed.
    """
    fields: dict[str, Any] = {}
    for name, field in LoopSettings.model_fields.items():
        fields[name] = (field.annotation, None)
    for alias, name in ALIASES.items():
        fields[alias] = fields[name]
    fields |= dict.fromkeys(other_keys, (str | None, None))
    if not _find_variables(sorted([*map(str.upper, fields), *OTHER_VARIABLES])):
        return {}
    from pydantic import create_model  # slow to import, so only if a variable is set
    from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, SettingsError

    class Named(BaseSettings):
        model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, env_parse_none_str="null")

    model = create_model("Variables", __base__=Named, **fields)
    try:
        return EnvSettingsSource(model)()
    except SettingsError as error:
        for name in fields:  # the message quotes the field, always one with a structured value
            if f'"{name}"' in str(error):
                raise WrongSetting(f"The variable {PREFIX}{name.upper()} must be JSON.") from None
        raise WrongSetting(f"The environment cannot be parsed: {error}.") from None
    except RecursionError:
        raise WrongSetting(f"A variable {PREFIX}… is nested too deeply.") from None


def _find_variables(known: Sequence[str]) -> bool:
    """Whether the environment has any setting. Raises `SettingsError` for an unknown variable."""
    found = False
    for variable in os.environ:
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX)
        if name not in known:
            word = translate_word(name)
            near = word.upper() if word else nearest(name, known)
            meant = PREFIX + near if near else None
            hint = advise_api_key(name) or suggest(name, known, meant)
            raise WrongSetting(f"Unknown variable {variable}. {hint}")
        found = found or name not in OTHER_VARIABLES
    return found
