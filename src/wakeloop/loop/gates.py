"""Gates and endings: each way a run ends, as one record."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
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


@dataclass(frozen=True, slots=True)
class Ending:
    """Everything that is declared about one way in which a run ends.

    `sentence` is for people; its blanks are `open`, `completed`, `cancelled`, `blocked`, `budget`, `are`,
    `on` and `error`. `state` is the session's; an idle session with nothing open is dormant. `exit_codes` are
    for a list with open items, and for one without. `done`: there is nothing left to do, so the answer is
    asked for in the caller's format. `needs_proof`: where a verifier was given and accepted no item of the
    list, the exit code is that of an open list. `after_goal`: a goal that code checks is asked for before the
    run ends so (rule 24).
    """

    name: EndReason
    sentence: str
    _: KW_ONLY
    state: State = "idle"
    exit_codes: tuple[ExitCode, ExitCode] = (ExitCode.OPEN, ExitCode.FAILED)
    done: bool = False
    needs_proof: bool = False
    after_goal: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate(Ending):
    """An ending decided at the end of a turn, where `stops` holds.

    `guarded`: with items open the guard may first ask for a correction. `bears_bad_reply`: where the turn
    ended with one bad reply too many, the run ends with that reply's reason instead. `asked_again`: it is
    asked after a correction's turn, too (rule 8). `limit` names the setting that limits a budget.
    """

    stops: "Callable[[Case], bool]"
    guarded: bool = False
    bears_bad_reply: bool = False
    asked_again: bool = False
    limit: str | None = None


# -- when gates stop -------------------------------------------------------------------------------------


def is_done(case: "Case") -> bool:
    """Tell whether nothing is open, no reply is owed, and no goal is unmet."""
    return not (case.open or case.owed or case.unmet)


def gives_word_back(case: "Case") -> bool:
    """Tell whether, with something open, a person or a subagent has to speak first."""
    return bool(case.open or case.unmet) and case.awaited is not None


def is_disabled(case: "Case") -> bool:
    """Tell whether nothing ever wakes: it is switched off, or the budget is 0."""
    return not (case.settings.auto_continue and case.settings.max_wake_cycles)


def is_near_step_limit(case: "Case") -> bool:
    """Tell whether too few supersteps are left for one more turn."""
    return case.steps_left < case.costs.wake


def has_no_wakes_left(case: "Case") -> bool:
    """Tell whether the activation's wakes are spent."""
    return case.wakes >= case.budget


def is_stalled(case: "Case") -> bool:
    """Tell whether too many wakes in a row made no progress."""
    limit = case.settings.max_idle_wakes
    return 0 < limit <= case.idle_wakes


def _budget_gate(name: Budget, limit: str) -> Gate:
    """Return the gate of one budget of rule 19; which of them is spent is counted elsewhere."""
    sentence = f"Out of budget with {{open}} open: {limit} of this activation is spent."
    return Gate(name, sentence, stops=lambda case: case.spent_budget == name, limit=limit)


# -- the records -----------------------------------------------------------------------------------------

WAITING = Gate(
    "waiting",
    "Waiting for {on}.",
    stops=lambda case: case.waiting,  # something else will wake the session: an answer, a peer, a subagent
    asked_again=True,
    state="waiting",
    exit_codes=(ExitCode.WAITING, ExitCode.WAITING),
)
ANSWERED = Gate(
    "answered",
    "Answered: nothing is open, and nothing was written to the list.",
    stops=is_done,
    state="dormant",
    exit_codes=(ExitCode.OPEN, ExitCode.SETTLED),
    done=True,
    asked_again=True,
    needs_proof=True,
)

GATES = (  # in the order in which they are asked
    WAITING,
    replace(
        ANSWERED,
        name="blocked",
        sentence="Blocked: {open} open, {completed} completed, {blocked} blocked, {cancelled} cancelled.",
        stops=lambda case: is_done(case) and case.gave_up,
        exit_codes=(ExitCode.OPEN, ExitCode.OPEN),
        needs_proof=False,
    ),
    replace(
        ANSWERED,
        name="settled",
        sentence="Settled: nothing on the list is open.",
        stops=lambda case: is_done(case) and case.wrote,
    ),
    ANSWERED,
    replace(WAITING, stops=gives_word_back, asked_again=False),
    Gate(
        "disabled",
        "Idle with {open} open: it does not continue by itself (auto_continue off, or no budget).",
        stops=is_disabled,
        guarded=True,
        bears_bad_reply=True,
    ),
    Gate(
        "drained",
        "Stopped with {open} open: the process was asked to stop.",
        stops=lambda case: case.drained,
        bears_bad_reply=True,
        after_goal=False,
    ),
    Gate(
        "step_limit",
        "Stopped with {open} open: the limit on supersteps was near.",
        stops=is_near_step_limit,
        bears_bad_reply=True,
        after_goal=False,
    ),
    _budget_gate("request_budget", "max_requests"),
    _budget_gate("token_budget", "max_tokens"),
    _budget_gate("cost_budget", "max_cost"),
    _budget_gate("time_budget", "max_seconds"),
    Gate(
        "wake_budget",
        "Idle with {open} open: the {budget} of this activation {are} spent.",
        stops=has_no_wakes_left,
        guarded=True,
        bears_bad_reply=True,
    ),
    Gate(
        "repeated_reply",
        "Idle with {open} open: the model repeated its reply, and the list is unchanged.",
        stops=lambda case: case.settings.stop_on_repeat and case.repeated,
        guarded=True,
        bears_bad_reply=True,
    ),
    Gate(
        "stalled",
        "Idle with {open} open: several wakes in a row made no progress.",
        stops=is_stalled,
        guarded=True,
        bears_bad_reply=True,
    ),
)

OTHER_ENDINGS = (  # decided elsewhere: in the middle of a turn, by a reply, by a tool, by other middleware
    Ending(
        "looping", "Going in circles with {open} open: no new result from {repeated}, several times in a row."
    ),
    Ending(
        "guard_blocked",
        "Idle with {open} open, even after a correction; the model's explanation is above.",
        after_goal=False,
    ),
    Ending(
        "truncated",
        "The model's replies were cut off every time, at the length limit or in a stream without a finish "
        "reason; {open} open.",
    ),
    Ending("empty_reply", "The model gave only empty replies; {open} open."),
    Ending("malformed_calls", "The model's tool calls were malformed every time; {open} open."),
    Ending(
        "refused",
        "The model refused, or its reply was filtered; its words are above, {open} open.",
        exit_codes=(ExitCode.FAILED, ExitCode.FAILED),
        after_goal=False,
    ),
    Ending("handed_over", "Handed over to a parent graph, {open} open.", after_goal=False),
    Ending("ended_elsewhere", "Other middleware, or a tool, ended the run with {open} open."),
    Ending(
        "goal_met",
        "Done: the goal is met, {open} open.",
        state="dormant",
        exit_codes=(ExitCode.SETTLED, ExitCode.SETTLED),
        done=True,
        after_goal=False,
    ),
    Ending(
        "context_full",
        "The next request does not fit the model's context, whatever is cleared; {open} open. What helps: "
        "smaller results, a larger max_context, or an export and a new thread.",
    ),
    Ending(
        "failed",
        "Failed with {open} open: {error}.",
        state="failed",
        exit_codes=(ExitCode.FAILED, ExitCode.FAILED),
        after_goal=False,
    ),
    Ending(
        "interrupted",
        "Waiting for your answer.",
        state="waiting",
        exit_codes=(ExitCode.WAITING, ExitCode.WAITING),
        after_goal=False,
    ),
    Ending(
        "cancelled",
        "Cancelled with {open} open, by a server or host.",
        state="cancelled",
        exit_codes=(ExitCode.FAILED, ExitCode.FAILED),
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
    ending = ENDINGS.get(session["reason"] or "")
    if ending is None:  # no run has ended yet; other reasons are those of a damaged thread
        at_rest = ExitCode.FAILED if session["reason"] else ExitCode.SETTLED
        return ExitCode.OPEN if session["open"] else at_rest
    if lacks_proof(session):
        return ExitCode.OPEN
    is_open = session["open"] or session.get("state") == "idle"  # idle with nothing open: a goal is not met
    return ending.exit_codes[0 if is_open else 1]


def find_first_gate(case: "Case", *, after_correction: bool = False) -> StopReason | None:
    """Return the name of the first gate that stops the run; None where the graph wakes the model.

    Of all gates, or of those that are asked again after a correction's turn.
    """
    for gate in GATES:
        if (gate.asked_again or not after_correction) and gate.stops(case):
            return gate.name  # type: ignore[return-value]  # a gate has no other name
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
