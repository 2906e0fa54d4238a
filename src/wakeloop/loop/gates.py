"""The reasons to stop, one small function each; pure."""

from dataclasses import dataclass
from typing import Literal

from wakeloop.settings import LoopSettings
from wakeloop.stream import BUDGETS, Budget, EndReason, StopReason


@dataclass(frozen=True, slots=True)
class Costs:
    """Supersteps that must be left for what may follow; a node that sees 0 left raises whatever it does."""

    wake: int = 5  # guard, wake, call_model, a round, guard
    correction: int = 4  # guard, call_model, a round, guard
    round: int = 6  # call_model, its round, a nag, call_model, a round, guard
    request: int = 3  # guard, call_model without tools, guard


GRAPH = Costs()
WITH_APPROVAL = Costs(
    wake=7, correction=6, round=8
)  # the list is put to a person, and what waited for it runs


def compute_hook_costs(hooks: int, ends: int) -> Costs:
    """Return the costs where a round is three supersteps: a request, what follows it, the tools.

    `hooks` are the supersteps of others around each request, `ends` those of a run's end.
    """
    turn, round_ = 2 + hooks, 3 + hooks  # up to what follows a reply; and with the tools
    return Costs(turn + round_ + ends + 1, turn + round_ + ends + 1, 2 * round_ + ends + 1, turn + ends + 1)


BORNE = frozenset(("disabled", "drained", "step_limit", "wake_budget", "repeated_reply", "stalled"))
"""The gates whose end bears a bad reply's reason, where its turn ended with one (rule 14)."""


@dataclass(frozen=True, slots=True)
class Case:
    """All that a ruling reads: plain values.

    `open` counts items, of `items` in all; `wakes`, `idle_wakes` and `retries` (corrections) are spent in
    this activation, `earned` are wakes beyond `max_wake_cycles`, `steps_left` are supersteps. `end` is what
    has ended the run already, `again` why the reply is asked again, `fell` what a turn ended as whose last
    reply was one bad one too many, `asking` what the last request was for where it was no ordinary one,
    `called_by` the reason that called the guard, `unformatted` whether a format is still to be asked for,
    `over` the budget that is spent, `reported` whether the activation's closing request was made, `listless`
    whether tools ran, no list was ever written, and nothing was asked about that yet.
    """

    open: int
    settings: LoopSettings
    wakes: int = 0
    idle_wakes: int = 0
    waiting: bool = False
    owed: bool = False
    drained: bool = False
    steps_left: int = 10_000
    repeated: bool = False
    end: EndReason | None = None
    again: str | None = None
    fell: EndReason | None = None
    asking: str | None = None
    called_by: EndReason | None = None
    retries: int = 0
    suppressed: bool = False
    unformatted: bool = False
    over: Budget | None = None
    reported: bool = False
    costs: Costs = GRAPH
    earned: int = 0
    listless: bool = False
    items: int = 0

    @property
    def budget(self) -> int:
        """The most wakes, as it stands (rule 2)."""
        return self.settings.max_wake_cycles + self.earned


def choose_costs(settings: LoopSettings) -> Costs:
    """Return what the graph needs under these settings."""
    return GRAPH if settings.approve_plan == "off" else WITH_APPROVAL


def waiting(case: Case) -> StopReason | None:
    """Parked on something that will wake it."""
    return "waiting" if case.waiting else None


def settled(case: Case) -> StopReason | None:
    """Nothing is open and no reply is owed."""
    return None if case.open or case.owed else "settled"


def disabled(case: Case) -> StopReason | None:
    """No re-entry is wanted, or the budget is 0."""
    return None if case.settings.auto_continue and case.settings.max_wake_cycles else "disabled"


def drained(case: Case) -> StopReason | None:
    """The process is asked to come to rest."""
    return "drained" if case.drained else None


def step_limit(case: Case) -> StopReason | None:
    """Too few supersteps are left for one more turn."""
    return "step_limit" if case.steps_left < case.costs.wake else None


def over_budget(case: Case) -> StopReason | None:
    """What the activation may spend is spent (rule 19)."""
    return case.over


def wake_budget(case: Case) -> StopReason | None:
    """The activation's wakes are spent."""
    return "wake_budget" if case.wakes >= case.budget else None


def repeated_reply(case: Case) -> StopReason | None:
    """The same text over the same list as at the last wake (loki)."""
    return "repeated_reply" if case.settings.stop_on_repeat and case.repeated else None


def stalled(case: Case) -> StopReason | None:
    """Too many wakes in a row without progress."""
    limit = case.settings.max_idle_wakes
    return "stalled" if limit and case.idle_wakes >= limit else None


def find_obstacle(case: Case, steps: int) -> StopReason | None:
    """Tell why not one more request may follow: a drain, fewer than `steps` left, or a spent budget."""
    if case.drained:
        return "drained"
    return "step_limit" if case.steps_left < steps else case.over


def find_earlier_end(case: Case) -> EndReason | None:
    """Return what has ended the run already; where that was in mid-turn, the first gate has a say."""
    asks = case.end is None and case.again is not None and case.asking != "explain"
    reason = case.over if asks else case.end
    return waiting(case) or reason if reason in BUDGETS or reason == "looping" else reason


def format_or_end(case: Case, reason: EndReason) -> Literal["format", EndReason]:
    """Ask for the answer in the caller's format where a run is settled."""
    if reason == "settled" and case.unformatted:
        return find_obstacle(case, case.costs.request) or "format"
    return reason


def may_ask(case: Case) -> bool:
    """Tell whether a turn's end without any list is asked what is left: before gate 2, and for no cycle."""
    left = case.listless and case.settings.auto_continue and not case.suppressed and not case.waiting
    return left and not find_obstacle(case, case.costs.correction)


def may_correct_loop(case: Case) -> bool:
    """Tell whether rounds that brought nothing are followed by a correction (rule 18)."""
    left = case.settings.auto_continue and case.retries < case.settings.guard_retries and not case.suppressed
    return left and bool(case.open) and not find_obstacle(case, case.costs.correction)


def may_report(case: Case) -> bool:
    """Tell whether the one closing request may follow the end by a budget."""
    wanted = case.settings.on_budget == "report" and case.settings.auto_continue and not case.reported
    return wanted and bool(case.open) and not case.drained and case.steps_left >= case.costs.request
