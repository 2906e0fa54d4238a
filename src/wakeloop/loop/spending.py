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
    """The list of numbers as it is noted: whole ones, which add up exactly and are short in a checkpoint.

    `cost` is in billionths, None once a reply had no price; `estimated` is noted where it is 1.
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
    """Read what is noted; nothing is, before an activation's first request."""
    return Totals(*notes.get("spent", ()))


def write_totals(notes: Ledger, spent: Totals) -> None:
    """Note spendings, within what a checkpoint can hold."""
    numbers = [value if value is None else min(value, MAX_NUMBER - 1) for value in spent]
    notes["spent"] = numbers if spent.estimated else numbers[:-1]


def add_request(
    notes: Ledger, used: Sequence[Usage], seconds: float, settings: LoopSettings, configured: str
) -> RequestSpending:
    """Count a request, whatever became of its reply: its own usage, and that of what was asked beside it.

    `configured` is the model's name as its client has it. Where the cost is bounded, earlier requests without
    a price cost what the model costs now, an estimate: a bound that an unknown sum never reaches is none.
    Returns what this one took.
    """
    before = read_totals(notes)
    asked, cached = sum(usage.input for usage in used), sum(usage.cached for usage in used)
    output = sum(usage.output for usage in used)
    costs = [compute_cost(usage, settings.prices, configured) for usage in used]
    own = None if None in costs else sum(filter(None, costs))
    estimated, took = any(usage.estimated for usage in used), round(seconds * 1000)
    cost, guessed = before.cost if before.requests else 0, False
    if cost is None and settings.max_cost is not None:
        cost = compute_cost(Usage(before.input, before.cached, before.output), settings.prices, configured)
        guessed = cost is not None
    write_totals(
        notes,
        Totals(
            before.requests + 1,
            before.input + asked,
            before.cached + cached,
            before.output + output,
            before.milliseconds + took,
            before.failed,
            None if cost is None or own is None else cost + own,
            int(before.estimated or estimated or guessed),
        ),
    )
    return {
        "input": asked,
        "cached": cached,
        "output": output,
        "cost": None if own is None else own / BILLION,
        "seconds": took / 1000,
        "estimated": estimated,
    }


def add_round(notes: Ledger, messages: Sequence[AnyMessage]) -> None:
    """Count a round that has run: the time of its longest call, and the calls that ended in an error."""
    if "nag" not in notes:
        return
    todo = set(notes.get("todo_calls", ()))
    found = [result for call, result in find_last_round(reversed(messages)) if call["id"] not in todo]
    longest = max(map(call_duration_ms, found), default=0)
    failed = sum(result.status == "error" for result in found)
    if longest or failed:
        spent = read_totals(notes)
        more = {"milliseconds": spent.milliseconds + longest, "failed": spent.failed + failed}
        write_totals(notes, spent._replace(**more))


def find_spent_budget(notes: Ledger, settings: LoopSettings) -> Budget | None:
    """Return the first budget that is reached; None where none is."""
    return next(
        (reason for reason, _, spent, most in _iterate_budgets(notes, settings) if spent >= most), None
    )


def report_spent(notes: Ledger) -> ActivationSpending:
    """Say what is spent, as a session and an event have it."""
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
    """Return the event behind a request: what it took, what is spent, the budget nearest to its end."""
    shares = [(spent / most, name) for _, name, spent, most in _iterate_budgets(notes, settings)]
    share, nearest = max(shares, key=lambda pair: pair[0], default=(0.0, None))
    wakes = notes.get("budget", 0)
    spent = report_spent(notes)
    return {
        "type": "spent",
        "exchange": paid,
        "spent": spent,
        "nearest": nearest,
        "share": share,
        "budget": wakes,
    }


def _iterate_budgets(notes: Ledger, settings: LoopSettings) -> Iterator[tuple[Budget, str, float, float]]:
    """Yield each budget that is set: its reason, its name, what is spent, and the most."""
    spent = read_totals(notes)
    if (most := settings.max_requests) is not None:
        yield "request_budget", "requests", spent.requests, most
    if (most := settings.max_tokens) is not None:
        yield "token_budget", "tokens", spent.input + spent.output, most
    if (bound := settings.max_cost) is not None and spent.cost is not None:
        yield "cost_budget", "cost", spent.cost / BILLION, bound
    if (bound := settings.max_seconds) is not None:
        yield "time_budget", "seconds", spent.milliseconds / 1000, bound
