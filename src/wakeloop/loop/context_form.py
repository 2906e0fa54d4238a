"""The settings of a run as a form, for its context."""

import json
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.loop.overrides import FIXED_SETTINGS
from wakeloop.settings import PRESET_SETTINGS, LoopSettings

_FORM_DESCRIPTION = "Settings of this run. They override those of the thread and of the agent."


def build_context_form(base: LoopSettings) -> type[Any]:
    """Return the schema of a context with `todo_settings`, described with this agent's own values.

    It lists what a user would change in one thread. Settings that only presets use are left out, but a
    context may still carry them: the schema is a mapping's type, so nothing is filled in, checked or dropped.
    """
    descriptions = []
    for name in LoopSettings.model_fields:
        if name not in FIXED_SETTINGS | PRESET_SETTINGS:
            descriptions.append((name, _describe_setting(name, base)))
    return _build_form(tuple(descriptions))


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
