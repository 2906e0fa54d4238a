"""What was measured of a model: whether its list pays."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from wakeloop.errors import SettingsError

MODEL_NAME_FIELDS = ("model_name", "model", "model_id")  # where clients and replies have a model's name
PROFILE_FILE = "wakeloop-profile.json"
SERVER_VARIABLES = ("OPENAI_API_BASE", "OPENAI_BASE_URL")  # in the order that langchain-openai has
PROVIDERS = frozenset(  # what LangChain's init_chat_model takes before a colon, but OpenAI
    (
        *("anthropic", "anthropic_bedrock", "azure_ai", "azure_openai", "baseten", "bedrock"),
        *("bedrock_converse", "bedrock_mantle_anthropic", "bedrock_mantle_openai", "cohere", "deepseek"),
        *("fireworks", "google_anthropic_vertex", "google_genai", "google_vertexai", "groq", "huggingface"),
        *("ibm", "langsmith", "litellm", "meta", "mistralai", "nvidia", "ollama", "openrouter"),
        *("perplexity", "together", "upstage", "xai"),
    )
)
ANY_LENGTH = "any"
"""The entry of a model for jobs of unknown length."""


class ModelIdentity(NamedTuple):
    """A model as it is looked up: its provider and its server are "" where nobody says."""

    name: str
    provider: str
    server: str


def measured_settings(
    model: object, parts: int | None = None, file: str | Path | None = None
) -> dict[str, Any]:
    """Return the settings that a profile has for a model, none for one that was not measured.

    The model is a chat model, or as it is written: `NAME`, `PROVIDER:NAME`, `NAME@URL`. An entry with a
    server is for that server alone, one without for every server that has none of its own. `parts` chooses
    among the lengths that were measured the longest that is not longer, else the shortest.
    The file is the one given, else `$WAKELOOP_PROFILE`, else `wakeloop-profile.json` in the current folder.
    Raises `SettingsError` where there is none, and where several entries may be meant.
    """
    path = Path(file or os.environ.get("WAKELOOP_PROFILE") or PROFILE_FILE)
    lengths = _find_entry(read_profile(path), model)
    known = {int(length): entry for length, entry in lengths.items() if length != ANY_LENGTH}
    if parts is None or not known:
        entry = lengths.get(ANY_LENGTH, {})
    else:
        entry = known[max((length for length in known if length <= parts), default=min(known))]
    return dict(entry.get("settings", {}))


def _find_entry(models: dict[str, dict[str, Any]], model: object) -> dict[str, Any]:
    """Return what is known of a model: with a provider and without one, if only one has the name."""
    asked = identify_model(model)
    for server in dict.fromkeys((asked.server, "")):
        here = {name: key for key in models for name, at in [split_model_name(key)] if at == server}
        exact = [name for name in (f"{asked.provider}:{asked.name}", asked.name) if name in here]
        found = exact[:1] or [other for other in here if _is_same_model(other, asked.name)]
        if len(found) > 1:
            raise _ambiguous_error(asked.name, [here[name] for name in found])
        if found:
            return models[here[found[0]]]
    elsewhere = [key for key in models if _is_same_model(split_model_name(key)[0], asked.name)]
    if isinstance(model, str) and not asked.provider and not asked.server and elsewhere:
        raise _ambiguous_error(asked.name, elsewhere)
    return {}


def _ambiguous_error(name: str, keys: list[str]) -> SettingsError:
    told = " and ".join(map(repr, keys))
    return SettingsError(f"{name!r} was measured as {told}: write the one that is meant.")


def _is_same_model(one: str, other: str) -> bool:
    return one == other or _ends_with_name(one, other) or _ends_with_name(other, one)


def _ends_with_name(whole: str, name: str) -> bool:
    return whole.endswith((f":{name}", f"/{name}"))


def read_profile(path: Path) -> dict[str, dict[str, Any]]:
    """Read a profile's models. Raises `SettingsError`."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"The profile {str(path)!r} cannot be read: {error.strerror}. `wakeloop bench profile` writes "
            "one from a run; WAKELOOP_PROFILE says where it is."
        ) from None
    except (ValueError, RecursionError):
        read = None
    models = read.get("models") if isinstance(read, dict) else None
    if not isinstance(models, dict) or not all(map(_is_model_entry, models.values())):
        raise SettingsError(
            f"{str(path)!r} is no profile: take it away, and write one with `wakeloop bench profile`."
        )
    return models


def _is_model_entry(lengths: object) -> bool:
    """Tell whether a model's part of a profile is one: settings by the number of parts, or for any."""
    return isinstance(lengths, dict) and all(
        (length == ANY_LENGTH or length.isdecimal())
        and isinstance(entry, dict)
        and isinstance(entry.get("settings", {}), dict)
        for length, entry in lengths.items()
    )


def split_model_name(text: str) -> tuple[str, str]:
    """Take a model's name and its address apart, "" where it has none; a name may hold an @ of its own."""
    name, at, rest = text.partition("@http")
    return name, f"http{rest}".rstrip("/") if at else ""


def profile_key(text: str) -> str:
    """Return what a profile calls a model: without OpenAI's prefix, which is the same as none."""
    name, server = split_model_name(text)
    return f"{name.removeprefix('openai:')}{'@' if server else ''}{server}"


def identify_model(model: object) -> ModelIdentity:
    """Return by what a model is looked up: a chat model's own words, or as it is written."""
    if isinstance(model, str):
        name, server = split_model_name(profile_key(model))
        head, colon, _ = model.partition(":")
        if colon and head in PROVIDERS:
            return ModelIdentity(name, head, server)
        served = next(filter(None, map(os.environ.get, SERVER_VARIABLES)), "")
        return ModelIdentity(name, "", server or served.rstrip("/"))
    named = (getattr(model, field, None) for field in MODEL_NAME_FIELDS)
    name = next((name for name in named if isinstance(name, str) and name), type(model).__name__)
    client = getattr(model, "root_client", None)  # OpenAI's, which knows the environment's address, too
    address = getattr(client, "base_url", None) or getattr(model, "base_url", None) or ""
    package = type(model).__module__.partition(".")[0]
    provider = package.removeprefix("langchain_") if package.startswith("langchain_") else ""
    return ModelIdentity(name, provider, str(address).rstrip("/"))
