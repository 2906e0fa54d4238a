"""A thread's settings as a form, for a run's context."""

import json
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.loop.overrides import FIXED
from wakeloop.settings import LoopSettings

_ASIDE = "Settings of this run, over the thread's and the agent's own."


def context_form(base: LoopSettings) -> type[Any]:
    """Return the schema of a context that carries `todo_settings`: each that may vary, and what it is here.

    A mapping's type, so that a context stays what it is: nothing is filled in, checked or dropped.
    """
    fields = {name: _field(base, name) for name in LoopSettings.model_fields if name not in FIXED}
    settings = TypedDict("TodoSettings", fields, total=False)  # type: ignore[misc]
    context = {"todo_settings": Annotated[settings, Field(description=_ASIDE)]}
    return TypedDict("TodoContext", context, total=False)  # type: ignore[operator,no-any-return]


def _field(base: LoopSettings, name: str) -> Any:
    field, value = LoopSettings.model_fields[name], getattr(base, name)
    here = "" if isinstance(value, dict) else f" This agent's: {json.dumps(value)}."
    told: Any = (field.annotation, Field(description=f"{field.description}{here}"), *field.metadata)
    return Annotated[told]
