"""What a request's messages tell: who spoke, what calls got."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from wakeloop.text.marks import is_user_message, kind_of, split_result_text


@dataclass(frozen=True)
class Event:
    """One thing that happened: a person's or the graph's words, the model's text, or a call and its result.

    `mark` is the kind of a message of the graph. `state` is how a call ended; "unanswered" is one that a
    broken run left behind, which may or may not have run.
    """

    kind: Literal["person", "graph", "text", "call"]
    text: str
    mark: str = ""
    name: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    state: Literal["ok", "error", "unanswered"] = "ok"

    @property
    def answered(self) -> bool:
        """Whether this is a call that ran to its end, well or not."""
        return self.kind == "call" and self.state != "unanswered"


def events(messages: Sequence[BaseMessage]) -> list[Event]:
    """Everything that happened, in order; a call stands where it was made, with its result."""
    results: dict[str, ToolMessage] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            results.setdefault(message.tool_call_id, message)
    told: list[Event] = []
    for message in messages:
        mark = kind_of(message) or ""
        if isinstance(message, HumanMessage):
            told.append(Event("person" if is_user_message(message) else "graph", message.text, mark))
        elif isinstance(message, AIMessage) and message.tool_calls:
            told += [call_event(call, results.get(call["id"] or "")) for call in message.tool_calls]
        elif isinstance(message, AIMessage) and not mark:
            told.append(Event("text", message.text))
    return told


def call_event(call: Mapping[str, Any], result: ToolMessage | None) -> Event:
    """A call with its result, without what the graph has put behind it."""
    name, args = call["name"], call["args"]
    if result is None:
        return Event("call", "", name=name, args=args, state="unanswered")
    text, _ = split_result_text(result)
    if result.status != "error":
        return Event("call", text, name=name, args=args)
    # the mark says so where the graph stored the answer, the words where it only put it into a request
    broken = kind_of(result) == "repair" or "may or may not have run" in text or "the run broke off" in text
    state: Literal["error", "unanswered"] = "unanswered" if broken else "error"
    return Event(
        "call",
        text.removeprefix("Error: ").removeprefix("ToolException: "),
        name=name,
        args=args,
        state=state,
    )
