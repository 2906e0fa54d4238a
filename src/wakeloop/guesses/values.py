"""Values of an agent's arguments, as they are guessed."""

import os
from collections.abc import Mapping
from inspect import isawaitable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver

from wakeloop.errors import ArgumentError, ModelError, SettingsError, ToolError
from wakeloop.platform.measured import bare
from wakeloop.presets import preset
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import shorten

SERVED = ("llama", "qwen", "gemma", "phi3", "phi4")  # of no provider: someone's server has them
ELSEWHERE = (  # how names of other providers' models begin, and how LangChain calls the provider
    (("claude", "anthropic/"), "anthropic"),
    (("gemini", "google/", "models/gemini", "palm"), "google_genai"),
    (("mistral", "mixtral", "codestral", "magistral", "ministral", "devstral", "pixtral"), "mistralai"),
    (("command-", "cohere/"), "cohere"),
    (("grok", "xai/", "x-ai/"), "xai"),
    (("deepseek",), "deepseek"),
    (("anthropic.", "amazon.", "meta.", "us.", "eu."), "bedrock_converse"),
    (("openai/",), "openai"),
    (("azure/",), "azure_openai"),
    (SERVED, "ollama"),
)


def settings_of(given: object, model: object = None) -> LoopSettings:
    """Return the settings that are meant: a preset's name, `LoopSettings`, or a mapping of some of them.

    "auto" is what was measured to suit the model. A mapping varies the preset that it names under `preset`,
    else `wakeloop`. Raises `SettingsError`.
    """
    if isinstance(given, LoopSettings):
        return given
    if given is None:
        return preset("wakeloop")
    if given == "auto":
        return LoopSettings.for_model(bare(model))
    if isinstance(given, str):
        return preset(given)
    if isinstance(given, Mapping):
        named = given.get("preset", "wakeloop")
        if not isinstance(named, str):
            raise SettingsError(f"A preset is named by a text, such as 'loki', not {shorten(repr(named))}.")
        varied = {key: value for key, value in given.items() if key != "preset"}
        return preset(named).model_copy(update=varied)
    raise SettingsError(
        f"settings takes a preset's name, LoopSettings(…) or a mapping of settings, not {_kind(given)}."
    )


def check_model(model: object) -> None:
    """Refuse what is no chat model, and a bare name that is plainly another provider's; say the way out."""
    if isinstance(model, BaseChatModel):
        return
    if isinstance(model, str):
        check_name(model)
    elif isinstance(model, type):
        raise ModelError(f"The model is the class {model.__name__} itself; make one: {model.__name__}(…).")
    elif hasattr(model, "fallbacks"):
        raise ModelError(
            "The model is one with fallbacks, and a todo list needs a chat model: write one whose _generate "
            "asks the next where one fails, as the documentation shows under Coming from LangChain."
        )
    elif isinstance(model, Runnable) and isinstance(getattr(model, "bound", None), BaseChatModel):
        kind = type(model.bound).__name__  # type: ignore[attr-defined]
        raise ModelError(
            f"The model is wrapped by bind or with_config: give its options to the model itself, as in "
            f"{kind}(…, stop=[…]), and tools as tools=[…]; what a run needs goes into the run's config."
        )
    else:
        raise ModelError(f"The model must be a name or a chat model, not {_kind(model)}.")


def check_name(name: str) -> None:
    """Refuse a bare name that is plainly another provider's; a server of one's own may have any name.

    Raises `ModelError` with the name as it has to be written.
    """
    if ":" in name and not name.startswith(("anthropic.", "amazon.", "meta.", "us.", "eu.", *SERVED)):
        return
    if os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE"):
        return
    low = name.lower()
    for begins, provider in ELSEWHERE:
        if low.startswith(begins):
            bare = name.split("/", 1)[1] if "/" in name else name
            raise ModelError(
                f"The name {name!r} has no provider before it, and is not one of OpenAI's: write "
                f"{f'{provider}:{bare}'!r}; for a server of your own set OPENAI_BASE_URL."
            )


def system_of(given: object) -> SystemMessage | None:
    """Return the system prompt as a message. Raises `ArgumentError` for what is none."""
    if given is None or isinstance(given, SystemMessage):
        return given
    if isinstance(given, str):
        return SystemMessage(given)
    raise ArgumentError(
        f"system_prompt takes a text or a SystemMessage, not {_kind(given)}; it is static for the life of "
        "the agent, and pre_model_hook changes what is sent."
    )


def tools_of(given: Any) -> list[Any]:
    """Return the tools as a list: one alone is one, none is none. Raises `ToolError`."""
    if given is None:
        return []
    if isinstance(given, str):
        raise ToolError(
            f"tools takes a list of tools, and a text stands there: {shorten(given)!r}. The text for the "
            "system message is system_prompt=…."
        )
    if isawaitable(given):
        getattr(given, "close", lambda: None)()
        raise ToolError("tools is a coroutine, such as an MCP client's get_tools(): await it first.")
    if callable(getattr(given, "get_tools", None)):
        raise ToolError(f"tools is {_kind(given)}: pass what its get_tools() returns.")
    if isinstance(given, BaseTool | Mapping) or callable(given):
        return [given]
    try:
        return list(given)
    except TypeError:
        raise ToolError(f"tools takes a list of tools, not {_kind(given)}.") from None


def check_format(response_format: Any) -> None:
    """Refuse LangChain's strategies around a schema. Raises `ArgumentError`."""
    name = type(response_format).__name__
    schema = getattr(response_format, "schema", None)
    if name in ("ToolStrategy", "ProviderStrategy", "AutoStrategy") and not isinstance(response_format, type):
        told = getattr(schema, "__name__", "the schema")
        raise ArgumentError(f"response_format takes the schema itself: pass {told}, without {name}.")


def check_callable(name: str, given: object) -> None:
    """Refuse a hook or a verifier that cannot be called. Raises `ArgumentError`."""
    if given is None or callable(given) or isinstance(given, Runnable):
        return
    raise ArgumentError(f"{name} takes a function, not {_kind(given)}.")


def check_saver(checkpointer: object) -> None:
    """Refuse what is no saver, with the way to one. Raises `ArgumentError`."""
    if checkpointer is None or isinstance(checkpointer, bool | BaseCheckpointSaver):
        return
    if isinstance(checkpointer, type):
        way = f"make one, {checkpointer.__name__}(…)"
    elif hasattr(checkpointer, "__enter__") or hasattr(checkpointer, "__aenter__"):
        way = "open it first, as in: with SqliteSaver.from_conn_string('threads.db') as saver"
    else:
        way = "such as InMemorySaver(), or SqliteSaver and PostgresSaver for threads that are kept"
    raise ArgumentError(f"checkpointer takes a saver, not {_kind(checkpointer)}: {way}.")


def _kind(given: object) -> str:
    if given is None:
        return "None"
    if isinstance(given, type):
        return f"the class {given.__name__}"
    name = type(given).__name__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"
