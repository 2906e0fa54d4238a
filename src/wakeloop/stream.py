"""The one schema of what is streamed as custom events.

Every event is a plain dict with a `type`; `graph.stream(..., stream_mode="custom")` yields them.
"""

from typing import Literal

from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.todos.items import Todo

Budget = Literal["request_budget", "token_budget", "cost_budget", "time_budget"]
"""What an activation may spend, in the order in which it is asked whether it is spent."""
StopReason = Literal[
    "waiting",
    "settled",
    "disabled",
    "drained",
    "step_limit",
    Budget,
    "wake_budget",
    "repeated_reply",
    "stalled",
]
EndReason = Literal[
    StopReason,
    "looping",
    "guard_blocked",
    "truncated",
    "empty_reply",
    "malformed_calls",
    "refused",
    "handed_over",
    "ended_elsewhere",
]
"""How a run ends: a gate, or something else. Each has its record in `loop/gates.py`; a test compares."""


class RequestSpending(TypedDict):
    """What one request and its reply took: tokens (`cached` is part of `input`), cost, seconds.

    `cost` is None where there is no price; `estimated` tells that the reply came without its tokens.
    """

    input: int
    cached: int
    output: int
    cost: float | None
    seconds: float
    estimated: bool


class ActivationSpending(RequestSpending):
    """What an activation has spent: requests, and what they took together.

    `cost` is None before the first, too; `failed_calls` counts calls outside the todo tools whose result was
    an error.
    """

    requests: int
    failed_calls: int


class Session(TypedDict, total=False):
    """How a thread stands: the value of the channel `todo_session`.

    `state` is `running`, `idle`, `dormant` or `waiting`; `reason` names the gate or ending, None while
    running; `open`, `wakes` and `budget` are numbers, and so are `items`, which the list has, and `list`,
    which every write of it raises; while running there are none. `spent` is what the activation has
    spent. `on` is there only while waiting (`human`, `peer`, `approval`, `subagent`), `error` only where
    `session_of` reads a thread whose last input was refused.
    """

    state: Literal["running", "idle", "dormant", "waiting"]
    reason: str | None
    open: int
    wakes: int
    budget: int
    list: int
    items: int
    spent: ActivationSpending
    on: str
    error: str


class TimedEvent(TypedDict, total=False):
    """What every event carries: `at`, when it happened, in seconds since 1970."""

    at: float


class ActivatedEvent(TimedEvent):
    """An activation began. `sources` names what woke it (`human`, `kick`, `cron`, ...)."""

    type: Literal["activated"]
    open: int
    budget: int
    sources: list[str]


class TodosEvent(TimedEvent):
    """The list was written: the whole list, and the ids that changed or went away."""

    type: Literal["todos"]
    todos: list[Todo]
    changed: list[int | str]


class EchoEvent(TimedEvent):
    """An input brought a list as it was before the newest write; the thread kept its own.

    `list` is the number of the thread's list, `given` that of the input's.
    """

    type: Literal["echo"]
    list: int
    given: int


class WokenEvent(TimedEvent):
    """The graph wakes itself: cycle 3 of a budget of 25, two items open."""

    type: Literal["wake"]
    cycle: int
    budget: int
    open: int
    reasons: list[str]


class NagEvent(TimedEvent):
    """A reminder went into the last tool result after so many rounds without a todo write."""

    type: Literal["nag"]
    rounds: int
    open: int


class GuardEvent(TimedEvent):
    """The guard asks for a correction, an explanation, a closing report or a list; else `reason` ends it."""

    type: Literal["guard"]
    action: Literal["correct", "explain", "report", "ask"]
    retry: int
    retries: int
    open: int
    reason: str


class VerifyEvent(TimedEvent):
    """The verifier ruled on one item that was to be completed."""

    type: Literal["verify"]
    id: int | str
    content: str
    accepted: bool
    reason: str | None
    refusals: int


class SpentEvent(TimedEvent):
    """A reply has come: what the activation has spent by now, and the budget nearest to its end.

    `exchange` is what this one took. `nearest` is `requests`, `tokens`, `cost` or `seconds`, None where
    nothing is bounded; `share` is the part of it that is spent; `budget` is the most wakes, as it stands.
    """

    type: Literal["spent"]
    exchange: RequestSpending
    spent: ActivationSpending
    nearest: str | None
    share: float
    budget: int


class RetriedEvent(TimedEvent):
    """The command line's client sends a request again: how often by now, and what was answered."""

    type: Literal["retried"]
    retry: int
    status: int | None


class ParkedEvent(TimedEvent):
    """The run has ended; the session says how and why."""

    type: Literal["parked"]
    session: Session


Event = (
    ActivatedEvent
    | TodosEvent
    | EchoEvent
    | WokenEvent
    | NagEvent
    | GuardEvent
    | VerifyEvent
    | SpentEvent
    | RetriedEvent
    | ParkedEvent
)
