"""Every knob, and who overrides whom."""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from wakeloop.errors import SettingsError
from wakeloop.platform.measured import measured
from wakeloop.prompts import check_prompt

MOST = 2**53  # of any number here: it goes into checkpoints and JSON


class LoopSettings(BaseModel):
    """How the loop behaves: frozen. A wrong value or name, in `model_copy` too, is one `SettingsError`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, strict=False)

    dialect: str = "parley"
    """The vocabulary of todo tools: the name of a registered dialect."""
    auto_continue: bool = True
    """Whether the graph re-enters by itself at all; off, every turn's end ends the run."""
    max_wake_cycles: int = Field(25, ge=0, le=MOST)
    """Wakes that one activation may spend (agentparley's maxWakeCycles); 0 never wakes."""
    max_idle_wakes: int = Field(3, ge=0, le=MOST)
    """Wakes in a row without progress that end the run as `stalled`; 0 is off."""
    stop_on_repeat: bool = False
    """Whether the same text over the same list as at the last wake ends the run (loki)."""
    continuation_prompt: str | None = None
    """Words that replace the nudge's instruction whole; the list still follows them (loki)."""
    inject_todo_instructions: bool = True
    """Whether the dialect's instructions are appended to the system prompt (loki)."""
    max_items: int | None = Field(200, ge=1, le=MOST)
    """Items not yet closed where a dialect appends, items in all where it replaces; None is no limit."""
    in_progress: Literal["any", "at_most_one", "exactly_one"] = "at_most_one"
    """How many items may be in progress; `exactly_one` allows none only when nothing is open (cubepi)."""
    statuses: tuple[str, ...] | None = None
    """Words that the model may set an item to, where the dialect has more; None is all (agentparley)."""
    nag_after: int = Field(5, ge=0, le=MOST)
    """Rounds without a todo write after which the first reminder comes; 0 is off."""
    nag_every: int = Field(5, ge=0, le=MOST)
    """Rounds between further reminders; 0 leaves it at the first."""
    nag_when: Literal["open", "always"] = "open"
    """Whether reminders need an open item, or come in any case (lesson)."""
    nudge_items: int = Field(30, ge=1, le=MOST)
    """Items that a nudge shows; beyond it the next open ones, the counts, and how to see all."""
    guard_retries: int = Field(1, ge=0, le=MOST)
    """Corrections that the guard may ask for in one activation (cubepi); 0 is off."""
    on_guard_exhausted: Literal["proceed", "block"] = "proceed"
    """What follows the last correction in vain: the end, or one request for an explanation (cubepi)."""
    reply_retries: int = Field(2, ge=0, le=MOST)
    """Malformed, empty or cut replies in a row that are asked again."""
    finish_reason: Literal["required", "optional"] = "required"
    """Whether a stream of langchain-openai has to end with a finish reason, or is whole without one."""
    tool_description: str | None = None
    """Replaces the description of the dialect's main tool (cubepi)."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """Replaces texts of the package by name, such as `nudge`, `nag` or `instructions`."""

    @model_validator(mode="wrap")
    @classmethod
    def _speak_plainly(cls, values: Any, handler: ValidatorFunctionWrapHandler) -> Self:
        if isinstance(values, Mapping):
            values = canonical(values)
            for key in NUMBERS & values.keys():
                if isinstance(values[key], bool):  # as YAML reads `no`; pydantic would make it 0
                    raise SettingsError(f"The setting {key!r} cannot be {values[key]!r}: a number is due.")
        try:
            return handler(values)  # type: ignore[no-any-return]
        except ValidationError as error:
            raise SettingsError(" ".join(map(_sentence, error.errors()))) from None

    @field_validator("prompts")
    @classmethod
    def _known_prompts(cls, prompts: dict[str, str]) -> dict[str, str]:
        for name, text in prompts.items():
            check_prompt(name, text)
        return prompts

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a validated copy with some fields changed (pydantic's own validates nothing)."""
        if not update:
            return super().model_copy(deep=deep)
        return type(self).model_validate({**self.model_dump(), **canonical(update)})

    @classmethod
    def for_model(cls, name: str, parts: int | None = None, profile: str | None = None) -> Self:
        """Return what was measured to suit a model, for jobs of so many parts: see `platform.measured`."""
        return cls.model_validate(measured(name, parts, profile))

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


NUMBERS = frozenset(n for n, f in LoopSettings.model_fields.items() if f.annotation in (int, int | None))


class WholeSettings(LoopSettings):
    """The settings of an agent file: they override all others, and a thread's values do not count."""


ALIASES = MappingProxyType({"max_auto_continues": "max_wake_cycles"})  # loki's names


def canonical(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Return settings under their own names. Raises `SettingsError` for a name that is none."""
    named: dict[str, Any] = {}
    for given, value in values.items():
        key = ALIASES.get(str(given), str(given))
        check_key(key)
        if key in named:
            raise SettingsError(f"The setting {key!r} is given twice, once as {given!r}; give it once.")
        named[key] = value
    return named


_ELSEWHERE = MappingProxyType(
    dict.fromkeys(("model", "tools", "system_prompt", "verify"), "it is an argument of create_todo_agent")
    | {"preset": "vary one with preset('loki').model_copy(update={…}), or settings={'preset': 'loki', …}"}
)


def check_key(key: str) -> None:
    """Refuse an unknown setting and name the nearest right one."""
    if key in LoopSettings.model_fields:
        return
    if key in _ELSEWHERE:
        raise SettingsError(f"There is no setting {key!r}: {_ELSEWHERE[key]}.")
    near = get_close_matches(key, LoopSettings.model_fields, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(LoopSettings.model_fields)}."
    raise SettingsError(f"There is no setting {key!r}; {hint}")


def _sentence(error: Any) -> str:
    where = ".".join(map(str, error["loc"])) or "settings"
    said = error["msg"].removeprefix("Value error, ")
    return f"The setting {where!r} cannot be {error['input']!r}: {said[:1].lower()}{said[1:]}."


# -- a thread's overrides --------------------------------------------------------------------------------

FIXED = frozenset(("dialect", "tool_description", "max_items", "in_progress", "statuses"))
FIXED_PROMPTS = frozenset(("instructions", "last_check"))


def check_overrides(base: LoopSettings, overrides: object) -> dict[str, Any]:
    """Check a thread's overrides and return those that differ from the agent's base.

    Raises `SettingsError` where it is no mapping, a key or value is wrong, or it may not vary in a thread.
    """
    if not isinstance(overrides, Mapping):
        raise SettingsError(f"todo_settings must be a mapping of setting to value, not {overrides!r}.")
    if isinstance(base, WholeSettings):
        return {}
    overrides = canonical(overrides)
    for key in overrides:
        if key in FIXED:
            raise SettingsError(
                f"The setting {key!r} is fixed when the agent is built; leave it out of todo_settings."
            )
    words = overrides.get("prompts")
    if isinstance(words, Mapping) and (fixed := FIXED_PROMPTS & set(words)):
        raise SettingsError(
            f"The prompt {min(fixed)!r} is fixed when the agent is built; leave it out of todo_settings."
        )
    if not overrides:
        return {}
    new, old = _merged(base, overrides).model_dump(), base.model_dump()
    return {key: new[key] for key in new if new[key] != old[key]}


def effective(base: LoopSettings, overrides: Mapping[str, Any] | None) -> LoopSettings:
    """Return the settings in force: the agent's base, or it with a thread's checked overrides."""
    return _cached(base, json.dumps(overrides, sort_keys=True)) if overrides else base


@lru_cache(maxsize=256)
def _cached(base: LoopSettings, overrides: str) -> LoopSettings:
    return _merged(base, json.loads(overrides))


def _merged(base: LoopSettings, overrides: Mapping[str, Any]) -> LoopSettings:
    update = dict(overrides)
    if isinstance(update.get("prompts"), Mapping):
        update["prompts"] = {**base.prompts, **update["prompts"]}
    return base.model_copy(update=update)
