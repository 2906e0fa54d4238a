"""Checks the message order that strict servers require."""

from collections.abc import Iterable, Iterator
from operator import itemgetter

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
    """Return every breach of the wire order (rule 13 of docs/rules.md), `[]` for a legal history.

    A breach is a string such as `"request 3, message 5: …"`; both numbers are indices, counted from 0.
    `requests` are lists of messages, such as `ScriptedModel.requests`, or of dicts in OpenAI's format.

    - At most one system message, at index 0.
    - Each call has an id that is unique in the request, and one result, directly after its message. There are
      no other results, and no user message follows a result.
    - Assistant messages never follow each other, are not empty, don't end the request, and have no
      `invalid_tool_calls`. User messages are not empty.
    - Names have at most 64 letters, digits, `_` and `-`; ids at most 40 characters.
    - Content blocks have the calls of `tool_calls` and no others; a call of a provider's own tool has its
      result. The older `function_call` is not used.

    Two user messages in a row are allowed, and so is a request without a system message.

    Example:
        >>> wire_faults([[{"role": "user", "content": "Hi"}]])
        []
    """
    faults = []
    for number, messages in number_requests(requests):
        for place, fault in sorted(_RequestReader().faults(messages), key=itemgetter(0)):
            faults.append(f"request {number}, message {place}: {fault}")
    return faults


class _RequestReader:
    """One pass over a request; keeps what the messages so far leave open."""

    def __init__(self) -> None:
        self.before = ""
        self.caller = 0
        self.open: dict[str, str] = {}
        self.answered: set[str] = set()
        self.used: set[str] = set()
        self.systems = 0

    def faults(self, messages: list[BaseMessage]) -> Iterator[tuple[int, str]]:
        """Yield the faults as (index of the message, sentence)."""
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
