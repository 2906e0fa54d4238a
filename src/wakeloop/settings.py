"""Every setting, in one frozen model."""

import re
from collections.abc import Mapping
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
from wakeloop.text.wording import suggest

MAX_NUMBER = 2**53  # checkpoints and JSON hold integers exactly up to here
PRICES_EXAMPLE = '{"default": {"input": 1.25, "cached": 0.13, "output": 10}}'


class Price(BaseModel):
    """The price of a million tokens. Without a price for cached input, it costs as much as the rest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0, le=MAX_NUMBER, strict=True)
    cached: float | None = Field(None, ge=0, le=MAX_NUMBER, strict=True)
    output: float = Field(ge=0, le=MAX_NUMBER, strict=True)


class LoopSettings(NotebookSettings, BaseModel):
    """How the loop behaves. Frozen; an unknown name or a wrong value raises `SettingsError`.

    >>> LoopSettings(max_wake_cycles=5).max_wake_cycles
    5
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, strict=False)

    dialect: str = "parley"
    """The vocabulary of todo tools: the name of a registered dialect."""
    auto_continue: bool = True
    """Whether the graph wakes the model at all. Off, a run ends with the model's first turn."""
    max_wake_cycles: int = Field(25, ge=0, le=MAX_NUMBER)
    """How often one activation may wake the model. 0 never wakes it."""
    earn_wakes: int = Field(100, ge=0, le=MAX_NUMBER)
    """How many more wakes an activation can earn, one for each item it closes or blocks."""
    max_idle_wakes: int = Field(5, ge=0, le=MAX_NUMBER)
    """Wakes in a row without progress after which the run ends as `stalled`. 0 turns this off."""
    stop_on_repeat: bool = False
    """Whether the run ends if a wake leads to the same reply over an unchanged list."""
    continuation_prompt: str | None = None
    """Replaces the nudge's words. The list still follows them."""
    inject_todo_instructions: bool = True
    """Whether the dialect's instructions are added to the system prompt."""
    max_items: int | None = Field(200, ge=1, le=MAX_NUMBER)
    """The longest list: open and blocked items if the dialect appends, all items if it replaces."""
    in_progress: Literal["any", "at_most_one", "exactly_one"] = "at_most_one"
    """How many items may be in progress. `exactly_one` allows none once nothing is open."""
    repeats: Literal["store", "name"] = "name"
    """Whether an appended item that is open already is stored again or named by its id."""
    statuses: tuple[str, ...] | None = None
    """The statuses that the model may set, if the dialect knows more. None allows all."""
    nag_after: int = Field(5, ge=0, le=MAX_NUMBER)
    """Rounds without a todo write before the first reminder. 0 turns reminders off."""
    nag_every: int = Field(5, ge=0, le=MAX_NUMBER)
    """Rounds between further reminders. 0 sends only the first."""
    nag_when: Literal["open", "always"] = "open"
    """Whether reminders need an open item or always come."""
    nudge_items: int = Field(30, ge=1, le=MAX_NUMBER)
    """How many items a nudge shows. Longer lists show the next open ones and the counts."""
    force_call: Literal["second", "never"] = "second"
    """Whether the second of two wakes without a call between them says it differently and asks for a call."""
    guard_retries: int = Field(1, ge=0, le=MAX_NUMBER)
    """Corrections that the guard may ask for in one activation. 0 turns the guard off."""
    guard_rearms: bool = True
    """Whether wakes may follow a correction that led to progress."""
    on_guard_exhausted: Literal["proceed", "block"] = "proceed"
    """After the last correction: end the run, or ask once for an explanation."""
    approve_plan: Literal["off", "first", "changes"] = "off"
    """Whether a person approves the first list of an activation, or every added or dropped item."""
    on_question: Literal["insist", "park", "wake"] = "insist"
    """After a turn that asks, with items open: one wake that gives no permission, wait at once, wake on."""
    on_new_topic: Literal["say", "ignore"] = "say"
    """Whether a person's new message is followed by the items that are still open from before."""
    verify_when: Literal["claim", "round"] = "claim"
    """Whether `verify` is asked only when the model closes an item, or also after each round of calls."""
    on_no_list: Literal["accept", "ask"] = "accept"
    """Whether a turn that used tools but wrote no list is asked once what is left to do."""
    audit: Literal["off", "once"] = "off"
    """Whether the model is asked once about items that it closed without work that succeeded."""
    reply_retries: int = Field(4, ge=0, le=MAX_NUMBER)
    """How many malformed, empty or cut replies in a row are asked for again."""
    printed_calls: Literal["ask", "run"] = "ask"
    """Whether a tool call that the model wrote as plain text is asked for again, or run as a call."""
    retries_fall: bool = True
    """Whether the last bad reply ends only its turn while items are open, so that wakes may follow."""
    max_idle_rounds: int = Field(10, ge=0, le=MAX_NUMBER)
    """Rounds in a row without anything new after which the run ends as `looping`. 0 turns this off."""
    max_requests: int | None = Field(500, ge=1, le=MAX_NUMBER)
    """Requests to the model in one activation, plus a closing one. None is unlimited."""
    max_tokens: int | None = Field(None, ge=1, le=MAX_NUMBER)
    """Tokens of one activation, input and output. None is unlimited."""
    max_cost: float | None = Field(None, gt=0, le=MAX_NUMBER)
    """Cost of one activation, in the currency of `prices`. None is unlimited."""
    prices: dict[str, Price] = Field(default_factory=dict)
    """Price per million tokens, by the start of a model's name or `default`. Fixed when built."""
    max_seconds: float | None = Field(None, gt=0, le=MAX_NUMBER)
    """Seconds of one activation: model time plus each round's longest call. None is unlimited."""
    on_budget: Literal["report", "stop"] = "report"
    """When a budget is spent with items open: ask for a closing report, or just stop."""
    max_context: int | None = Field(None, ge=0, le=MAX_NUMBER)
    """The model's context window in tokens. None: as its profile or its server says. 0 clears nothing."""
    finish_reason: Literal["required", "optional"] = "required"
    """Whether a stream from langchain-openai must end with a finish reason to count as whole."""
    tool_description: str | None = None
    """Replaces the description of the dialect's main tool."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """Replaces prompts by name, such as `nudge`, `nag` or `instructions`."""

    @model_validator(mode="wrap")
    @classmethod
    def _raise_settings_error(cls, values: Any, handler: ValidatorFunctionWrapHandler) -> Self:
        if isinstance(values, Mapping):
            values = resolve_aliases(values)
            for key in NUMERIC_SETTINGS & values.keys():
                if isinstance(values[key], bool):  # YAML reads `no` as False, which pydantic would make 0
                    raise SettingsError(f"Setting {key!r} must be a number, got {values[key]!r}.")
        try:
            return handler(values)  # type: ignore[no-any-return]
        except ValidationError as error:
            errors = error.errors()
            # A misspelled key is missing under its right name, too: say the one that helps.
            unknown = [one for one in errors if one["type"] == "extra_forbidden"]
            raise SettingsError(" ".join(map(_format_error, unknown or errors))) from None

    @field_validator("prompts")
    @classmethod
    def _check_prompts(cls, prompts: dict[str, str]) -> dict[str, str]:
        for name, text in prompts.items():
            check_prompt(name, text)
        return prompts

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with some settings changed. They are validated, which pydantic's own method skips.

        >>> LoopSettings().model_copy(update={"nag_after": 0}).nag_after
        0
        """
        if not update:
            return super().model_copy(deep=deep)
        return type(self).model_validate({**self.model_dump(), **resolve_aliases(update)})

    def __setattr__(self, name: str, value: Any) -> None:
        if name in type(self).model_fields:
            raise SettingsError(f"Settings are frozen. Make a copy: model_copy(update={{{name!r}: …}}).")
        super().__setattr__(name, value)

    @classmethod
    def for_model(cls, name: object, parts: int | None = None, profile: str | None = None) -> Self:
        """Return the settings that were measured to suit a model, for jobs of so many parts."""
        return cls.model_validate(measured_settings(name, parts, profile))

    @property
    def announces(self) -> bool:
        """Whether injected messages start with `(automatic)`: everywhere but in the described systems.

        Those have none of this package's own habits, and their messages stay as they were, byte for byte.
        """
        return self.retries_fall or self.guard_rearms or self.repeats == "name"

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


NUMERIC_SETTINGS = frozenset(
    name
    for name, field in LoopSettings.model_fields.items()
    if field.annotation in (int, int | None, float | None)
)
PRESET_SETTINGS = frozenset(
    (
        "stop_on_repeat",
        "continuation_prompt",
        "inject_todo_instructions",
        "repeats",
        "statuses",
        "nag_when",
        "guard_rearms",
        "on_guard_exhausted",
        "retries_fall",
        "tool_description",
    )
)
"""Settings that tell the presets apart. Hardly anybody sets them by hand: short tables leave them out."""


class AgentFileSettings(LoopSettings):
    """The settings of an agent file. They override all others, including a thread's."""


ALIASES = MappingProxyType({"max_auto_continues": "max_wake_cycles"})  # loki's names
# Words from other frameworks. Their nearest names by spelling would mislead: max_steps looks like max_items.
_OTHER_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "max_iterations max_iters max_steps max_turns max_loops max_calls max_llm_calls": "max_requests",
        "max_model_calls max_rounds recursion_limit request_limit run_limit step_limit": "max_requests",
        "max_wake max_wakes": "max_wake_cycles",
        "max_time max_execution_time timeout": "max_seconds",
        "max_budget max_budget_usd max_cost_usd": "max_cost",
        "max_retries": "reply_retries",
    }
)
_NOT_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("model", "tools", "system_prompt", "verify", "done_when", "interrupt_on", "interrupt_mode"),
            "It is an argument of create_todo_agent.",
        ),
        "preset": "Use preset('loki').model_copy(update={…}), or settings={'preset': 'loki', …}.",
    }
)


def resolve_aliases(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Return settings under their own names. Raises `SettingsError` for an unknown name."""
    resolved: dict[str, Any] = {}
    for given, value in values.items():
        key = ALIASES.get(str(given), str(given))
        check_setting_name(key)
        if key in resolved:
            raise SettingsError(f"Setting {key!r} is given twice, once as {given!r}.")
        resolved[key] = value
    return resolved


def translate_word(name: str) -> str | None:
    """Return the setting that another spelling, or a word of another framework, means; None for other words.

    >>> translate_word("maxTokens"), translate_word("max-steps")
    ('max_tokens', 'max_requests')
    """
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace("-", "_").lower()
    if plain in LoopSettings.model_fields:
        return plain
    return next((setting for words, setting in _OTHER_WORDS.items() if plain in words.split()), None)


def advise_api_key(name: str) -> str | None:
    """Say where an API key belongs if this is the name of one; None for other names."""
    if not name.lower().endswith("api_key"):
        return None
    return "API keys come from the environment, such as OPENAI_API_KEY."


def check_setting_name(key: str) -> None:
    """Refuse an unknown setting and suggest the right one."""
    if key in LoopSettings.model_fields:
        return
    hint = _NOT_SETTINGS.get(key) or advise_api_key(key)
    hint = hint or suggest(key, LoopSettings.model_fields, translate_word(key))
    raise SettingsError(f"Unknown setting {key!r}. {hint}")


def _format_error(error: Any) -> str:
    """Turn one of pydantic's errors into a sentence with the setting, what it must be, and what it is."""
    path = [str(part) for part in error["loc"]]
    where = ".".join(path) or "settings"
    if error["type"] == "extra_forbidden":
        return f"Unknown setting {where!r}. {suggest(path[-1], Price.model_fields)}"
    if error["type"] == "missing":
        return f"Setting {where!r} is missing. Example of prices: {PRICES_EXAMPLE}."
    if path[:1] == ["prices"] and error["type"] in ("dict_type", "model_type", "model_attributes_type"):
        must = f"must be a mapping, got {error['input']!r}. Example of prices: {PRICES_EXAMPLE}"
        return f"Setting {where!r} {must}."
    if path and path[0] in NUMERIC_SETTINGS and "parsing" in error["type"]:
        return f"Setting {where!r} must be a number, got {error['input']!r}."
    expected = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    expected = expected.partition(", got")[0]  # the value follows
    return f"Setting {where!r} {expected}, got {error['input']!r}."
