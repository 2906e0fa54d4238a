"""Settings that were measured to suit a model."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from wakeloop.errors import SettingsError

MODEL_NAME_FIELDS = ("model_name", "model", "model_id")  # of clients and replies
PROFILE_FILE = "wakeloop-profile.json"
SERVER_VARIABLES = ("OPENAI_API_BASE", "OPENAI_BASE_URL")  # in langchain-openai's order
PROVIDERS = frozenset(  # prefixes of init_chat_model, except OpenAI's
    (
        *("anthropic", "anthropic_bedrock", "azure_ai", "azure_openai", "baseten", "bedrock"),
        *("bedrock_converse", "bedrock_mantle_anthropic", "bedrock_mantle_openai", "cohere", "deepseek"),
        *("fireworks", "google_anthropic_vertex", "google_genai", "google_vertexai", "groq", "huggingface"),
        *("ibm", "langsmith", "litellm", "meta", "mistralai", "nvidia", "ollama", "openrouter"),
        *("perplexity", "together", "upstage", "xai"),
    )
)
ANY_LENGTH = "any"
"""A model's entry for jobs of unknown length."""


class ModelIdentity(NamedTuple):
    """A model to look up; provider and server are "" if unknown."""

    name: str
    provider: str
    server: str


def measured_settings(
    model: object, parts: int | None = None, file: str | Path | None = None
) -> dict[str, Any]:
    """Return the settings that a profile has for a model, `{}` for one that was not measured.

    Args:
        model: A chat model, or its name as `NAME`, `PROVIDER:NAME` or `NAME@URL`. An entry with a server is
            only for that server; one without is for every server that has no entry of its own.
        parts: How many parts the job has. The longest length up to it counts, else the shortest.
        file: The profile. Default: `$WAKELOOP_PROFILE`, else `wakeloop-profile.json` in the current folder.

    Raises:
        SettingsError: The profile is missing, or several of its entries match.
    """
    path = Path(file or os.environ.get("WAKELOOP_PROFILE") or PROFILE_FILE)
    entries = _find_entries(read_profile(path), model)
    known = {int(length): entry for length, entry in entries.items() if length != ANY_LENGTH}
    if parts is None or not known:
        entry = entries.get(ANY_LENGTH, {})
    else:
        fitting = [length for length in known if length <= parts]
        entry = known[max(fitting) if fitting else min(known)]
    return dict(entry.get("settings", {}))


def _find_entries(models: dict[str, dict[str, Any]], model: object) -> dict[str, Any]:
    """Return a model's entries by length.

    The exact name counts first, then a name with or without a provider if only one model has it.
    """
    asked = _identify_name(model) if isinstance(model, str) else _identify_client(model)
    split = {key: split_model_name(key) for key in models}
    for server in dict.fromkeys((asked.server, "")):
        keys = {name: key for key, (name, address) in split.items() if address == server}
        exact = [name for name in (f"{asked.provider}:{asked.name}", asked.name) if name in keys]
        found = exact[:1] or [name for name in keys if _is_same_model(name, asked.name)]
        if len(found) > 1:
            raise _ambiguous_error(asked.name, [keys[name] for name in found])
        if found:
            return models[keys[found[0]]]
    if isinstance(model, str) and not asked.provider and not asked.server:
        elsewhere = [key for key, (name, _) in split.items() if _is_same_model(name, asked.name)]
        if elsewhere:  # measured on servers of their own: one of them may be meant
            raise _ambiguous_error(asked.name, elsewhere)
    return {}


def _ambiguous_error(name: str, keys: list[str]) -> SettingsError:
    measured = " and ".join(map(repr, keys))
    return SettingsError(f"{name!r} was measured as {measured}: write the full name of the one you mean.")


def _is_same_model(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return one == other or longer.endswith((f":{shorter}", f"/{shorter}"))


def read_profile(path: Path) -> dict[str, dict[str, Any]]:
    """Read the models of a profile. Raises `SettingsError`."""
    try:
        profile = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"The profile {str(path)!r} cannot be read: {error.strerror}. Write one from a run with "
            "`wakeloop bench profile`, and set WAKELOOP_PROFILE if it is elsewhere."
        ) from None
    except (ValueError, RecursionError):
        profile = None
    models = profile.get("models") if isinstance(profile, dict) else None
    if not isinstance(models, dict) or not all(map(_is_model_entry, models.values())):
        raise SettingsError(
            f"{str(path)!r} is not a profile: delete it, and write one with `wakeloop bench profile`."
        )
    return models


def _is_model_entry(lengths: object) -> bool:
    """Tell whether a model's part of a profile has settings by the number of parts, or for any."""
    if not isinstance(lengths, dict):
        return False
    for length, entry in lengths.items():
        if length != ANY_LENGTH and not length.isdecimal():
            return False
        if not isinstance(entry, dict) or not isinstance(entry.get("settings", {}), dict):
            return False
    return True


def split_model_name(text: str) -> tuple[str, str]:
    """Split a model's name from its address, which may be ""; a name may contain `@`.

    >>> split_model_name("qwen@http://localhost:8000/v1/")
    ('qwen', 'http://localhost:8000/v1')
    """
    name, at, rest = text.partition("@http")
    return name, f"http{rest}".rstrip("/") if at else ""


def profile_key(text: str) -> str:
    """Return a model's key in a profile: without OpenAI's prefix, which means the same as none."""
    name, server = split_model_name(text)
    name = name.removeprefix("openai:")
    return f"{name}@{server}" if server else name


def _identify_name(text: str) -> ModelIdentity:
    name, server = split_model_name(profile_key(text))
    provider, colon, _ = text.partition(":")
    if colon and provider in PROVIDERS:
        return ModelIdentity(name, provider, server)
    for variable in SERVER_VARIABLES:
        server = server or os.environ.get(variable, "").rstrip("/")
    return ModelIdentity(name, "", server)


def _identify_client(model: object) -> ModelIdentity:
    names = [getattr(model, field, None) for field in MODEL_NAME_FIELDS]
    name = next((one for one in names if isinstance(one, str) and one), type(model).__name__)
    client = getattr(model, "root_client", None)  # OpenAI's, which also knows the environment's address
    address = getattr(client, "base_url", None) or getattr(model, "base_url", None) or ""
    package = type(model).__module__.partition(".")[0]
    _, prefix, provider = package.rpartition("langchain_")
    return ModelIdentity(name, provider if prefix else "", str(address).rstrip("/"))
