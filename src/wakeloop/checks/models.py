"""Models and their names, as they are guessed."""

import os
from ipaddress import ip_address
from types import MappingProxyType
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.runnables.retry import RunnableRetry

from wakeloop.checks.providers import BEDROCK_PREFIXES, MODEL_PREFIXES, SELF_HOSTED
from wakeloop.errors import ModelError
from wakeloop.text.wording import describe_type

SLASH_PREFIXES = MappingProxyType(  # the same before a slash, as other libraries write it
    {
        **{name: name for name in ("anthropic", "openai", "cohere", "deepseek", "groq", "ollama", "xai")},
        **{name: name for name in ("openrouter", "perplexity", "huggingface", "nvidia")},
        **dict.fromkeys(("google", "gemini", "models"), "google_genai"),
        **dict.fromkeys(("mistral", "mistralai"), "mistralai"),
        "bedrock": "bedrock_converse",
        "vertex_ai": "google_vertexai",
        "together_ai": "together",
        "fireworks_ai": "fireworks",
        "azure": "azure_openai",
        "x-ai": "xai",
    }
)

LOCAL_HOSTS = ("localhost", "0.0.0.0")  # noqa: S104 - read, not bound to


def is_local_address(url: str) -> bool:
    """Tell whether an address is of this machine: such a server wants no key."""
    try:
        host = urlsplit(url).hostname or ""
        return host in LOCAL_HOSTS or ip_address(host).is_loopback
    except (TypeError, ValueError):  # no address, or none at all
        return False


def check_model(model: object) -> None:
    """Refuse what is no chat model, and a bare name that is plainly another provider's; say the way out."""
    if isinstance(model, BaseChatModel):
        return
    if isinstance(model, str):
        check_model_name(model)
    elif isinstance(model, type):
        raise ModelError(f"The model is the class {model.__name__} itself; make one: {model.__name__}(…).")
    elif hasattr(model, "fallbacks"):
        raise ModelError(
            "The model is one with fallbacks, and a todo list needs a chat model: write one whose _generate "
            "asks the next where one fails, as the documentation shows under Coming from LangChain."
        )
    elif isinstance(model, RunnableRetry):
        raise ModelError(
            "The model is one with_retry, and a todo list needs a chat model: its client tries again "
            "by itself, as in max_retries=N."
        )
    elif isinstance(model, Runnable) and isinstance(getattr(model, "bound", None), BaseChatModel):
        kind = type(model.bound).__name__  # type: ignore[attr-defined]
        raise ModelError(
            f"The model is wrapped by bind or with_config: give its options to the model itself, as in "
            f"{kind}(…, stop=[…]), and tools as tools=[…]; what a run needs goes into the run's config."
        )
    else:
        raise ModelError(f"The model must be a name or a chat model, not {describe_type(model)}.")


def check_model_name(name: str) -> None:
    """Refuse a bare name that is plainly another provider's; a server of one's own may have any name.

    Raises `ModelError` with the name as it has to be written.
    """
    low, (provider, colon, rest) = name.lower(), name.partition(":")
    served = bool(os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE"))
    if colon and "/" not in provider and not low.startswith((*BEDROCK_PREFIXES, *SELF_HOSTED)):
        if provider != provider.lower():
            raise ModelError(
                f"A provider is written in small letters: write {f'{provider.lower()}:{rest}'!r}."
            )
        return
    if served:
        if colon:
            raise ModelError(f"The name {name!r} has no provider before it: write {f'openai:{name}'!r}.")
        return
    head, slash, bare = name.partition("/")
    right = next((told for begins, told in MODEL_PREFIXES if low.startswith(begins)), None)
    if slash:
        right = SLASH_PREFIXES.get(head.lower(), "PROVIDER")
    if right is not None:
        raise ModelError(
            f"The name {name!r} has no provider before it, and is not one of OpenAI's: write "
            f"{f'{right}:{bare if slash else name}'!r}; for a server of your own set OPENAI_BASE_URL."
        )
