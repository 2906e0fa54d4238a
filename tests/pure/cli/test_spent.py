"""What a run has spent: its words, the screen's summary of events, the status in two widths."""

from __future__ import annotations

import io
from typing import Any, get_args

import pytest

from wakeloop.display.formatting import format_budget_share, format_ending, format_spent, format_trouble
from wakeloop.display.live_view import LiveView
from wakeloop.display.screen import Screen
from wakeloop.loop.gates import LIMITS
from wakeloop.settings import LoopSettings
from wakeloop.stream import Budget

ONE: Any = {
    "requests": 1,
    "input": 1,
    "cached": 0,
    "output": 0,
    "cost": None,
    "seconds": 0.4,
    "estimated": False,
    "failed_calls": 0,
}
MANY: Any = {
    "requests": 12,
    "input": 11_000,
    "cached": 8_800,
    "output": 1_345,
    "cost": 0.1234,
    "seconds": 3.9,
    "estimated": False,
    "failed_calls": 1,
}


@pytest.mark.parametrize(
    ("spent", "told"),
    [
        (ONE, "1 request, 1 token"),
        (MANY, "12 requests, 12,345 tokens (80% cached), cost 0.1234"),
        ({**MANY, "cached": 0, "cost": None}, "12 requests, 12,345 tokens"),
        ({**MANY, "cached": 10_999}, "12 requests, 12,345 tokens (99% cached), cost 0.1234"),
        (
            {**MANY, "estimated": True, "cost": 1234.5},
            "12 requests, about 12,345 tokens (80% cached), cost 1,234.5000",
        ),
        ({**ONE, "requests": 0, "input": 0}, "0 requests"),
        ({**ONE, "requests": 1_000, "cost": 0.0}, "1,000 requests, 1 token, cost 0.0000"),
    ],
)
def test_what_was_spent(spent: Any, told: str) -> None:
    assert format_spent(spent) == told


@pytest.mark.parametrize(
    ("name", "share", "told"),
    [
        (None, 0.0, ""),
        ("requests", 0.0099, ""),
        ("requests", 0.01, "1% of max_requests"),
        ("tokens", 0.29, "29% of max_tokens"),
        ("cost", 0.999, "99% of max_cost"),
        ("seconds", 1.2, "120% of max_seconds"),
    ],
)
def test_the_budget_closest_to_its_limit(name: str | None, share: float, told: str) -> None:
    assert format_budget_share(name, share) == told


def test_every_budget_has_its_setting() -> None:
    assert list(LIMITS) == list(get_args(Budget))
    assert set(LIMITS.values()) < set(LoopSettings.model_fields)


def items(*statuses: str) -> Any:
    return [{"id": n, "content": "x", "status": status} for n, status in enumerate(statuses, 1)]


@pytest.mark.parametrize(
    ("failed", "statuses", "told"),
    [
        (0, ("completed", "pending"), ""),
        (1, ("completed",), "1 call failed"),
        (0, ("blocked",), "1 item blocked"),
        (1, ("blocked",), "1 call failed, 1 item blocked"),
        (2, ("blocked", "completed", "blocked"), "2 calls failed, 2 items blocked"),
    ],
)
def test_trouble_along_the_way(failed: int, statuses: tuple[str, ...], told: str) -> None:
    assert format_trouble({"spent": {**ONE, "failed_calls": failed}}, items(*statuses)) == told


def test_a_session_without_counts_shows_no_failed_calls() -> None:
    assert format_trouble({"state": "idle"}, items("blocked")) == "1 item blocked"


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("request_budget", "Out of budget with 2 open: max_requests of this activation is spent."),
        ("token_budget", "Out of budget with 2 open: max_tokens of this activation is spent."),
        ("cost_budget", "Out of budget with 2 open: max_cost of this activation is spent."),
        ("time_budget", "Out of budget with 2 open: max_seconds of this activation is spent."),
        ("looping", "Going in circles with 2 open: no new result from its calls, several times in a row."),
    ],
)
def test_the_endings_at_a_limit(reason: str, told: str) -> None:
    assert format_ending({"state": "idle", "reason": reason, "open": 2, "spent": MANY}) == told


# -- events ----------------------------------------------------------------------------------------------


def paid(name: str | None, share: float, spent: Any = MANY) -> dict[str, Any]:
    took = {key: value for key, value in spent.items() if key not in ("requests", "failed_calls")}
    told = {"spent": spent, "exchange": took, "nearest": name, "share": share, "budget": 26}
    return {"type": "spent", **told, "at": 1_800_000_000.5}


def show_events(screen: Screen, *events: dict[str, Any]) -> list[str]:
    return [line.text for event in events for line in screen.feed("custom", event)]


def summary(screen: Screen) -> str:
    """Return the summary without its seconds."""
    return screen.summary.rpartition(", ")[0]


def test_a_budget_is_announced_once_when_it_nears_its_limit() -> None:
    screen = Screen()
    shares = [("requests", 0.5), ("requests", 0.79), ("requests", 0.8), ("tokens", 0.85), ("requests", 0.9)]
    assert show_events(screen, *(paid(*one) for one in shares)) == [
        "budget: 80% of max_requests is spent",
        "budget: 85% of max_tokens is spent",
    ]
    assert (
        summary(screen)
        == "0 wakes, 12 requests, 12,345 tokens (80% cached), cost 0.1234, 90% of max_requests"
    )
    assert show_events(screen, {"type": "activated", "open": 0, "budget": 25, "sources": []}) == []
    assert summary(screen) == "0 wakes, 0 requests"
    assert show_events(screen, paid("requests", 0.8)) == ["budget: 80% of max_requests is spent"]


def test_without_a_budget_nothing_is_announced() -> None:
    screen = Screen()
    assert show_events(screen, paid(None, 0.0, ONE)) == []
    assert summary(screen) == "0 wakes, 1 request, 1 token"


def test_the_final_report_is_asked_for() -> None:
    event = {"type": "guard", "action": "report", "retry": 0, "retries": 1, "open": 2}
    assert show_events(Screen(), {**event, "reason": "token_budget"}) == [
        f"final report: the run ends (token_budget) with 2 open; {ASKED}"
    ]


ASKED = "the model is asked what is done and what is not"
WHOLE = "1/26 wakes, 12 requests, 12,345 tokens (80% cached), cost 0.1234"


@pytest.mark.parametrize(
    ("width", "rows"),
    [
        (40, ["1/26 wakes, 12 requests, 12,345 tokens", "(80% cached), cost 0.1234, 12% of"]),
        (
            80,
            [
                f"{WHOLE}, 12% of",
                "max_tokens, 5.0 s  t-1",
            ],
        ),
    ],
)
def test_the_status_in_a_terminal(width: int, rows: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 105.0)
    screen = Screen(title="t-1", started=100.0, wakes=1, budget=25)
    show_events(screen, paid("tokens", 0.12))
    view = LiveView(screen, io.StringIO())
    view.console.width = width
    drawn = [row.plain for row in view.rows()]
    at = next(place for place, row in enumerate(drawn) if row.startswith("1/26 wakes"))
    assert drawn[at:] == rows
