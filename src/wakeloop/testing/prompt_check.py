"""Checks that each request begins with the one before it."""

from collections.abc import Iterable, Iterator
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from wakeloop.testing.captured_requests import (
    Request,
    calls_of,
    describe_message,
    malformed_of,
    number_requests,
    role_of,
)
from wakeloop.testing.token_usage import common_length

_EXCERPT = 20


def prompt_faults(requests: Iterable[Request]) -> list[str]:
    """Return every breach of the static prompt (rule 11 of docs/rules.md), `[]` if all requests comply.

    A breach is a string such as `"request 3, message 5: …"`; both numbers are indices, counted from 0.
    `requests` are those of one thread, in order: lists of messages or of dicts in OpenAI's format.

    Each request must have one system message, at index 0, with the same text as in the request before. Then
    come all other messages of the request before, in the same order, with the same role, content, calls
    (name, arguments, id) and answered ids. Each request is compared with the one before it, so a change is
    reported once, and only the first difference of a broken prefix.

    Example:
        >>> system, question = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}
        >>> prompt_faults([[system, question]])
        []
    """
    reader = _PromptReader()
    faults = []
    for number, messages in number_requests(requests):
        for place, fault in reader.faults(number, messages):
            faults.append(f"request {number}, message {place}: {fault}")
    return faults


class _PromptReader:
    """Remembers the system prompt and the conversation of the request before."""

    def __init__(self) -> None:
        self.system: BaseMessage | None = None
        self.said: list[BaseMessage] = []

    def faults(self, number: int, messages: list[BaseMessage]) -> Iterator[tuple[int, str]]:
        """Yield the faults of the next request as (index of the message, sentence)."""
        systems, said = [], []
        for place, message in enumerate(messages):
            if role_of(message) == "system":
                systems.append(place)
            else:
                said.append(place)
        if not systems:
            yield 0, "no system message at index 0"
        for place in systems:
            if place:
                yield place, "a system message that is not at index 0"
        if systems:
            system = messages[systems[0]]
            if self.system is not None and self.system.content != system.content:
                yield systems[0], f"the system prompt has changed {_describe_change(self.system, system)}"
            self.system = system
        yield from self._difference(number, messages, said)
        self.said = [messages[place] for place in said]

    def _difference(
        self, number: int, messages: list[BaseMessage], said: list[int]
    ) -> Iterator[tuple[int, str]]:
        for old, place in zip(self.said, said, strict=False):
            new = messages[place]
            if old is not new and _wire_form(old) != _wire_form(new):
                was, now = describe_message(old), describe_message(new)
                yield place, f"not as in request {number - 1}: was {was}, is {now}"
                return
        if len(said) < len(self.said):
            dropped = describe_message(self.said[len(said)])
            yield len(messages), f"missing; request {number - 1} continues with {dropped}"


def _wire_form(message: BaseMessage) -> tuple[Any, ...]:
    """Return the parts of a message that a server's cache sees."""
    made = []
    for call in (*calls_of(message), *malformed_of(message)):
        made.append((call["name"], call["args"], call["id"]))
    answered = message.tool_call_id if isinstance(message, ToolMessage) else None
    return role_of(message), message.content, made, answered


def _describe_change(old: BaseMessage, new: BaseMessage) -> str:
    was, now = str(old.content), str(new.content)
    at = common_length(was, now)
    return f"from character {at}: was {was[at : at + _EXCERPT]!r}, is {now[at : at + _EXCERPT]!r}"
