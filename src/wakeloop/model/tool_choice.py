"""How a client is told to call no tool, by its class."""

from collections.abc import Iterator, Mapping
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
"""`tool_choice` by client class, for subclasses too. Elsewhere the word would force a tool called `none`
(langchain-aws does that), or is unknown: there the tools stay bound, and a call in the reply is dropped."""


def no_call_choice(model: BaseChatModel) -> Any:
    """Return the `tool_choice` that forbids calls, in this client's own form; None where it has none."""
    return next((NO_CALL_CHOICES[name] for name in _class_names(model) if name in NO_CALL_CHOICES), None)


def loses_plain_bodies(model: BaseChatModel) -> bool:
    """Tell whether a client takes `stream=False` for one request, and loses a body that is no stream."""
    return is_openai(model) or "langchain_anthropic.ChatAnthropic" in _class_names(model)


def is_openai(model: BaseChatModel) -> bool:
    """Tell whether a client is langchain-openai's, or made from it."""
    return "langchain_openai.BaseChatOpenAI" in _class_names(model)


def _class_names(model: BaseChatModel) -> Iterator[str]:
    return (f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(model).__mro__)
