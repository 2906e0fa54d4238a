"""What a page shows of a thread: a lane an item, moments.

Plain values, seconds since 1970; nothing here knows of a page.
"""

from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage

from wakeloop.todos.items import Todo


@dataclass
class MessageEntry:
    """A message, when it came, and whether it was taken out of the conversation later."""

    at: float
    message: BaseMessage
    gone: bool = False
    answers: "MessageEntry | None" = None  # of a result: the message with its call


@dataclass
class Moment:
    """Something that happened.

    `kind` is request, kick, event, wake, nag, guard, repair, question, failed, dropped, hand, gap or end.
    """

    at: float
    kind: str
    text: str = ""
    said: MessageEntry | None = None


@dataclass
class StatusSpan:
    """How long an item had a status; `end` is None where it has it still."""

    status: str
    start: float
    end: float | None = None


@dataclass
class ItemLane:
    """One item: as it stands, or stood before it went away, and all that became of it."""

    todo: Todo
    spans: list[StatusSpan]
    refused: list[float] = field(default_factory=list)
    gone: float | None = None
    said: MessageEntry | None = None  # the message that wrote it last


@dataclass
class RequestUsage:
    """One request to the model: what it took; `cost` is None where it had no price."""

    at: float
    input: int
    cached: int
    output: int
    cost: float | None
    seconds: float


@dataclass
class SubagentSpan:
    """A subagent or another graph within: when it was at work."""

    name: str
    start: float
    end: float | None = None


@dataclass
class Timeline:
    """All that is shown of a thread."""

    thread: str
    began: float
    ended: float
    lanes: list[ItemLane]
    moments: list[Moment]
    said: list[MessageEntry]
    spends: list[RequestUsage]
    helpers: list[SubagentSpan]
    times: list[float]
