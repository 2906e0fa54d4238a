"""A table of prices as it is guessed, and the right way."""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from wakeloop.checks.providers import MODEL_PREFIXES
from wakeloop.errors import SettingsError
from wakeloop.settings import MAX_NUMBER, Price
from wakeloop.text.characters import shorten

SHAPE = "prices: {default: {input: 1.25, cached: 0.13, output: 10}}, per million tokens"
AS_JSON = '{"default": {"input": 1.25, "cached": 0.13, "output": 10}}, per million tokens'
PROVIDERS = ("openai", *(provider for _, provider in MODEL_PREFIXES))
MEANT: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("in", "prompt", "prompt_tokens", "input_tokens", "read"), "input"),
        **dict.fromkeys(("cache", "cached_input", "cache_read", "input_cached", "cached_tokens"), "cached"),
        **dict.fromkeys(("out", "completion", "completion_tokens", "output_tokens", "written"), "output"),
    }
)


def check_prices(given: object) -> None:
    """Refuse a table of prices with the right spelling. Raises `SettingsError`: one sentence."""
    if isinstance(given, str):  # such as from an option, which is read as JSON
        raise SettingsError(f"The prices cannot be {_told(given)}: write them as JSON, {AS_JSON}.")
    if not isinstance(given, Mapping):
        raise SettingsError(f"The prices cannot be {_told(given)}: write {SHAPE}.")
    for name, price in given.items():
        provider, colon, bare = str(name).partition(":")
        if colon and provider in PROVIDERS:
            raise SettingsError(f"The price of {name!r} would never be found: write {bare!r}.")
        if not isinstance(price, Mapping):
            raise SettingsError(f"The price of {str(name)!r} cannot be {_told(price)}: write {SHAPE}.")
        _check_price(str(name), price)


def _check_price(name: str, price: Mapping[Any, Any]) -> None:
    parts = tuple(Price.model_fields)
    for part, value in price.items():
        if part not in parts:
            near = MEANT.get(str(part)) or next(iter(get_close_matches(str(part), parts, n=1)), None)
            hint = f"did you mean {near!r}?" if near else f"it has {', '.join(parts)}."
            raise SettingsError(f"The price of {name!r} has no {part!r}; {hint}")
        if not (_is_price(value) or (value is None and part == "cached")):
            told = f"The price of {name!r} cannot have {_told(value)} as its {part}"
            raise SettingsError(f"{told}: a number is due, per million tokens.")
    needed = [part for part, field in Price.model_fields.items() if field.is_required()]
    if missing := [part for part in needed if part not in price]:
        raise SettingsError(f"The price of {name!r} needs its {' and its '.join(missing)}: write {SHAPE}.")


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_NUMBER


def _told(value: object) -> str:
    return shorten(repr(value))
