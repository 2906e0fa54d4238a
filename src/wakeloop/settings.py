"""Every knob in one frozen model."""

from collections.abc import Mapping
from difflib import get_close_matches
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
from wakeloop.platform.model_profile import measured_settings
from wakeloop.prompts import check_prompt
from wakeloop.text.notebook_settings import NotebookSettings

MAX_NUMBER = 2**53  # of any number here: it goes into checkpoints and JSON


class Price(BaseModel):
    """What a million tokens cost: of the input, of its cached part (None: as the rest), of the output."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0, le=MAX_NUMBER)
    cached: float | None = Field(None, ge=0, le=MAX_NUMBER)
    output: float = Field(ge=0, le=MAX_NUMBER)


class LoopSettings(NotebookSettings, BaseModel):
    """How the loop behaves: frozen. A wrong value or name, in `model_copy` too, is one `SettingsError`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, strict=False)

    dialect: str = "parley"
    """The vocabulary of todo tools: the name of a registered dialect."""
    auto_continue: bool = True
    """Whether the graph re-enters by itself at all; off, every turn's end ends the run."""
    max_wake_cycles: int = Field(25, ge=0, le=MAX_NUMBER)
    """Wakes that one activation may spend (agentparley's maxWakeCycles); 0 never wakes."""
    earn_wakes: int = Field(100, ge=0, le=MAX_NUMBER)
    """Wakes that an activation may earn beyond them, one for each item that it settles; 0 earns none."""
    max_idle_wakes: int = Field(5, ge=0, le=MAX_NUMBER)
    """Wakes in a row without progress that end the run as `stalled`; 0 is off."""
    stop_on_repeat: bool = False
    """Whether the same text over the same list as at the last wake ends the run (loki)."""
    continuation_prompt: str | None = None
    """Words that replace the nudge's instruction whole; the list still follows them (loki)."""
    inject_todo_instructions: bool = True
    """Whether the dialect's instructions are appended to the system prompt (loki)."""
    max_items: int | None = Field(200, ge=1, le=MAX_NUMBER)
    """Items not yet closed where a dialect appends, items in all where it replaces; None is no limit."""
    in_progress: Literal["any", "at_most_one", "exactly_one"] = "at_most_one"
    """How many items may be in progress; `exactly_one` allows none only when nothing is open (cubepi)."""
    repeats: Literal["store", "name"] = "name"
    """What becomes of an appended item that equals an open one: stored again, or named by its id."""
    statuses: tuple[str, ...] | None = None
    """Words that the model may set an item to, where the dialect has more; None is all (agentparley)."""
    nag_after: int = Field(5, ge=0, le=MAX_NUMBER)
    """Rounds without a todo write after which the first reminder comes; 0 is off."""
    nag_every: int = Field(5, ge=0, le=MAX_NUMBER)
    """Rounds between further reminders; 0 leaves it at the first."""
    nag_when: Literal["open", "always"] = "open"
    """Whether reminders need an open item, or come in any case (lesson)."""
    nudge_items: int = Field(30, ge=1, le=MAX_NUMBER)
    """Items that a nudge shows; beyond it the next open ones, the counts, and how to see all."""
    guard_retries: int = Field(1, ge=0, le=MAX_NUMBER)
    """Corrections that the guard may ask for in one activation (cubepi); 0 is off."""
    guard_rearms: bool = True
    """Whether a correction that brings progress is followed by wakes again."""
    on_guard_exhausted: Literal["proceed", "block"] = "proceed"
    """What follows the last correction in vain: the end, or one request for an explanation (cubepi)."""
    approve_plan: Literal["off", "first", "changes"] = "off"
    """Whether a person is asked about an activation's first list, or whenever items are added or dropped."""
    on_no_list: Literal["accept", "ask"] = "accept"
    """Whether a turn's end without a list, where tools have run, is asked once what is left."""
    reply_retries: int = Field(4, ge=0, le=MAX_NUMBER)
    """Malformed, empty or cut replies in a row that are asked again."""
    retries_fall: bool = True
    """Whether with open items the last of them ends its turn, so that wakes may follow, and not the run."""
    max_idle_rounds: int = Field(10, ge=0, le=MAX_NUMBER)
    """Rounds in a row that bring nothing new, after which the run ends as `looping`; 0 is off."""
    max_requests: int | None = Field(500, ge=1, le=MAX_NUMBER)
    """Requests to the model in one activation, the closing one beyond it; None is no limit."""
    max_tokens: int | None = Field(None, ge=1, le=MAX_NUMBER)
    """Tokens of one activation, in and out; None is no limit."""
    max_cost: float | None = Field(None, gt=0, le=MAX_NUMBER)
    """Cost of one activation, in the unit of `prices`; None is no limit."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """What a million tokens cost, by the beginning of a model's name, or `default`; fixed at build."""
    max_seconds: float | None = Field(None, gt=0, le=MAX_NUMBER)
    """Seconds of one activation, inside the model and the longest call of each round; None is no limit."""
    on_budget: Literal["report", "stop"] = "report"
    """Whether a spent budget is followed by one closing request (with open items), or by nothing."""
    finish_reason: Literal["required", "optional"] = "required"
    """Whether a stream of langchain-openai has to end with a finish reason, or is whole without one."""
    tool_description: str | None = None
    """Replaces the description of the dialect's main tool (cubepi)."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """Replaces texts of the package by name, such as `nudge`, `nag` or `instructions`."""

    @model_validator(mode="wrap")
    @classmethod
    def _raise_settings_error(cls, values: Any, handler: ValidatorFunctionWrapHandler) -> Self:
        if isinstance(values, Mapping):
            values = resolve_aliases(values)
            for key in NUMERIC_SETTINGS & values.keys():
                if isinstance(values[key], bool):  # as YAML reads `no`; pydantic would make it 0
                    raise SettingsError(f"The setting {key!r} cannot be {values[key]!r}: a number is due.")
        try:
            return handler(values)  # type: ignore[no-any-return]
        except ValidationError as error:
            raise SettingsError(" ".join(map(_format_error, error.errors()))) from None

    @field_validator("prompts")
    @classmethod
    def _check_prompts(cls, prompts: dict[str, str]) -> dict[str, str]:
        for name, text in prompts.items():
            check_prompt(name, text)
        return prompts

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a validated copy with some fields changed (pydantic's own validates nothing)."""
        if not update:
            return super().model_copy(deep=deep)
        return type(self).model_validate({**self.model_dump(), **resolve_aliases(update)})

    @classmethod
    def for_model(cls, name: object, parts: int | None = None, profile: str | None = None) -> Self:
        """Return what was measured to suit a model, for jobs of so many parts: see `platform.measured`."""
        return cls.model_validate(measured_settings(name, parts, profile))

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


NUMERIC_SETTINGS = frozenset(
    n for n, f in LoopSettings.model_fields.items() if f.annotation in (int, int | None, float | None)
)


class AgentFileSettings(LoopSettings):
    """The settings of an agent file: they override all others, and a thread's values do not count."""


ALIASES = MappingProxyType({"max_auto_continues": "max_wake_cycles"})  # loki's names


def resolve_aliases(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Return settings under their own names. Raises `SettingsError` for a name that is none."""
    named: dict[str, Any] = {}
    for given, value in values.items():
        key = ALIASES.get(str(given), str(given))
        check_setting_name(key)
        if key in named:
            raise SettingsError(f"The setting {key!r} is given twice, once as {given!r}; give it once.")
        named[key] = value
    return named


_NOT_SETTINGS = MappingProxyType(
    dict.fromkeys(("model", "tools", "system_prompt", "verify"), "it is an argument of create_todo_agent")
    | {"preset": "vary one with preset('loki').model_copy(update={…}), or settings={'preset': 'loki', …}"}
)


def check_setting_name(key: str) -> None:
    """Refuse an unknown setting and name the nearest right one."""
    if key in LoopSettings.model_fields:
        return
    if key in _NOT_SETTINGS:
        raise SettingsError(f"There is no setting {key!r}: {_NOT_SETTINGS[key]}.")
    near = get_close_matches(key, LoopSettings.model_fields, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(LoopSettings.model_fields)}."
    raise SettingsError(f"There is no setting {key!r}; {hint}")


def _format_error(error: Any) -> str:
    where = ".".join(map(str, error["loc"])) or "settings"
    said = error["msg"].removeprefix("Value error, ")
    return f"The setting {where!r} cannot be {error['input']!r}: {said[:1].lower()}{said[1:]}."
