"""What an activation has spent, and which budget is spent."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from langchain_core.messages import AnyMessage

from wakeloop.loop.ledger import Ledger
from wakeloop.loop.prices import Usage, compute_cost
from wakeloop.loop.progress import find_last_round
from wakeloop.settings import MAX_NUMBER, LoopSettings
from wakeloop.stream import ActivationSpending, Budget, RequestSpending, SpentEvent
from wakeloop.text.marks import call_duration_ms

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
    before = read_totals(notes)
    own = _add_up(used, settings, configured)
    cost, guessed = before.cost if before.requests else 0, False
    if cost is None and settings.max_cost is not None:
        earlier = Usage(before.input, before.cached, before.output)
        cost = compute_cost(earlier, settings.prices, configured)
        guessed = cost is not None
    took = round(seconds * 1000)
    after = Totals(
        before.requests + 1,
        before.input + own.input,
        before.cached + own.cached,
        before.output + own.output,
        before.milliseconds + took,
        before.failed,
        None if cost is None or own.cost is None else cost + own.cost,
        int(before.estimated or own.estimated or guessed),
    )
    write_totals(notes, after)
    return {
        "input": own.input,
        "cached": own.cached,
        "output": own.output,
        "cost": _in_units(own.cost),
        "seconds": took / 1000,
        "estimated": bool(own.estimated),
    }


def _add_up(used: Sequence[Usage], settings: LoopSettings, configured: str) -> Totals:
    """Return the sum of several usages; its cost is None if one of them has no price."""
    total = Totals(cost=0)
    for usage in used:
        price = compute_cost(usage, settings.prices, configured)
        total = total._replace(
            input=total.input + usage.input,
            cached=total.cached + usage.cached,
            output=total.output + usage.output,
            cost=None if price is None or total.cost is None else total.cost + price,
            estimated=total.estimated or int(usage.estimated),
        )
    return total


def _in_units(cost: int | None) -> float | None:
    return None if cost is None else cost / BILLION


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
    for reason, _, spent, most in _iterate_budgets(read_totals(notes), settings):
        if spent >= most:
            return reason
    return None


def report_spent(notes: Ledger) -> ActivationSpending:
    """Return what is spent, in the form of a session and an event."""
    return _report(read_totals(notes))


def _report(spent: Totals) -> ActivationSpending:
    return {
        "requests": spent.requests,
        "input": spent.input,
        "cached": spent.cached,
        "output": spent.output,
        "cost": _in_units(spent.cost),
        "seconds": spent.milliseconds / 1000,
        "estimated": bool(spent.estimated),
        "failed_calls": spent.failed,
    }


def build_spent_event(notes: Ledger, settings: LoopSettings, paid: RequestSpending) -> SpentEvent:
    """Return the event after a request: what it took, what is spent, and the budget nearest to its end."""
    totals, share, nearest = read_totals(notes), 0.0, None
    for _, name, spent, most in _iterate_budgets(totals, settings):
        if nearest is None or spent / most > share:
            share, nearest = spent / most, name
    event: SpentEvent = {
        "type": "spent",
        "exchange": paid,
        "spent": _report(totals),
        "nearest": nearest,
        "share": share,
        "budget": notes.get("budget", 0),
    }
    if "counted" in notes:
        _, tokens, _, window = notes["counted"]
        event["context"] = tokens / window
    return event


def _iterate_budgets(spent: Totals, settings: LoopSettings) -> Iterator[tuple[Budget, str, float, float]]:
    """Yield each budget that is set: its reason, its name, what is spent, and the most."""
    if (most := settings.max_requests) is not None:
        yield "request_budget", "requests", spent.requests, most
    if (most := settings.max_tokens) is not None:
        yield "token_budget", "tokens", spent.input + spent.output, most
    if (bound := settings.max_cost) is not None and spent.cost is not None:
        yield "cost_budget", "cost", spent.cost / BILLION, bound
    if (bound := settings.max_seconds) is not None:
        yield "time_budget", "seconds", spent.milliseconds / 1000, bound
