"""Creates chat models from names, and binds tools and formats."""

import os
from types import MappingProxyType
from typing import Any

from langchain_core.language_models import BaseChatModel

from wakeloop.checks.models import is_local_address
from wakeloop.errors import ModelSetupError
from wakeloop.platform.model_profile import PROVIDERS
from wakeloop.platform.openai_replies import send_reasoning_back
from wakeloop.text.addresses import is_http_url
from wakeloop.text.secrets import redact_text
from wakeloop.text.wording import nearest

TYPO = 0.85  # how alike two names of providers are; `deepseek-r1:8b` is a model of a server
PACKAGES = MappingProxyType(
    {  # of providers whose package is not named after them, without `langchain-`
        "azure_openai": "openai",
        "bedrock_converse": "aws",
        "nvidia": "nvidia-ai-endpoints",
    }
)


def create_model(name: str, **options: Any) -> BaseChatModel:
    """Create a chat model from `"openai:NAME"`, a bare `NAME` (the same), or `"PROVIDER:NAME"`.

    The options, such as `temperature`, are passed to it.
    OpenAI's models come from langchain-openai and read `OPENAI_API_KEY` and `OPENAI_BASE_URL`; those of other
    providers come from `langchain.chat_models.init_chat_model`. Raises `ModelSetupError`, which says what to
    install or set.
    """
    provider, colon, rest = name.partition(":")
    if not colon or provider == "openai":
        return create_openai_model(rest if colon else name, **options)
    package = PACKAGES.get(provider, provider).replace("_", "-")
    why = f"it needs langchain and its provider's package: pip install langchain langchain-{package}"
    if provider not in PROVIDERS:  # nothing to install is suggested: a made-up name may belong to anybody
        near = nearest(provider, ("openai", *PROVIDERS), TYPO)
        meant = f" Did you mean {f'{near}:{rest}'!r}?" if near else ""
        own = f"For a model of your own server write {f'openai:{name}'!r}"
        why = f"the provider {provider!r} is unknown.{meant} {own}"
    try:
        from langchain.chat_models import init_chat_model  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ModelSetupError(f"The model {name!r} cannot be created: {why}.") from None
    try:
        return init_chat_model(name, **options)  # type: ignore[no-any-return,unused-ignore]
    except Exception as error:  # noqa: BLE001 - its text may contain a key, so it is not chained
        if not str(error).startswith("Unable to infer model provider"):
            why = _describe_error(error)
        raise ModelSetupError(f"The model {name!r} cannot be created: {why}.") from None


def create_openai_model(name: str, **options: Any) -> BaseChatModel:
    """Create a model of langchain-openai that reports usage in streams, and sends back the model's thoughts.

    The client demands a key, which a server on this machine does not need. Raises `ModelSetupError` if the
    package or the key is missing.
    """
    if not name:
        raise ModelSetupError("The model name is empty: write it as 'openai:NAME'.")
    try:
        from langchain_openai import ChatOpenAI
    except ImportError:
        raise ModelSetupError(
            f"The model {name!r} needs langchain-openai: pip install 'wakeloop[openai]'."
        ) from None
    address = options.get("base_url") or os.environ.get("OPENAI_BASE_URL", "")
    if address and not is_http_url(address):
        which = "base_url" if options.get("base_url") else "OPENAI_BASE_URL"
        raise ModelSetupError(f"{which} must be an address such as http://HOST:PORT/v1.")
    if os.environ.get("OPENAI_BASE_URL") == "":  # set to nothing: the client would take it for an address
        options.setdefault("base_url", "https://api.openai.com/v1")
    if "api_key" not in options:
        options |= _read_key(address)
    try:
        chat = ChatOpenAI(model=name, stream_usage=True, **options)
    except Exception as error:  # noqa: BLE001 - pydantic's text contains the values it was given
        if "api_key" in str(error).lower():
            raise ModelSetupError(
                "The model has no API key: set OPENAI_API_KEY "
                "(any value works for your own server at OPENAI_BASE_URL)."
            ) from None
        raise ModelSetupError(f"The model {name!r} cannot be created: {_describe_error(error)}.") from None
    send_reasoning_back(chat)
    return chat


def _read_key(address: str) -> dict[str, str]:
    """Return what the client is given as its key: `{}` if it shall read `OPENAI_API_KEY` itself."""
    given = os.environ.get("OPENAI_API_KEY", "")
    if not given:
        return {"api_key": "none"} if is_local_address(address) else {}
    key = given.strip()  # a file with Windows line ends adds one to the key, and no header takes it
    if not (key and key.isascii() and key.isprintable()):
        raise ModelSetupError(
            "OPENAI_API_KEY has a character that no key has, such as a line break or an accent. Set it again."
        )
    return {} if key == given else {"api_key": key}


def _describe_error(error: BaseException) -> str:
    text = redact_text(str(error), [os.environ.get("OPENAI_API_KEY") or "\0"])
    return " ".join(text.split()).rstrip(".")
