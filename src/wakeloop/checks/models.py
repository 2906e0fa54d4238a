"""Checks of models and their names."""

import os
from ipaddress import ip_address
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable

from wakeloop.errors import ModelSetupError
from wakeloop.platform.model_profile import PROVIDERS
from wakeloop.text.wording import describe_type

SELF_HOSTED = ("llama", "qwen", "gemma", "phi3", "phi4", "gpt-oss")  # open models, which many servers offer
BEDROCK_PREFIXES = ("anthropic.", "amazon.", "meta.", "us.", "eu.", "apac.", "global.")
MODEL_PREFIXES = (  # how model names begin, and what LangChain calls their provider
    (("claude",), "anthropic"),
    (("gemini", "palm"), "google_genai"),
    (("mistral", "mixtral", "codestral", "magistral", "ministral", "devstral", "pixtral"), "mistralai"),
    (("command-",), "cohere"),
    (("grok",), "xai"),
    (("deepseek",), "deepseek"),
    (BEDROCK_PREFIXES, "bedrock_converse"),
    (SELF_HOSTED, "ollama"),
)
LOCAL_HOSTS = ("localhost", "0.0.0.0")  # noqa: S104 - compared, not bound to


def is_local_address(url: str) -> bool:
    """Return whether a URL is on this machine, where a server needs no key.

    >>> is_local_address("http://127.0.0.1:8000/v1"), is_local_address("https://api.openai.com/v1")
    (True, False)
    """
    try:
        host = urlsplit(url).hostname or ""
        return host in LOCAL_HOSTS or ip_address(host).is_loopback
    except (TypeError, ValueError):  # not an address at all
        return False


def check_model(model: object) -> None:
    """Refuse anything but a chat model or a model's name. Raises `ModelSetupError`."""
    if isinstance(model, str):
        check_model_name(model)
    elif not isinstance(model, BaseChatModel):
        hint = ""
        if isinstance(model, Runnable):  # what bind, with_config, with_retry and with_fallbacks return
            hint = (
                " Pass options such as stop and max_retries to the model itself, and tools as tools=[…]. "
                "For fallbacks, write a chat model whose _generate tries the next model."
            )
        raise ModelSetupError(
            "`model` must be a name such as 'openai:NAME' or a chat model of LangChain, "
            f"got {describe_type(model)}.{hint}"
        )


def check_model_name(name: str, *, has_server: bool = False) -> None:
    """Refuse a name without a provider that is clearly not OpenAI's.

    Raises `ModelSetupError` with the right name.

    With OPENAI_BASE_URL set, or another server's address (`has_server`), the name belongs to that server and
    may be anything without a colon.
    """
    low = name.lower()
    provider, colon, rest = name.partition(":")
    # "llama3:8b" and "anthropic.claude-v1:0" have a colon, but no provider in front of it.
    names_provider = colon and "/" not in provider and not low.startswith((*BEDROCK_PREFIXES, *SELF_HOSTED))
    if names_provider:
        if provider != provider.lower():
            right = f"{provider.lower()}:{rest}"
            raise ModelSetupError(f"Providers are written in lower case. Write {right!r}.")
        return
    if has_server or os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE"):
        if colon:
            right = f"openai:{name}"
            raise ModelSetupError(f"The model name {name!r} has no provider. Write {right!r}.")
        return
    head, slash, bare = name.partition("/")
    if slash:  # as LiteLLM and others write it
        meant: str | None = f"{head if head in PROVIDERS else 'PROVIDER'}:{bare}"
    else:
        found = (f"{is_from}:{name}" for begins, is_from in MODEL_PREFIXES if low.startswith(begins))
        meant = next(found, None)
    if meant is not None:
        raise ModelSetupError(
            f"The model name {name!r} has no provider and is not OpenAI's. Write {meant!r}; "
            "for a server of your own set OPENAI_BASE_URL."
        )
