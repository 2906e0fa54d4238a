"""Timeline: a thread's items, moments and requests.

Plain values for the report; times are in seconds since 1970.
"""

from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage

from wakeloop.todos.items import Todo


@dataclass
class MessageEntry:
    """A message, when it came, and whether it was removed from the conversation later."""

    at: float
    message: BaseMessage
    gone: bool = False
    answers: "MessageEntry | None" = None  # for a tool result: the message with the call


@dataclass
class Moment:
    """An event on the timeline.

    `kind` is request, kick, event, wake, nag, guard, cleared, repair, question, failed, dropped, hand, gap or
    end.
    """

    at: float
    kind: str
    text: str = ""
    said: MessageEntry | None = None


@dataclass
class StatusSpan:
    """How long an item had a status; `end` is None if it still has it."""

    status: str
    start: float
    end: float | None = None


@dataclass
class ItemLane:
    """An item with its history; `gone` is when it was taken off the list."""

    todo: Todo
    spans: list[StatusSpan]
    refused: list[float] = field(default_factory=list)
    gone: float | None = None
    said: MessageEntry | None = None  # the message that wrote it last


@dataclass
class RequestUsage:
    """The usage of one request to the model; `cost` is None if its price is unknown."""

    at: float
    input: int
    cached: int
    output: int
    cost: float | None
    seconds: float


@dataclass
class SubagentSpan:
    """When a subagent, or another nested graph, was at work."""

    name: str
    start: float
    end: float | None = None


@dataclass
class Timeline:
    """All that the report shows of a thread."""

    thread: str
    began: float
    ended: float
    lanes: list[ItemLane]
    moments: list[Moment]
    said: list[MessageEntry]
    spends: list[RequestUsage]
    helpers: list[SubagentSpan]
    times: list[float]
    context: tuple[int, int] | None = None  # tokens of the last request, and of the model's window
