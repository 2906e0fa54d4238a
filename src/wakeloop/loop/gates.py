"""Gates and endings: each way a run ends, as one record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from wakeloop.stream import Budget, EndReason, State, StopReason

if TYPE_CHECKING:  # at run time it would import pydantic, which the command's help does without
    from wakeloop.loop.case import Case


class ExitCode(IntEnum):
    """What the command exits with."""

    SETTLED = 0
    FAILED = 1
    USAGE = 2
    OPEN = 3
    WAITING = 4
    INTERRUPTED = 130
    TERMINATED = 143


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """Everything that is declared about one way in which a run ends.

    `sentence` is for people; its blanks are `open`, `completed`, `cancelled`, `blocked`, `budget`, `are`,
    `on` and `error`. `meaning` says in the docs when it happens. `state` is the session's; an idle session
    with nothing open is dormant. The two exit codes are for a list with open items, and for one without.
    `done`: there is nothing left to do, so the answer is asked for in the caller's format. `needs_proof`:
    where a verifier was given and accepted no item of the list, the exit code is that of an open list.
    `after_goal`: a goal that code checks is asked for before the run ends so (rule 24).
    """

    name: EndReason
    sentence: str
    meaning: str
    state: State = "idle"
    exit_code_open: ExitCode = ExitCode.OPEN
    exit_code: ExitCode = ExitCode.FAILED
    done: bool = False
    needs_proof: bool = False
    after_goal: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate(Ending):
    """An ending decided at the end of a turn, where `stops` holds.

    `guarded`: with items open the guard may first ask for a correction. `bears_bad_reply`: where the turn
    ended with one bad reply too many, the run ends with that reply's reason instead. `asked_again`: it is
    asked after a correction's turn, too (rule 8). `limit` names the setting that limits a budget.
    """

    name: StopReason
    stops: "Callable[[Case], bool]"
    guarded: bool = False
    bears_bad_reply: bool = False
    asked_again: bool = False
    limit: str | None = None


# -- when each gate stops --------------------------------------------------------------------------------


def is_waiting(case: "Case") -> bool:
    """Tell whether something else will wake the session: an answer, a peer, a subagent."""
    return case.waiting


def is_done(case: "Case") -> bool:
    """Tell whether nothing is open, no reply is owed, and no goal is unmet."""
    return not (case.open or case.owed or case.unmet)


def is_blocked(case: "Case") -> bool:
    """Tell whether nothing is open because the model gave something up in this activation."""
    return is_done(case) and case.gave_up


def is_settled(case: "Case") -> bool:
    """Tell whether nothing is open and the list was written in this activation."""
    return is_done(case) and case.wrote


def gives_word_back(case: "Case") -> bool:
    """Tell whether, with something open, a person or a subagent has to speak first."""
    return bool(case.open or case.unmet) and case.awaited is not None


def is_disabled(case: "Case") -> bool:
    """Tell whether nothing ever wakes: it is switched off, or the budget is 0."""
    return not (case.settings.auto_continue and case.settings.max_wake_cycles)


def is_draining(case: "Case") -> bool:
    """Tell whether the process was asked to stop."""
    return case.drained


def is_near_step_limit(case: "Case") -> bool:
    """Tell whether too few supersteps are left for one more turn."""
    return case.steps_left < case.costs.wake


def has_no_wakes_left(case: "Case") -> bool:
    """Tell whether the activation's wakes are spent."""
    return case.wakes >= case.budget


def repeats_reply(case: "Case") -> bool:
    """Tell whether the model gave the same text over the same list as at the last wake."""
    return case.settings.stop_on_repeat and case.repeated


def is_stalled(case: "Case") -> bool:
    """Tell whether too many wakes in a row made no progress."""
    limit = case.settings.max_idle_wakes
    return 0 < limit <= case.idle_wakes


def _budget_gate(name: Budget, limit: str) -> Gate:
    """Return the gate of one budget of rule 19; which of them is spent is counted elsewhere."""
    return Gate(
        name=name,
        stops=lambda case: case.spent_budget == name,
        sentence=f"Out of budget with {{open}} open: {limit} of this activation is spent.",
        meaning=f"`{limit}` is reached (rule 19)",
        limit=limit,
    )


# -- the records -----------------------------------------------------------------------------------------

WAITING = Gate(
    name="waiting",
    stops=is_waiting,
    sentence="Waiting for {on}.",
    meaning="`waiting_on` is not empty",
    asked_again=True,
    state="waiting",
    exit_code_open=ExitCode.WAITING,
    exit_code=ExitCode.WAITING,
)

GATES = (  # in the order in which they are asked
    WAITING,
    Gate(
        name="blocked",
        stops=is_blocked,
        sentence="Blocked: {open} open, {completed} completed, {blocked} blocked, {cancelled} cancelled.",
        meaning="nothing is open, but the model blocked an item in this activation, or gave up one that the "
        "verifier had refused (rule 21)",
        state="dormant",
        exit_code=ExitCode.OPEN,
        done=True,
        asked_again=True,
    ),
    Gate(
        name="settled",
        stops=is_settled,
        sentence="Settled: nothing on the list is open.",
        meaning="nothing is open, and the list was written in this activation (rule 21)",
        state="dormant",
        exit_code=ExitCode.SETTLED,
        done=True,
        asked_again=True,
        needs_proof=True,
    ),
    Gate(
        name="answered",
        stops=is_done,
        sentence="Answered: nothing is open, and nothing was written to the list.",
        meaning="nothing is open, and nothing was written to the list in this activation (rule 21)",
        state="dormant",
        exit_code=ExitCode.SETTLED,
        done=True,
        asked_again=True,
        needs_proof=True,
    ),
    replace(
        WAITING,
        stops=gives_word_back,
        meaning="with items open: the model asked, or a wake's turn made no call after a question or a new "
        "message (rule 26), or while a subagent is at work",
        asked_again=False,
    ),
    Gate(
        name="disabled",
        stops=is_disabled,
        sentence="Idle with {open} open: it does not continue by itself (auto_continue off, or no budget).",
        meaning="`auto_continue` is off, or the budget is 0",
        guarded=True,
        bears_bad_reply=True,
    ),
    Gate(
        name="drained",
        stops=is_draining,
        sentence="Stopped with {open} open: the process was asked to stop.",
        meaning="the process was asked to stop",
        bears_bad_reply=True,
        after_goal=False,
    ),
    Gate(
        name="step_limit",
        stops=is_near_step_limit,
        sentence="Stopped with {open} open: the limit on supersteps was near.",
        meaning="fewer than 5 supersteps are left",
        bears_bad_reply=True,
        after_goal=False,
    ),
    _budget_gate("request_budget", "max_requests"),
    _budget_gate("token_budget", "max_tokens"),
    _budget_gate("cost_budget", "max_cost"),
    _budget_gate("time_budget", "max_seconds"),
    Gate(
        name="wake_budget",
        stops=has_no_wakes_left,
        sentence="Idle with {open} open: the {budget} of this activation {are} spent.",
        meaning="the wakes are spent",
        guarded=True,
        bears_bad_reply=True,
    ),
    Gate(
        name="repeated_reply",
        stops=repeats_reply,
        sentence="Idle with {open} open: the model repeated its reply, and the list is unchanged.",
        meaning="with `stop_on_repeat`: the same text over the same list as at the last wake",
        guarded=True,
        bears_bad_reply=True,
    ),
    Gate(
        name="stalled",
        stops=is_stalled,
        sentence="Idle with {open} open: several wakes in a row made no progress.",
        meaning="`max_idle_wakes` wakes in a row without progress",
        guarded=True,
        bears_bad_reply=True,
    ),
)

OTHER_ENDINGS = (  # decided elsewhere: in the middle of a turn, by a reply, by a tool, by other middleware
    Ending(
        name="looping",
        sentence="Going in circles with {open} open: no new result from {repeated}, several times in a row.",
        meaning="`max_idle_rounds` idle rounds in a row (rule 18)",
    ),
    Ending(
        name="guard_blocked",
        sentence="Idle with {open} open, even after a correction; the model's explanation is above.",
        meaning="the model explained what is left (rule 8)",
        after_goal=False,
    ),
    Ending(
        name="truncated",
        sentence="The model's replies were cut off every time, at the length limit or in a stream without a "
        "finish reason; {open} open.",
        meaning="cut off until the last retry (rule 14)",
    ),
    Ending(
        name="empty_reply",
        sentence="The model gave only empty replies; {open} open.",
        meaning="empty until the last retry (rule 14)",
    ),
    Ending(
        name="malformed_calls",
        sentence="The model's tool calls were malformed every time; {open} open.",
        meaning="malformed until the last retry (rule 14)",
    ),
    Ending(
        name="refused",
        sentence="The model refused, or its reply was filtered; its words are above, {open} open.",
        meaning="the model refused, or its reply was filtered (rule 14)",
        exit_code_open=ExitCode.FAILED,
        after_goal=False,
    ),
    Ending(
        name="handed_over",
        sentence="Handed over to a parent graph, {open} open.",
        meaning="a tool went to the parent (rule 15)",
        after_goal=False,
    ),
    Ending(
        name="ended_elsewhere",
        sentence="Other middleware, or a tool, ended the run with {open} open.",
        meaning="another middleware ended the run: a call limit, a guardrail "
        "([next to others](middleware.md#next-to-other-middleware))",
    ),
    Ending(
        name="goal_met",
        sentence="Done: the goal is met, {open} open.",
        meaning="code said that the goal is met, whatever is open (rule 24)",
        state="dormant",
        exit_code_open=ExitCode.SETTLED,
        exit_code=ExitCode.SETTLED,
        done=True,
        after_goal=False,
    ),
    Ending(
        name="context_full",
        sentence="The next request does not fit the model's context, whatever is cleared; {open} open. What "
        "helps: smaller results, a larger max_context, or an export and a new thread.",
        meaning="the request does not fit, whatever was cleared (rule 28)",
    ),
    Ending(
        name="failed",
        sentence="Failed with {open} open: {error}.",
        meaning="the last run raised, or its reply was written by no model (rules 21, 22)",
        state="failed",
        exit_code_open=ExitCode.FAILED,
        after_goal=False,
    ),
    Ending(
        name="interrupted",
        sentence="Waiting for your answer.",
        meaning="parked at an interrupt (rule 21)",
        state="waiting",
        exit_code_open=ExitCode.WAITING,
        exit_code=ExitCode.WAITING,
        after_goal=False,
    ),
    Ending(
        name="cancelled",
        sentence="Cancelled with {open} open, by a server or host.",
        meaning="a server or host cancelled the run (rule 21)",
        state="cancelled",
        exit_code_open=ExitCode.FAILED,
        after_goal=False,
    ),
)

ENDINGS: Mapping[str, Ending] = MappingProxyType({one.name: one for one in (*GATES, *OTHER_ENDINGS)})
GUARDED = frozenset(gate.name for gate in GATES if gate.guarded)
BEARS_BAD_REPLY = frozenset(gate.name for gate in GATES if gate.bears_bad_reply)
DONE = frozenset(one.name for one in ENDINGS.values() if one.done)
"""The endings of a run that had nothing left to do; the answer in the caller's format is asked for there."""
LIMITS: Mapping[str, str] = MappingProxyType({gate.name: gate.limit for gate in GATES if gate.limit})
"""The setting that limits each budget."""


def lacks_proof(session: Mapping[str, Any]) -> bool:
    """Tell whether a good ending is not proved: a verifier is given, and no item of the list passed it."""
    ending = ENDINGS.get(session.get("reason") or "")
    return ending is not None and ending.needs_proof and session.get("verified") is False


def choose_exit_code(session: Mapping[str, Any]) -> ExitCode:
    """Return the exit code for the session of a thread at rest."""
    if session["reason"] is None:
        return ExitCode.OPEN if session["open"] else ExitCode.SETTLED
    ending = ENDINGS.get(session["reason"])
    if ending is None:  # a damaged thread
        return ExitCode.OPEN if session["open"] else ExitCode.FAILED
    if lacks_proof(session):
        return ExitCode.OPEN
    is_open = session["open"] or session.get("state") == "idle"  # idle with nothing open: a goal is not met
    return ending.exit_code_open if is_open else ending.exit_code


def find_first_gate(case: "Case", *, after_correction: bool = False) -> StopReason | None:
    """Return the name of the first gate that stops the run; None where the graph wakes the model.

    Of all gates, or of those that are asked again after a correction's turn.
    """
    for gate in GATES:
        if (gate.asked_again or not after_correction) and gate.stops(case):
            return gate.name
    return None


def find_earlier_end(case: "Case") -> EndReason | None:
    """Return what has ended the run already.

    Where that happened in the middle of a turn, a session that waits for somebody is `waiting` all the same:
    the answer will wake it.
    """
    asks_again = case.end is None and case.again is not None and case.asking != "explain"
    reason = case.spent_budget if asks_again else case.end
    in_mid_turn = reason in LIMITS or reason == "looping"
    return "waiting" if in_mid_turn and case.waiting else reason


def find_stop(case: "Case") -> EndReason | None:
    """Return why the run would end without the guard; None if it would wake.

    After a correction's turn only the gates that say so and a spent budget are asked again: else the gate
    that called the guard has answered already.
    """
    if case.called_by is None:
        return find_first_gate(case)
    return find_first_gate(case, after_correction=True) or case.spent_budget or case.called_by
