"""Checks requests as strict servers and caches do."""

import re
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from wakeloop.testing.captured_requests import (
    Request,
    calls_of,
    common_length,
    describe_message,
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


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_USER_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
_LONGEST_ID = 40
_ID_KEYS = {  # where a block of this type has its call's id
    "tool_use": "id",
    "tool_call": "id",
    "invalid_tool_call": "id",
    "tool_call_chunk": "id",
    "function_call": "call_id",
    "custom_tool_call": "call_id",
    **dict.fromkeys(("computer_call", "local_shell_call", "shell_call", "apply_patch_call"), "call_id"),
}
_SERVER_TOOL_CALLS = ("server_tool_use", "mcp_tool_use", "server_tool_call")


def user_faults(message: BaseMessage) -> Iterator[str]:
    """Yield the faults of a user message: it is empty, or it contains tool results."""
    kinds = [block.get("type") for block in _blocks_of(message)]
    if "tool_result" in kinds or "function_call_output" in kinds:
        yield "a tool's result in a user's message"
    elif is_blank(message) and kinds.count("text") == len(kinds):
        yield "an empty user message"


def name_faults(message: BaseMessage) -> Iterator[str]:
    """Yield the faults in the name of the speaker, or of the tool that answers."""
    allowed = _NAME if isinstance(message, ToolMessage | AIMessage) else _USER_NAME
    if message.name and not allowed.fullmatch(message.name):
        yield f"the message's name {message.name!r} is not one that every server takes"


def call_faults(message: BaseMessage) -> Iterator[str]:
    """Yield the faults of an assistant's calls: names, ids, and calls left outside of `tool_calls`."""
    made = {call["id"]: call["name"] for call in calls_of(message)}
    for key, name in made.items():
        if not _NAME.fullmatch(name):
            yield f"the call {key!r} has the name {name!r}, which is not one that every server takes"
        if key and len(key) > _LONGEST_ID:
            yield f"the call id {key!r} has more than {_LONGEST_ID} characters"
    extra = message.additional_kwargs
    if "function_call" in extra or ("tool_calls" in extra and not made):
        yield "a call is left in additional_kwargs"
    if not isinstance(message, AIMessage):
        return
    if not made:
        yield from _server_tool_faults(message)
    for block in _blocks_of(message):
        if str(block.get("type")) in _ID_KEYS:
            yield from _block_faults(block, made)


def _blocks_of(message: BaseMessage) -> list[dict[str, Any]]:
    """Return the content blocks of a message; a plain string has none."""
    return [block for block in message.content if isinstance(block, dict)]


def _server_tool_faults(message: AIMessage) -> Iterator[str]:
    blocks = _blocks_of(message)
    ended = [block.get("tool_use_id") or block.get("tool_call_id") for block in blocks]
    for block in blocks:
        if block.get("type") in _SERVER_TOOL_CALLS and block.get("id") not in ended:
            yield f"the call {block.get('id')!r} of the provider's own tool has no result"


def _block_faults(block: dict[str, Any], made: dict[str | None, str]) -> Iterator[str]:
    key, name = block.get(_ID_KEYS[block["type"]]), block.get("name")
    if not isinstance(key, str | None) or key not in made:
        yield f"a block holds the call {key!r} of {name!r}, which is not among the message's calls"
    elif made.pop(key) != name:
        yield f"the block of the call {key!r} has another name: {name!r}"


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
