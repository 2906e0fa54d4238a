"""What was measured of a model: whether its list pays."""

import json
import os
from pathlib import Path
from typing import Any

from wakeloop.errors import SettingsError

NAMES = ("model_name", "model", "model_id")  # where clients and replies have a model's name
FILE = "wakeloop-profile.json"
ANY = "any"
"""The entry of a model for jobs of unknown length."""


def measured(name: str, parts: int | None = None, file: str | Path | None = None) -> dict[str, Any]:
    """Return the settings that a profile has for a model, none for one that was not measured.

    `parts` chooses among the lengths that were measured the longest that is not longer, else the shortest.
    The file is the one given, else `$WAKELOOP_PROFILE`, else `wakeloop-profile.json` in the current folder.
    Raises `SettingsError` where there is none.
    """
    path = Path(file or os.environ.get("WAKELOOP_PROFILE") or FILE)
    lengths = _of(models_in(path), bare(name))
    known = {int(length): entry for length, entry in lengths.items() if length != ANY}
    if parts is None or not known:
        entry = lengths.get(ANY, {})
    else:
        entry = known[max((length for length in known if length <= parts), default=min(known))]
    return dict(entry.get("settings", {}))


def _of(models: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """Return what is known of a name; with a provider or without it is the same, if only one model has it."""
    if name in models:
        return models[name]
    found = [entry for other, entry in models.items() if _tail(other, name) or _tail(name, other)]
    return found[0] if len(found) == 1 else {}


def _tail(whole: str, name: str) -> bool:
    return whole.endswith((f":{name}", f"/{name}"))


def models_in(path: Path) -> dict[str, dict[str, Any]]:
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
    if not isinstance(models, dict) or not all(map(_is_measured, models.values())):
        raise SettingsError(
            f"{str(path)!r} is no profile: take it away, and write one with `wakeloop bench profile`."
        )
    return models


def _is_measured(lengths: object) -> bool:
    """Tell whether a model's part of a profile is one: settings by the number of parts, or for any."""
    return isinstance(lengths, dict) and all(
        (length == ANY or length.isdecimal())
        and isinstance(entry, dict)
        and isinstance(entry.get("settings", {}), dict)
        for length, entry in lengths.items()
    )


def bare(model: object) -> str:
    """Return the name that a model goes by, without OpenAI's prefix; of a chat model the one it asks for."""
    if isinstance(model, str):
        return model.removeprefix("openai:")
    named = (getattr(model, field, None) for field in NAMES)
    return next((name for name in named if isinstance(name, str) and name), type(model).__name__)
