"""How to ask each client for no call, or for a call."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True, slots=True)
class ToolChoices:
    """The `tool_choice` that forbids calls, and the one that forces a call, in a client's form or None."""

    no_call: Any
    a_call: Any


TOOL_CHOICES: Mapping[str, ToolChoices] = MappingProxyType(
    {
        "langchain_openai.BaseChatOpenAI": ToolChoices("none", "required"),
        "langchain_anthropic.ChatAnthropic": ToolChoices({"type": "none"}, {"type": "any"}),
        "langchain_aws.ChatBedrockConverse": ToolChoices(None, "any"),
        "langchain_google_genai.ChatGoogleGenerativeAI": ToolChoices("none", "any"),
        "langchain_groq.ChatGroq": ToolChoices("none", "required"),
        "langchain_mistralai.ChatMistralAI": ToolChoices("none", "any"),
        "langchain_ibm.ChatWatsonx": ToolChoices(None, "required"),
        "wakeloop.RecordingModel": ToolChoices(None, "required"),
    }
)
"""`tool_choice` by client class, also for subclasses. Any other client could take the word for a tool's name,
as langchain-aws does with `none`, so `tool_choice` is left out."""

_NO_CHOICES = ToolChoices(None, None)
_NAMES_CHOICE = re.compile(r"tool[ _]?choice|function[ _]?calling[ _]?(config|mode)", re.IGNORECASE)


def no_call_choice(model: BaseChatModel) -> Any:
    """Return the `tool_choice` that forbids calls in this client's form, or None if it has none."""
    return _find_choices(model).no_call


def forced_call_choice(model: BaseChatModel) -> Any:
    """Return the `tool_choice` that asks for a call in this client's form.

    None if it has none, if it would leave the choice out, or if the user has set one of their own.
    """
    choice = _find_choices(model).a_call
    return None if choice is None or _has_own_choice(model) or _cannot_force(model) else choice


def refuses_choice(error: BaseException) -> bool:
    """Tell whether a client or its server refused a request because of its `tool_choice`.

    The text decides: clients raise errors of many classes for it, and servers send more than one status.

    >>> refuses_choice(ValueError("Thinking may not be enabled when tool_choice forces tool use."))
    True
    """
    if not isinstance(error, Exception):
        return False
    words = [part for part in error.args if isinstance(part, str)]
    return bool(_NAMES_CHOICE.search(f"{words} {getattr(error, 'body', '')}"))


def loses_plain_bodies(model: BaseChatModel) -> bool:
    """Tell whether a client loses replies that are not streams, and accepts `stream=False`."""
    names = class_names(type(model))
    return "langchain_openai.BaseChatOpenAI" in names or "langchain_anthropic.ChatAnthropic" in names


def is_openai(model: BaseChatModel) -> bool:
    """Tell whether a client is langchain-openai's, or a subclass of it."""
    return "langchain_openai.BaseChatOpenAI" in class_names(type(model))


def _find_choices(model: BaseChatModel) -> ToolChoices:
    for name in class_names(type(model)):
        if name in TOOL_CHOICES:
            return TOOL_CHOICES[name]
    return _NO_CHOICES


def _has_own_choice(model: BaseChatModel) -> bool:
    """Tell whether the user's own `tool_choice` goes with every request of this model."""
    sent = (getattr(model, "model_kwargs", None), getattr(model, "extra_body", None))
    return any(isinstance(options, Mapping) and "tool_choice" in options for options in sent)


def _cannot_force(model: BaseChatModel) -> bool:
    """Tell whether the client itself knows that its model takes no such choice: it warns, or raises."""
    thinking = getattr(model, "thinking", None)  # langchain-anthropic drops the choice
    if isinstance(thinking, Mapping) and thinking.get("type") in ("enabled", "adaptive"):
        return True
    supported = getattr(model, "supports_tool_choice_values", ("any",))  # langchain-aws raises
    return "any" not in (supported or ())


@lru_cache(64)
def class_names(kind: type) -> list[str]:
    """Return the names of a class and its parents, each with its package."""
    return [f"{parent.__module__.partition('.')[0]}.{parent.__name__}" for parent in kind.__mro__]
