"""What a ruling reads: one case of plain values."""

from dataclasses import dataclass
from typing import Literal

from wakeloop.settings import LoopSettings
from wakeloop.stream import Budget, EndReason, GoalState


@dataclass(frozen=True, slots=True)
class Costs:
    """Supersteps that must be left for what may follow.

    A node that sees none left makes LangGraph raise, whatever the node does. So the graph ends by itself
    while a few are left.
    """

    wake: int = 5  # guard, wake, call_model, a round, guard
    correction: int = 4  # guard, call_model, a round, guard
    round: int = 6  # call_model, its round, a nag, call_model, a round, guard
    request: int = 3  # guard, call_model without tools, guard


GRAPH = Costs()
APPROVAL_STEPS = 2  # a person approves the list, then the calls that waited for it run
REVIEW_STEPS = 1  # the calls that a person has decided together run one superstep later


def choose_costs(settings: LoopSettings, *, reviews: bool = False) -> Costs:
    """Return what the graph needs under these settings; `reviews` if a person may decide calls together."""
    more = (settings.approve_plan != "off") * APPROVAL_STEPS + reviews * REVIEW_STEPS
    # open items are judged after each round, in a superstep of its own; two rounds may follow a request
    judged = settings.verify_when == "round"
    return Costs(
        wake=GRAPH.wake + more + judged,
        correction=GRAPH.correction + more + judged,
        round=GRAPH.round + more + 2 * judged,
    )


def compute_hook_costs(hooks: int, end_hooks: int) -> Costs:
    """Return the costs in `create_agent`, where a round takes three supersteps: request, hook, tools.

    `hooks` counts the supersteps of other middleware around each request, `end_hooks` those at a run's end.
    """
    turn = 2 + hooks
    round_ = turn + 1
    end = end_hooks + 1
    both = turn + round_ + end
    return Costs(wake=both, correction=both, round=2 * round_ + end, request=turn + end)


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that a ruling reads, as plain values.

    Counts of this activation: `wakes`, `idle_wakes` (in a row), `retries` (corrections), and `earned`, the
    wakes beyond `max_wake_cycles`. `steps_left` counts supersteps, `open` items.

    `goal` is what is known of a goal that code checks; it was `judged` if it was asked for in this turn.
    `awaited` is for whom the run waits with something open (gate 6). A person's words were `steered` in
    meanwhile; on hold, and while an approval waits (`closed`), none are taken.

    In this activation a write of the list was accepted (`wrote`), and the model `gave_up` an item (rule 21).

    The progress of the run: `end` has ended it already; `again` says why the reply is requested again;
    `bad_reply_end` is what a turn ended as whose last reply was one bad reply too many; `asking` is what an
    extra request was for; `called_by` is the reason that called the guard; `spent_budget` is the budget that
    is used up; `reported` means that the closing request was made; `unformatted` that a format is still to be
    requested; `lacks_list` that tools ran without a list and nobody asked about that yet; `suspects` counts
    the items that were completed without the work being seen, as long as nobody asked about them.
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
    bad_reply_end: EndReason | None = None
    asking: str | None = None
    called_by: EndReason | None = None
    retries: int = 0
    suppressed: bool = False
    unformatted: bool = False
    spent_budget: Budget | None = None
    reported: bool = False
    costs: Costs = GRAPH
    earned: int = 0
    lacks_list: bool = False
    goal: GoalState | None = None
    judged: bool = False
    awaited: Literal["human", "subagent"] | None = None
    steered: bool = False
    closed: bool = False
    suspects: int = 0
    wrote: bool = False
    gave_up: bool = False

    @property
    def unmet(self) -> bool:
        """Whether the goal counts as open (rule 24)."""
        return self.goal in ("due", "unmet")

    @property
    def budget(self) -> int:
        """The most wakes at this moment (rule 2)."""
        return self.settings.max_wake_cycles + self.earned
