"""How to tell each client to make no call."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from langchain_core.language_models import BaseChatModel

NO_CALL_CHOICES: Mapping[str, Any] = MappingProxyType(
    {
        "langchain_openai.BaseChatOpenAI": "none",
        "langchain_anthropic.ChatAnthropic": {"type": "none"},
        "langchain_google_genai.ChatGoogleGenerativeAI": "none",
        "langchain_groq.ChatGroq": "none",
        "langchain_mistralai.ChatMistralAI": "none",
    }
)
"""`tool_choice` by client class, also for subclasses. With other clients it is left out and a call in the
reply is dropped: langchain-aws, for one, would force a tool of the name `none`."""


def no_call_choice(model: BaseChatModel) -> Any:
    """Return the `tool_choice` that forbids calls in this client's form, or None if it has none."""
    for name in _class_names(model):
        if name in NO_CALL_CHOICES:
            return NO_CALL_CHOICES[name]
    return None


def loses_plain_bodies(model: BaseChatModel) -> bool:
    """Tell whether a client loses replies that are not streams, and accepts `stream=False`."""
    return is_openai(model) or "langchain_anthropic.ChatAnthropic" in _class_names(model)


def is_openai(model: BaseChatModel) -> bool:
    """Tell whether a client is langchain-openai's, or a subclass of it."""
    return "langchain_openai.BaseChatOpenAI" in _class_names(model)


def _class_names(model: BaseChatModel) -> list[str]:
    return [f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(model).__mro__]
