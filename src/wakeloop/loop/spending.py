"""What requests use and cost, and which budget is spent."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from langchain_core.messages import AnyMessage

from wakeloop.errors import SettingsError
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.progress import find_last_round
from wakeloop.settings import MAX_NUMBER, LoopSettings, Price
from wakeloop.stream import ActivationSpending, Budget, RequestSpending, SpentEvent
from wakeloop.text.marks import call_duration_ms
from wakeloop.todos.items import Todo, count_open

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

    A key may name the provider, too: `openai:gpt-5` is found by `gpt-5`.
    Without any `prices` it is the model's public price, if that is known here.
    """
    if not prices:
        return find_public_price(model)
    found: dict[int, Price] = {}
    for key in prices:
        for name in (key, key.partition(":")[2]):
            if name and key != DEFAULT_KEY and model.startswith(name):
                found.setdefault(len(name), prices[key])
    return found[max(found)] if found else prices.get(DEFAULT_KEY)


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


BILLION = 1_000_000_000


class Totals(NamedTuple):
    """The totals of an activation as they are noted: whole numbers, which add up exactly and stay short.

    `cost` is in billionths, and None once a reply had no price. `estimated` is noted only where it is 1.
    """

    requests: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    milliseconds: int = 0
    failed: int = 0
    cost: int | None = None
    estimated: int = 0


def read_totals(notes: Ledger) -> Totals:
    """Read the totals; all are 0 before an activation's first request."""
    return Totals(*notes.get("spent", ()))


def write_totals(notes: Ledger, spent: Totals) -> None:
    """Note the totals, each within what a checkpoint can hold."""
    numbers = [None if value is None else min(value, MAX_NUMBER - 1) for value in spent]
    notes["spent"] = numbers if spent.estimated else numbers[:-1]


def add_request(
    notes: Ledger, used: Sequence[Usage], seconds: float, settings: LoopSettings, configured: str
) -> RequestSpending:
    """Count a request, whatever became of its reply, and return what it took.

    `used` holds its own usage and that of other models that were asked along the way; `configured` is the
    model's name as its client has it. Where the cost is limited, earlier requests without a price count
    at the model's current price, an estimate: otherwise the unknown sum would never reach the limit.
    """
    before, prices = read_totals(notes), settings.prices
    own_input = own_cached = own_output = estimated = 0
    own_cost: int | None = 0
    for one in used:
        price = compute_cost(one, prices, configured)
        own_cost = None if price is None or own_cost is None else own_cost + price
        own_input, own_cached = own_input + one.input, own_cached + one.cached
        own_output, estimated = own_output + one.output, estimated or int(one.estimated)
    cost, guessed = before.cost if before.requests else 0, False
    if cost is None and settings.max_cost is not None:
        cost = compute_cost(Usage(before.input, before.cached, before.output), prices, configured)
        guessed = cost is not None
    took = round(seconds * 1000)
    after = Totals(
        before.requests + 1,
        before.input + own_input,
        before.cached + own_cached,
        before.output + own_output,
        before.milliseconds + took,
        before.failed,
        None if cost is None or own_cost is None else cost + own_cost,
        int(before.estimated or estimated or guessed),
    )
    write_totals(notes, after)
    return {
        "input": own_input,
        "cached": own_cached,
        "output": own_output,
        "cost": None if own_cost is None else own_cost / BILLION,
        "seconds": took / 1000,
        "estimated": bool(estimated),
    }


def add_round(notes: Ledger, messages: Sequence[AnyMessage]) -> None:
    """Count a round that has run: the time of its longest call, and the calls that ended in an error.

    The calls of a round run at the same time, so only the longest one counts.
    """
    if "nag" not in notes:
        return
    todo = set(notes.get("todo_calls", ()))
    longest = failed = 0
    for call, result in find_last_round(reversed(messages)):
        if call["id"] not in todo:
            longest = max(longest, call_duration_ms(result))
            failed += result.status == "error"
    if longest or failed:
        spent = read_totals(notes)
        more = {"milliseconds": spent.milliseconds + longest, "failed": spent.failed + failed}
        write_totals(notes, spent._replace(**more))


def find_spent_budget(notes: Ledger, settings: LoopSettings) -> Budget | None:
    """Return the first budget that is reached; None if none is."""
    for reason, _, spent, most in _list_budgets(report_spent(notes), settings):
        if spent >= most:
            return reason
    return None


def report_spent(notes: Ledger) -> ActivationSpending:
    """Return what is spent, in the form of a session and an event."""
    spent = read_totals(notes)
    return {
        "requests": spent.requests,
        "input": spent.input,
        "cached": spent.cached,
        "output": spent.output,
        "cost": None if spent.cost is None else spent.cost / BILLION,
        "seconds": spent.milliseconds / 1000,
        "estimated": bool(spent.estimated),
        "failed_calls": spent.failed,
    }


def build_spent_event(notes: Ledger, settings: LoopSettings, paid: RequestSpending) -> SpentEvent:
    """Return the event after a request: what it took, what is spent, and the budget nearest to its end."""
    spent = report_spent(notes)
    shares = [(used / most, name) for _, name, used, most in _list_budgets(spent, settings)]
    share, nearest = max(shares, key=lambda one: one[0], default=(0.0, None))
    event: SpentEvent = {
        "type": "spent",
        "exchange": paid,
        "spent": spent,
        "nearest": nearest,
        "share": share,
        "budget": notes.get("budget", 0),
    }
    if "counted" in notes:
        _, tokens, _, window = notes["counted"]
        event["context"] = tokens / window
    return event


def _list_budgets(
    spent: ActivationSpending, settings: LoopSettings
) -> list[tuple[Budget, str, float, float]]:
    """Return each budget that is set: its reason, its name, what is spent, and the most."""
    budgets: tuple[tuple[Budget, str, float | None, float | None], ...] = (
        ("request_budget", "requests", spent["requests"], settings.max_requests),
        ("token_budget", "tokens", spent["input"] + spent["output"], settings.max_tokens),
        ("cost_budget", "cost", spent["cost"], settings.max_cost),
        ("time_budget", "seconds", spent["seconds"], settings.max_seconds),
    )
    found = []
    for reason, name, used, most in budgets:
        if used is not None and most is not None:
            found.append((reason, name, used, most))
    return found


def note_list(notes: Ledger, todos: Sequence[Todo], settings: LoopSettings, *, begins: bool = False) -> None:
    """Note what gates need to know of the list: how many items are settled, and that there was a list.

    The first comes with the budget. Nothing is noted that no setting asks for.
    """
    if settings.earn_wakes:
        now = len(todos) - count_open(todos)
        began, most = notes.get("settled", [now, now] if begins else [0, 0])
        if now or most:
            notes["settled"] = [began, max(most, now)]
        notes["budget"] = settings.max_wake_cycles + count_earned_wakes(notes, settings)
    if todos and settings.on_no_list == "ask":
        notes["listed"] = True


def count_earned_wakes(notes: Ledger, settings: LoopSettings) -> int:
    """Return the wakes beyond `max_wake_cycles`: one per item settled since the beginning.

    The most that were settled at once counts, so that adding and closing items forever earns nothing.
    Without wakes, nothing is earned.
    """
    began, most = notes.get("settled", (0, 0))
    return min(most - began, settings.earn_wakes) if settings.max_wake_cycles else 0
