"""The one schema of custom stream events.

Every event is a plain dict with a `type`; `graph.stream(..., stream_mode="custom")` yields them.
"""

from typing import Literal, NotRequired

from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.todos.items import Todo

Budget = Literal["request_budget", "token_budget", "cost_budget", "time_budget"]
"""The budgets of an activation; if several are spent, the first of these is the reason."""
StopReason = Literal[
    "waiting",
    "blocked",
    "settled",
    "answered",
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
    "goal_met",
    "context_full",
    "failed",
    "interrupted",
    "cancelled",
]
"""How a run ends: a gate, or something else. Each has its record in `loop/gates.py`; a test compares."""


GoalState = Literal["due", "unmet", "met", "impossible", "wait"]
"""What is known of a goal that code checks; `due` until it is asked for."""
WaitKind = Literal["human", "approval", "peer", "subagent", "work", "limit", "condition", "hold"]
"""What a session waits for."""
State = Literal["running", "idle", "dormant", "waiting", "failed", "cancelled"]
"""The state of a thread."""


class RequestSpending(TypedDict):
    """What one request and its reply took: tokens (`cached` is part of `input`), cost, seconds.

    `cost` is None without a price; `estimated` means that the reply did not report its tokens.
    """

    input: int
    cached: int
    output: int
    cost: float | None
    seconds: float
    estimated: bool


class ActivationSpending(RequestSpending):
    """What an activation has spent: the number of requests, and what they took together.

    `cost` is None before the first request, too. `failed_calls` counts calls outside the todo tools that
    ended in an error.
    """

    requests: int
    failed_calls: int


class Session(TypedDict, total=False):
    """The state of a thread: the value of the channel `todo_session`.

    `state` is `running`, `idle`, `dormant`, `waiting`, `failed` or `cancelled`. `reason` names the gate or
    ending, and is None while running. `items` counts the list, `open`, `completed`, `cancelled` and `blocked`
    its items of these kinds; `wakes` and `budget` are counts, too. `list` is the number of the list, which
    rises with every write of it. None of them is there while running. `spent` is what the activation has
    spent. `verified` is there only where a verifier was given: whether an item of the list passed it.
    `repeated` is there only at `looping`: the calls that brought nothing new. `on` is there only while
    waiting: a `WaitKind`. `until` is there only if it is known from when it makes sense to try again, in
    seconds since 1970. `question` is there only while it waits with a question that the model asked in words,
    `error` only if `session_of` reads a thread whose last input was refused, or whose last run raised.

    >>> from wakeloop import create_todo_agent
    >>> from wakeloop.testing import ScriptedModel
    >>> out = create_todo_agent(ScriptedModel(["Hello."])).invoke({"messages": [("user", "Hi.")]})
    >>> out["todo_session"]["state"], out["todo_session"]["reason"]
    ('dormant', 'answered')
    """

    state: State
    reason: str | None
    open: int
    completed: int
    cancelled: int
    blocked: int
    wakes: int
    budget: int
    list: int
    items: int
    spent: ActivationSpending
    verified: bool
    missing: str
    repeated: str
    on: str
    until: float
    question: str
    error: str


class TimedEvent(TypedDict, total=False):
    """What every event carries: `at`, the time when it happened, in seconds since 1970."""

    at: float


class ActivatedEvent(TimedEvent):
    """An activation began. `sources` names what started it (`human`, `kick`, `cron`, ...)."""

    type: Literal["activated"]
    open: int
    budget: int
    sources: list[str]


class TodosEvent(TimedEvent):
    """The list was written. The event holds the whole list, and the ids that changed or are gone.

    `overruled` is there only if a tool wrote the list in the round of a todo call, and both changed these
    items: the todo call has won.
    """

    type: Literal["todos"]
    todos: list[Todo]
    changed: list[int | str]
    overruled: NotRequired[list[int | str]]


class EchoEvent(TimedEvent):
    """An input carried the list as it was before its newest write, so the thread kept its own.

    `list` is the number of the thread's list, `given` that of the input's.
    """

    type: Literal["echo"]
    list: int
    given: int


class WokenEvent(TimedEvent):
    """The graph wakes the model by itself: wake `cycle` of at most `budget`, with `open` items."""

    type: Literal["wake"]
    cycle: int
    budget: int
    open: int
    reasons: list[str]


class SteeredEvent(TimedEvent):
    """The graph took an entry that `steer` stored; with an `error`, its edits did not fit the list."""

    type: Literal["steered"]
    id: str
    error: NotRequired[str]


class NagEvent(TimedEvent):
    """A reminder was added to the last tool result, after so many rounds without a todo write."""

    type: Literal["nag"]
    rounds: int
    open: int


class GuardEvent(TimedEvent):
    """Before an end for `reason` the guard asks for a correction, a last word, a list, or a check of it."""

    type: Literal["guard"]
    action: Literal["correct", "explain", "report", "ask", "audit"]
    retry: int
    retries: int
    open: int
    reason: str


class VerifyEvent(TimedEvent):
    """The verifier ruled on one item that was about to be completed."""

    type: Literal["verify"]
    id: int | str
    content: str
    accepted: bool
    reason: str | None
    refusals: int


class GoalEvent(TimedEvent):
    """`done_when` was asked: its verdict, and what is missing or awaited; "" where the goal is met."""

    type: Literal["goal"]
    verdict: Literal["met", "unmet", "impossible", "wait"]
    reason: str


class SpentEvent(TimedEvent):
    """A reply came: what the activation has spent so far, and the budget nearest to its end.

    `exchange` is what this request took. `context` is the share of the model's window that it filled, if the
    window is known. `nearest` is `requests`, `tokens`, `cost` or `seconds`, or None
    without a limit; `share` is how much of it is spent; `budget` is the most wakes at this moment.
    """

    type: Literal["spent"]
    exchange: RequestSpending
    spent: ActivationSpending
    nearest: str | None
    share: float
    budget: int
    context: NotRequired[float]


class ClearedEvent(TimedEvent):
    """Old results or rounds left the requests, because the model's window was nearly full (rule 28).

    `before` and `after` are the estimated tokens of the request, `window` those that it may have.
    """

    type: Literal["cleared"]
    before: int
    after: int
    window: int


class RetriedEvent(TimedEvent):
    """The command line's client sends a request again: how often so far, and the status of the answer."""

    type: Literal["retried"]
    retry: int
    status: int | None


class ParkedEvent(TimedEvent):
    """The run ended; the session says how and why."""

    type: Literal["parked"]
    session: Session


Event = (
    ActivatedEvent
    | TodosEvent
    | EchoEvent
    | WokenEvent
    | SteeredEvent
    | NagEvent
    | GuardEvent
    | VerifyEvent
    | GoalEvent
    | SpentEvent
    | ClearedEvent
    | RetriedEvent
    | ParkedEvent
)
