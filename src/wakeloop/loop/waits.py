"""What a thread waits for, until when, and what has not come."""

from collections.abc import Mapping, Sequence
from typing import Any

from wakeloop.loop.before_request import announce
from wakeloop.loop.inbox import WakeEvent
from wakeloop.prompts import fill_prompt
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import shorten, to_one_line

LONGEST_WAIT = 3600.0  # seconds in a row for a peer, a subagent or a condition; then the run continues once
LONGEST_TIMER = 1_000_000_000  # seconds, 31 years: a host's clock and a calendar can hold that
FARTHEST = 5_000_000_000  # the year 2128; no time that a server states or an entry has is later
LIMIT_MARGIN = 2.0  # seconds after the time that a server stated: clocks differ
CLOCK_MARGIN = 0.1  # seconds after the time of a wait, for a host's clock
MOST_LIMIT_WAITS = 2  # without a reply in between
LONGEST_NAME = 200  # characters
HAS_CEILING = frozenset(("peer", "subagent", "condition"))
ENDED_BY_KICK = frozenset(("work", "limit", "condition"))
WAIT_KEYS = ("on", "until", "question")  # of a waiting session
CONTINUED_AFTER = frozenset(("peer", "subagent", "work"))
"""After the time of these waits the activation continues for one wake. A condition is checked instead."""


def read_wait_kind(entry: object) -> str:
    """Return what an entry of `waiting_on` waits for; a peer if it does not say."""
    return str(entry.get("on", "peer")) if isinstance(entry, Mapping) else "peer"


def find_waiting_party(waiting_on: Sequence[Any]) -> str:
    """Return what a session waits for, by the first entry. A hold comes first."""
    kinds = [read_wait_kind(entry) for entry in waiting_on] or ["peer"]
    return "hold" if "hold" in kinds else kinds[0]


def find_waiting_question(waiting_on: Sequence[Any]) -> str:
    """Return the question that a session waits with, or ""."""
    entries = filter(lambda entry: isinstance(entry, Mapping), waiting_on)
    return next((entry["question"] for entry in entries if isinstance(entry.get("question"), str)), "")


def find_next_wait(waiting_on: Sequence[Any]) -> Mapping[str, Any] | None:
    """Return the entry whose time comes first; None without one, or on hold, which no clock ends."""
    if any(read_wait_kind(entry) == "hold" for entry in waiting_on):
        return None
    timed = [entry for entry in waiting_on if read_wait_end(entry) is not None]
    return min(timed, key=lambda entry: entry["until"], default=None)


def read_wait_end(entry: object) -> float | None:
    """Return the time from which it makes sense to try again, in seconds since 1970; None if not known."""
    until = entry.get("until") if isinstance(entry, Mapping) else None
    return until if isinstance(until, int | float) and abs(until) < FARTHEST else None


def ends_by_kick(entry: object, now: float) -> bool:
    """Tell whether a kick ends a wait: work and limits may be over, and a condition is checked again."""
    until = read_wait_end(entry)
    return read_wait_kind(entry) in ENDED_BY_KICK or (until is not None and until <= now)


def describe_waiting(waiting_on: Sequence[Any]) -> dict[str, Any]:
    """Return a waiting session's `on`, and its `until` and `question` if it has them."""
    session: dict[str, Any] = {"on": find_waiting_party(waiting_on)}
    if (first := find_next_wait(waiting_on)) is not None:
        session["until"] = first["until"]
    if question := find_waiting_question(waiting_on):
        session["question"] = question
    return session


def set_ceilings(waiting_on: Sequence[Any], now: float) -> list[Any]:
    """Return the entries that a run parks with. A wait for others gets a time at which it ends."""
    timed = []
    for entry in waiting_on:
        is_endless = read_wait_kind(entry) in HAS_CEILING and read_wait_end(entry) is None
        limited = isinstance(entry, Mapping) and is_endless
        timed.append({**entry, "until": now + LONGEST_WAIT} if limited else entry)
    return timed


def build_limit_entry(until: float) -> dict[str, Any]:
    """Return the entry of a thread whose request was refused for a limit until a stated time."""
    return {"id": "limit", "on": "limit", "until": until + LIMIT_MARGIN}


def build_clock_event(waiting_on: Sequence[Any], now: float) -> WakeEvent | None:
    """Return the event by which a host continues a thread whose time has come; None before that."""
    due = find_next_wait(waiting_on)
    if due is None or due["until"] > now:
        return None
    return {"kind": "kick", "correlation_id": str(due.get("id"))}


def render_ended_waits(
    late: Sequence[Mapping[str, Any]], over: Sequence[Mapping[str, Any]], settings: LoopSettings, folder: str
) -> str:
    """Return a message about waits that have ended: those that are `late`, and work that may be over."""
    parts = list[str]()
    for name, entries in (("not_come", late), ("work_over", over)):
        if entries:
            names = "\n".join(f"- {_name_wait(entry)}" for entry in entries)
            text = fill_prompt(name, folder, settings.prompts, waits=names)
            parts.append(announce(text, settings, name) if not parts else text)
    return "\n\n".join(parts)


def _name_wait(entry: Mapping[str, Any]) -> str:
    kind, name = read_wait_kind(entry), entry.get("id")
    if kind == "subagent":
        return (
            "a result of a subagent"
            if name == "subagents"
            else f"the result of subagent {_shorten_name(name)}"
        )
    if kind == "peer":
        return f"a reply from {_shorten_name(entry.get('from') or name)}"
    return _shorten_name(entry.get("what") or name)


def _shorten_name(name: object) -> str:
    return shorten(to_one_line(str(name)), LONGEST_NAME)
