"""The truth table of what follows the end of a turn."""

from typing import Any, get_args

import pytest
from agents import settings

from wakeloop.loop.case import Case, Costs
from wakeloop.loop.gates import GATES
from wakeloop.loop.ruling import Ruling, rule

WORDS: dict[str, dict[str, Any]] = {  # what a word in the table changes; without one, the case wakes
    "closed": {"open": 0, "wrote": True},
    "empty": {"open": 0},
    "given-up": {"gave_up": True},
    "owed": {"owed": True},
    "waiting": {"waiting": True},
    "silent": {"awaited": "human"},
    "steered": {"steered": True},
    "on-hold": {"closed": True},
    "drained": {"drained": True},
    "over": {"spent_budget": "time_budget"},
    "reported": {"reported": True},
    "no-wakes-left": {"wakes": 25},
    "repeated": {"repeated": True},
    "idle": {"idle_wakes": 3},
    "suppressed": {"suppressed": True},
    "unformatted": {"unformatted": True},
    "listless": {"lacks_list": True},
    "suspects": {"suspects": 2},
    "called": {"called_by": "stalled"},
    "corrected": {"retries": 1},
    "again": {"again": "empty"},
    "explained": {"asking": "explain"},
    "formatted": {"asking": "format", "wrote": True},
    "bad-reply": {"bad_reply_end": "truncated"},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "manual": {"auto_continue": False},
    "no-budget": {"max_wake_cycles": 0},
    "no-guard": {"guard_retries": 0},
    "two-corrections": {"guard_retries": 2},
    "block": {"on_guard_exhausted": "block"},
    "no-report": {"on_budget": "stop"},
}
TABLE = """
# the gates, in their order
: wake
closed: settled
empty: answered
closed given-up: blocked
empty given-up: blocked
given-up: wake
closed given-up owed: wake
closed given-up waiting: waiting
empty drained steps=2 over: answered
closed owed: wake
waiting: waiting
closed waiting: waiting
manual: disabled
no-budget suppressed: disabled
drained: drained
steps=4: step_limit
over: report
no-wakes-left suppressed: wake_budget
repeated suppressed: repeated_reply
idle suppressed: stalled
waiting manual drained over no-wakes-left idle: waiting
closed drained steps=2 over: settled
manual drained steps=2 over repeated idle: disabled
drained steps=2 over repeated idle: drained
steps=4 over repeated idle: step_limit
no-wakes-left repeated idle suppressed: wake_budget
repeated idle suppressed: repeated_reply

# a person has spoken meanwhile
steered: steer
steered closed: steer
steered empty suspects: steer
steered listless: steer
steered waiting: steer
steered silent: steer
steered no-wakes-left idle repeated: steer
steered called corrected: steer
steered manual: steer
steered no-budget: steer
steered on-hold waiting: waiting
steered drained: drained
steered steps=3: step_limit
steered steps=4: steer
steered over: report
steered again: retry
steered formatted: settled
steered explained: guard_blocked

# somebody has to speak first
silent: waiting
silent owed: waiting
silent closed: settled
silent empty: answered
silent manual drained over no-wakes-left repeated idle: waiting
silent steps=2: waiting
silent called: correct
silent called closed: settled
silent again: retry
silent bad-reply: waiting

# the guard, before an end by a gate
no-budget: correct
no-wakes-left: correct
repeated: correct
idle: correct
manual idle: disabled
closed owed no-budget: disabled
closed owed no-wakes-left: wake_budget
closed owed idle: stalled
idle no-guard: stalled
idle no-guard block: stalled
idle corrected: stalled
idle corrected two-corrections: correct
idle corrected block: explain
idle corrected block suppressed: stalled
no-budget corrected: disabled
no-budget corrected block: explain

# after a correction: the first four gates and a spent budget, else what called the guard
called: correct
called suppressed: correct
called manual: correct
called closed owed: correct
called no-wakes-left repeated: correct
called steps=4: correct
called steps=3: step_limit
called drained: drained
called waiting: waiting
called closed: settled
called closed waiting: waiting
called empty: answered
called closed given-up: blocked
called given-up: correct
called closed unformatted: format
called over: report
called over closed owed: time_budget
called corrected: stalled
called corrected two-corrections: correct
called no-guard: stalled
called no-guard block: stalled
called corrected block: explain
called corrected block steps=3: explain
called corrected block steps=2: step_limit
called corrected block drained: stalled
called corrected over: report
called corrected block over reported: time_budget

# the closing request before an end by a budget
over reported: time_budget
over no-report: time_budget
over suppressed: report
over closed owed: time_budget
end=token_budget: report
end=token_budget steps=3: report
end=token_budget steps=2: token_budget
end=token_budget drained: token_budget
end=token_budget closed: token_budget
end=token_budget manual: token_budget
end=token_budget reported: token_budget
end=token_budget no-report: token_budget
end=token_budget waiting: waiting
end=cost_budget over reported: cost_budget

# the caller's format, once the run is settled
closed unformatted: format
closed unformatted steps=3: format
empty unformatted: format
closed given-up unformatted: format
closed unformatted steps=2: step_limit
closed unformatted drained: drained
closed unformatted over: time_budget
closed unformatted waiting: waiting
closed unformatted owed: wake
unformatted idle suppressed: stalled
formatted: settled
formatted waiting: settled
formatted given-up: blocked
formatted owed: settled
formatted over: settled
formatted drained idle: settled

# tools ran, and there never was a list
closed listless: ask
closed listless unformatted: ask
closed listless steps=4: ask
closed listless steps=3: settled
closed listless drained: settled
closed listless over: settled
closed listless manual: settled
closed listless suppressed: settled
closed listless waiting: waiting
listless idle: ask
listless formatted: settled

# items that were closed without the work being seen
closed suspects: audit
closed suspects unformatted: audit
closed suspects given-up: audit
closed suspects steps=4: audit
closed suspects steps=3: settled
closed suspects drained: settled
closed suspects over: settled
closed suspects manual: settled
closed suspects suppressed: settled
closed suspects waiting: waiting
closed suspects owed: wake
closed suspects called: audit
suspects: wake
formatted suspects: settled

# a reply that is requested again
again: retry
again closed: retry
again waiting: retry
again manual: retry
again idle: retry
again listless: retry
again formatted: retry
again steps=4: retry
again steps=3: step_limit
again drained: drained
again over: report
again over steps=3: report
again over steps=2: time_budget
again over drained: time_budget
again over closed: time_budget
again over reported: time_budget
again over waiting: waiting
again over formatted: report

# an explanation was demanded
explained: guard_blocked
explained closed: guard_blocked
explained waiting: guard_blocked
explained over: guard_blocked
explained again: guard_blocked
explained again over: guard_blocked
explained again drained: guard_blocked

# what has ended the run already
end=malformed_calls: malformed_calls
end=malformed_calls waiting: malformed_calls
end=malformed_calls closed drained over: malformed_calls
end=truncated again: truncated
end=truncated again over: truncated
end=refused explained: refused
end=handed_over waiting: handed_over
end=looping: correct
end=looping steps=4: correct
end=looping steps=3: looping
end=looping waiting: waiting
end=looping drained: looping
end=looping over: looping
end=looping closed: looping
end=looping manual: looping
end=looping suppressed: looping
end=looping corrected: looping
end=looping corrected two-corrections: correct
end=looping no-guard: looping

# the last of bad replies ended its turn alone: its reason is the run's where most gates end it
bad-reply: wake
bad-reply closed: settled
bad-reply waiting: waiting
bad-reply manual: truncated
bad-reply drained: truncated
bad-reply steps=4: truncated
bad-reply over: report
bad-reply over reported: time_budget
bad-reply no-budget suppressed: truncated
bad-reply no-wakes-left suppressed: truncated
bad-reply repeated suppressed: truncated
bad-reply idle suppressed: truncated
bad-reply idle: correct
bad-reply idle corrected: truncated
bad-reply idle corrected block: explain
"""
ENDED_ELSEWHERE = {  # as other endings, or not by a ruling at all
    "empty_reply", "ended_elsewhere", "goal_met", "context_full", "failed", "interrupted", "cancelled",
}  # fmt: skip
ROWS = [line for line in TABLE.splitlines() if line and not line.startswith("#")]


def case_of(row: str) -> Case:
    """Return the case that wakes, with the changes that a row's words make."""
    changes: dict[str, Any] = {"open": 1, "wakes": 24, "idle_wakes": 2, "steps_left": 5}
    loop: dict[str, Any] = {"stop_on_repeat": True, "max_idle_wakes": 3}
    for word in row.partition(":")[0].split():
        name, _, value = word.partition("=")
        if name == "steps":
            changes["steps_left"] = int(value)
        elif name == "end":
            changes["end"] = value
        elif name in SETTINGS:
            loop |= SETTINGS[name]
        else:
            changes |= WORDS[name]
    return Case(settings=settings(**loop), **changes)


@pytest.mark.parametrize("row", ROWS)
def test_every_ruling(row: str) -> None:
    assert rule(case_of(row)) == row.partition(": ")[2]


def test_every_ruling_except_gates_is_in_the_table() -> None:
    """Each gate has its row in the table of `test_gates.py`."""
    missing = set(get_args(Ruling)) - {row.partition(": ")[2] for row in ROWS}
    assert missing - {gate.name for gate in GATES} == ENDED_ELSEWHERE


def test_the_cost_of_a_ruling_is_a_value() -> None:
    cheap = Costs(wake=2, correction=1, request=1)
    stalled = {"open": 1, "settings": settings(), "idle_wakes": 3}
    assert rule(Case(open=1, settings=settings(), steps_left=2)) == "step_limit"
    assert rule(Case(open=1, settings=settings(), steps_left=2, costs=cheap)) == "wake"
    assert rule(Case(**stalled, steps_left=3, called_by="stalled")) == "step_limit"
    assert rule(Case(**stalled, steps_left=3, called_by="stalled", costs=cheap)) == "correct"
