"""Goals that code checks: what `done_when` may say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wakeloop.errors import ArgumentError, GoalError
from wakeloop.loop.case import Case
from wakeloop.loop.gates import ENDINGS, is_near_step_limit
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.progress import fingerprint_call, remember_fingerprints
from wakeloop.loop.ruling import rule
from wakeloop.loop.waits import LONGEST_TIMER
from wakeloop.text.characters import shorten, storable_text
from wakeloop.text.marks import new_id

LONGEST_REASON = 2_000  # characters of what is missing
WAIT_SECONDS = 60.0  # after which a condition is asked for again, unless `wait` says otherwise
# What changes from one run of a test suite to the next although nothing has changed in the work.
_CHANGING = re.compile(
    r"""
    (?<![\w.~@+-])(?:[A-Za-z]:)?[\w.~@+-]*(?:[/\\][\w.~@+-]*)+               # a path
    | (?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+)?
      (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+\d[\d\s:,]*  # a date
    | 0x[0-9a-f]+ | \b(?=[a-f]*\d)[0-9a-f]{6,}\b                              # an address, a hash
    | \d+(?:[.,:]\d+)*(?:\s*(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?|h|hours?|am|pm)\b)?
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict of `done_when`: its kind, and what is missing or awaited."""

    kind: Literal["met", "unmet", "impossible", "wait"]
    reason: str = ""
    seconds: float = WAIT_SECONDS


def impossible(why: str) -> Verdict:
    """Return the verdict that the goal cannot be reached: the run ends as `blocked`.

    >>> from wakeloop import impossible
    >>> impossible("the API was switched off").reason
    'the API was switched off'
    """
    return Verdict("impossible", _check_reason("impossible", why))


def wait(what: str, seconds: float | None = None) -> Verdict:
    """Return the verdict that something else must happen first: the run waits, and spends nothing.

    Args:
        what: What it waits for, in words.
        seconds: When it makes sense to ask again; 60 by default.

    >>> from wakeloop import wait
    >>> wait("the nightly build", seconds=600).seconds
    600
    """
    if seconds is None:
        return Verdict("wait", _check_reason("wait", what))
    given: object = seconds
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= LONGEST_TIMER:
        raise ArgumentError(f"`seconds` of wait must be a number of seconds, got {shorten(repr(seconds))}.")
    return Verdict("wait", _check_reason("wait", what), seconds)


def _check_reason(name: str, reason: object) -> str:
    if not isinstance(reason, str) or not reason.strip():
        raise ArgumentError(f"`{name}` needs a reason in words, got {shorten(repr(reason))}.")
    return reason


def read_verdict(given: object) -> Verdict:
    """Return the answer of `done_when` as a verdict. Raises `GoalError` for anything that is not one."""
    if given is None or given == "":
        return Verdict("met")
    if isinstance(given, Verdict):
        return given
    if isinstance(given, str):
        return Verdict("unmet", given)
    raise GoalError(
        "`done_when` must return None if the goal is met, a string that says what is missing, impossible(…) "
        f"or wait(…), got {shorten(repr(given))}."
    )


def begin_goal(notes: Ledger, *, has_goal: bool, by_peers: bool, says_nothing: bool) -> None:
    """Note, as an activation begins, whether the goal is asked for at the end of its turns.

    It is, unless only peers and subagents began the activation. A goal that is known to be unmet is asked for
    whoever began it, and stays known to be unmet where the input `says_nothing` to the model.
    """
    if not has_goal:
        notes.pop("goal", None)
        notes.pop("missing", None)
    elif not by_peers and not (says_nothing and notes.get("goal") == "unmet"):
        notes["goal"] = "due"
    elif by_peers and notes.get("goal") in ("met", "impossible"):
        del notes["goal"]


def note_verdict(notes: Ledger, verdict: Verdict) -> bool:
    """Note a verdict. Return whether it names something that was not missing before in this activation."""
    notes["goal"], notes["judged"] = verdict.kind, True
    if verdict.kind == "met":
        notes.pop("missing", None)
        return False
    reason = shorten(storable_text(verdict.reason).strip() or "no reason given", LONGEST_REASON)
    notes["missing"] = reason
    if verdict.kind != "unmet":
        return False
    fingerprint = fingerprint_call(strip_changing_parts(reason), {})
    notes["reasons"], new = remember_fingerprints(notes.get("reasons", ""), [fingerprint])
    return bool(new)


def asks_goal(case: Case) -> bool:
    """Tell whether `done_when` is asked before this turn's end is ruled on (rule 24).

    It is asked once per turn, also where something else ends the run. It is not asked where the run waits,
    the model is asked again, or the process or its steps come to their end.
    """
    if not case.unmet or case.judged or case.asking is not None or case.waiting or case.drained:
        return False
    if case.end is None and is_near_step_limit(case):
        return False
    ruling = rule(case)
    return ENDINGS[ruling].after_goal if ruling in ENDINGS else ruling not in ("retry", "steer")


def strip_changing_parts(reason: str) -> str:
    """Return a reason without numbers, times and paths, which may differ although nothing has changed.

    >>> strip_changing_parts("2 failed in /tmp/x-7/test_a.py, 0.41s")
    'failed in ,'
    """
    return " ".join(_CHANGING.sub(" ", reason).split())


def is_unmet(notes: Mapping[str, Any]) -> bool:
    """Tell whether a goal counts as open: it is not met as far as is known, or was not asked for yet."""
    return notes.get("goal") in ("due", "unmet")


def build_wait_entry(verdict: Verdict, now: float, since: float | None = None) -> dict[str, Any]:
    """Return the entry of `waiting_on` for a condition, with the time from which to ask again.

    `since` is the time from which on it is waited for in a row, if that is not `now`.
    """
    until, begun = now + verdict.seconds, now if since is None else since
    return {"id": new_id(), "on": "condition", "what": verdict.reason, "until": until, "since": begun}
