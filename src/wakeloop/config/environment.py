"""Reads the variables WAKELOOP_… as settings."""

import os
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from wakeloop.errors import SettingsError as WrongSetting
from wakeloop.settings import ALIASES, LoopSettings

PREFIX = "WAKELOOP_"
OTHER_VARIABLES = ("DB", "CONFIG", "PROFILE")  # variables that are no settings


def read_environment(beside: Iterable[str]) -> dict[str, Any]:
    """Return what the environment says of settings, aliases and the keys `beside` them; values unchecked.

    Raises `SettingsError` for a variable of an unknown name and for a value that cannot be read.
    """
    fields: dict[str, Any] = {name: (f.annotation, None) for name, f in LoopSettings.model_fields.items()}
    fields |= {alias: fields[name] for alias, name in ALIASES.items()}
    fields |= dict.fromkeys(beside, (str | None, None))
    known = sorted(name.upper() for name in (*fields, *OTHER_VARIABLES))
    for variable in os.environ:
        name = variable.removeprefix(PREFIX)
        if name != variable and name not in known:
            near = get_close_matches(name, known, n=1)
            hint = (
                f"did you mean {PREFIX}{near[0]}?" if near else f"{PREFIX} goes before: {', '.join(known)}."
            )
            raise WrongSetting(f"There is no variable {variable}; {hint}")
    if not any(name.removeprefix(PREFIX) not in (name, *OTHER_VARIABLES) for name in os.environ):
        return {}
    from pydantic import create_model  # which takes longer than all the rest
    from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, SettingsError

    class Named(BaseSettings):
        model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, env_parse_none_str="null")

    model = create_model("Variables", __base__=Named, **fields)
    try:
        return EnvSettingsSource(model)()
    except SettingsError as error:
        told = str(error)  # names the field, of those that are no single words
        field = next((name for name in fields if f'"{name}"' in told), None)
        if field is None:
            raise WrongSetting(f"The environment cannot be read: {error}.") from None
        raise WrongSetting(
            f"The variable {PREFIX}{field.upper()} cannot be read: write it as JSON."
        ) from None
