"""What a request used, and what that costs."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from wakeloop.errors import SettingsError
from wakeloop.settings import LoopSettings, Price

DEFAULT_KEY = "default"
PER_TOKEN = 1_000  # a price is for a million tokens, a cost in billionths: 1e9 / 1e6


class Usage(NamedTuple):
    """The tokens of one request (`cached` is part of `input`), reported or `estimated`; the model's name."""

    input: int = 0
    cached: int = 0
    output: int = 0
    estimated: bool = False
    model: str = ""


def find_price(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Return the price under the longest key that begins a model's name, else the default one, else None.

    Without any `prices` it is the model's public price, if that is known here.
    """
    if not prices:
        return find_public_price(model)
    keys = [key for key in prices if key != DEFAULT_KEY and model.startswith(key)]
    return prices[max(keys, key=len)] if keys else prices.get(DEFAULT_KEY)


@lru_cache(maxsize=64)
def find_public_price(model: str) -> Price | None:
    """Return a model's public price in dollars, if `genai-prices` is installed and knows the model.

    Of prices with tiers the lowest is taken.
    """
    try:
        from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - of the extra `prices`

        _, found = get_snapshot().find_provider_model(model, None, None, None)
    except (ImportError, LookupError):
        return None
    listed = found.get_prices(datetime.now(UTC))
    rates = {}
    for name, field in (("input", "input_mtok"), ("cached", "cache_read_mtok"), ("output", "output_mtok")):
        rate = getattr(listed, field)
        rates[name] = None if rate is None else float(getattr(rate, "base", rate))
    if rates["input"] is None or rates["output"] is None:
        return None
    return Price(input=rates["input"], cached=rates["cached"], output=rates["output"])


def compute_cost(usage: Usage, prices: Mapping[str, Price], configured: str) -> int | None:
    """Return what a request cost, in billionths; None without a price.

    The name in the reply counts. If that has no price, the `configured` name does: the money is spent, and
    raising an error now would not help.
    """
    price = find_price(usage.model, prices) if usage.model else None
    price = price or find_price(configured, prices)
    if not price:
        return None
    cached = price.input if price.cached is None else price.cached
    fresh = usage.input - usage.cached
    return round((fresh * price.input + usage.cached * cached + usage.output * price.output) * PER_TOKEN)


def check_price(settings: LoopSettings, model: str) -> None:
    """Refuse a limit on a cost that cannot be computed. Raises `SettingsError`."""
    if settings.max_cost is not None and find_price(model, settings.prices) is None:
        named = f"model {model!r}" if model else "a model whose client does not give its name"
        raise SettingsError(
            f"max_cost needs a price, and prices has none for {named}. Add one under the start of the "
            f"model's name, or under {DEFAULT_KEY!r}."
        )
