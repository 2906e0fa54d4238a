"""The order that strict servers ask of every request."""

from collections.abc import Iterable, Iterator

from langchain_core.messages import BaseMessage, ToolMessage

from wakeloop.testing.call_check import call_faults, name_faults, user_faults
from wakeloop.testing.captured_requests import (
    Request,
    calls_of,
    is_blank,
    malformed_of,
    number_requests,
    role_of,
)


def wire_faults(requests: Iterable[Request]) -> list[str]:
    """Return every breach of the wire order, as `"request 3, message 5: …"`; `[]` if there is none.

    It is rule 13 of docs/rules.md.

    `requests` are lists of messages, such as `ScriptedModel.requests`, or of dicts in OpenAI's format. The
    numbers are indices, counted from 0: `requests[3][5]`. Asked for: one system message at most, at index 0;
    every call with an id of its own in the whole request, answered once, directly after its message; no other
    results; no user message after a tool result; no two assistant messages in a row, none empty or at the
    end, none with `invalid_tool_calls`. Names are of 64 letters, digits, `_` and `-` at most, ids of 40
    characters; content blocks hold the calls of `tool_calls` and no others, and of a provider's own tool none
    without its result; no user says nothing; nothing is left of the older `function_call`. Two user messages
    in a row are legal, and so is a request without a system message.

    Example:
        >>> wire_faults([[{"role": "user", "content": "Hi"}]])
        []
    """
    return [
        f"request {number}, message {place}: {fault}"
        for number, messages in number_requests(requests)
        for place, fault in sorted(_RequestReader().faults(messages), key=lambda found: found[0])
    ]


class _RequestReader:
    """One pass over a request: what the message before it leaves behind."""

    def __init__(self) -> None:
        self.before = ""
        self.caller = 0
        self.open: dict[str, str] = {}
        self.answered: set[str] = set()
        self.used: set[str] = set()
        self.systems = 0

    def faults(self, messages: list[BaseMessage]) -> Iterator[tuple[int, str]]:
        """The faults as (index of the message, sentence)."""
        for place, message in enumerate(messages):
            role = role_of(message)
            if role != "tool":
                yield from self._close_calls()
            for fault in self._check(place, role, message):
                yield place, fault
            self.before = role
        yield from self._close_calls()
        if self.before == "assistant":
            yield len(messages) - 1, "the last message is the assistant's"

    def _check(self, place: int, role: str, message: BaseMessage) -> Iterator[str]:
        yield from name_faults(message)
        if role == "system":
            yield from self._system(place)
        elif role == "assistant":
            yield from self._assistant(place, message)
        elif isinstance(message, ToolMessage):
            yield from self._result(message)
        elif role == "user":
            yield from user_faults(message)
            if self.before == "tool":
                yield "a user message directly after a tool result"
        else:
            yield f"a message of the unknown role {role!r}"

    def _system(self, place: int) -> Iterator[str]:
        self.systems += 1
        if self.systems > 1:
            yield "more than one system message"
        elif place:
            yield "a system message that is not at index 0"

    def _assistant(self, place: int, message: BaseMessage) -> Iterator[str]:
        if self.before == "assistant":
            yield "two assistant messages in a row"
        made, broken = calls_of(message), malformed_of(message)
        for bad in broken:
            yield f"a malformed call of {bad['name']!r} left in the request"
        if not made and not broken and is_blank(message):
            yield "an empty assistant message"
        yield from call_faults(message)
        self.caller = place
        for call in made:
            key = call["id"]
            if not key:
                yield f"the call of {call['name']!r} has no id"
            elif key in self.used:
                yield f"the call id {key!r} is repeated"
            else:
                self.open[key] = call["name"]
                self.used.add(key)

    def _result(self, message: ToolMessage) -> Iterator[str]:
        key = message.tool_call_id
        if key in self.open:
            del self.open[key]
            self.answered.add(key)
        elif key in self.answered:
            yield f"a second result for the call {key!r}"
        else:
            yield f"a stray tool result: {key!r} is no call of the assistant message directly before"

    def _close_calls(self) -> Iterator[tuple[int, str]]:
        for key, name in self.open.items():
            yield self.caller, f"the call {key!r} of {name!r} is not answered directly after its message"
        self.open = {}
        self.answered = set()
