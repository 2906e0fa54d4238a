"""Read the environment variables WAKELOOP_… as settings."""

import os
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from wakeloop.errors import SettingsError as WrongSetting
from wakeloop.settings import ALIASES, LoopSettings

PREFIX = "WAKELOOP_"
OTHER_VARIABLES = ("DB", "CONFIG", "PROFILE")  # not settings


def read_environment(other_keys: Iterable[str]) -> dict[str, Any]:
    """Return the settings, aliases and `other_keys` that the environment sets; values are not checked.

    Raises `SettingsError` for an unknown variable and for a value that cannot be parsed.
    """
    fields: dict[str, Any] = {name: (f.annotation, None) for name, f in LoopSettings.model_fields.items()}
    fields |= {alias: fields[name] for alias, name in ALIASES.items()}
    fields |= dict.fromkeys(other_keys, (str | None, None))
    known = sorted(name.upper() for name in (*fields, *OTHER_VARIABLES))
    for variable in os.environ:
        name = variable.removeprefix(PREFIX)
        if name != variable and name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"Available after {PREFIX}: {', '.join(known)}."
            if near:
                hint = f"Did you mean {PREFIX}{near[0]}?"
            raise WrongSetting(f"Unknown variable {variable}. {hint}")
    if not any(name.removeprefix(PREFIX) not in (name, *OTHER_VARIABLES) for name in os.environ):
        return {}
    from pydantic import create_model  # slow to import, so only if a variable is set
    from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, SettingsError

    class Named(BaseSettings):
        model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, env_parse_none_str="null")

    model = create_model("Variables", __base__=Named, **fields)
    try:
        return EnvSettingsSource(model)()
    except SettingsError as error:
        message = str(error)  # it names the field, always one with a structured value
        field = next((name for name in fields if f'"{name}"' in message), None)
        if field is None:
            raise WrongSetting(f"The environment cannot be parsed: {error}.") from None
        raise WrongSetting(f"The variable {PREFIX}{field.upper()} must be JSON.") from None
