"""The static prompt: each request begins with the last."""

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

_EXCERPT = 20


def prompt_faults(requests: Iterable[Request]) -> list[str]:
    """Return every breach of the static prompt, as `"request 3, message 5: …"`; `[]` if there is none.

    It is rule 11 of docs/rules.md.

    `requests` are those of one thread, in order: lists of messages or of dicts in OpenAI's format. The
    numbers are indices, counted from 0. Asked for: one system message, at index 0, with the same text as in
    the request before; then all other messages of the request before, in their order, with the same role,
    content, calls (name, arguments, id) and answered ids. Each request is compared with the one before it, so
    a change is reported once, and of a broken prefix only the first difference.

    Example:
        >>> system, question = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}
        >>> prompt_faults([[system, question]])
        []
    """
    reading = _PromptReader()
    return [
        f"request {number}, message {place}: {fault}"
        for number, messages in number_requests(requests)
        for place, fault in reading.faults(number, messages)
    ]


class _PromptReader:
    """What the requests so far have shown: the system prompt and the conversation."""

    def __init__(self) -> None:
        self.system: BaseMessage | None = None
        self.said: list[BaseMessage] = []

    def faults(self, number: int, messages: list[BaseMessage]) -> Iterator[tuple[int, str]]:
        """The faults of the next request as (index of the message, sentence)."""
        systems = [place for place, message in enumerate(messages) if role_of(message) == "system"]
        said = [place for place, message in enumerate(messages) if role_of(message) != "system"]
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
    """What a server's cache sees of a message."""
    made = [(call["name"], call["args"], call["id"]) for call in calls_of(message)]
    broken = [(call["name"], call["args"], call["id"]) for call in malformed_of(message)]
    answered = message.tool_call_id if isinstance(message, ToolMessage) else None
    return role_of(message), message.content, made, broken, answered


def _describe_change(old: BaseMessage, new: BaseMessage) -> str:
    was, now = str(old.content), str(new.content)
    at = next((i for i, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), min(len(was), len(now)))
    return f"from character {at}: was {was[at : at + _EXCERPT]!r}, is {now[at : at + _EXCERPT]!r}"
