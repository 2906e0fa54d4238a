"""What the model is sent: the legal order of messages.

Depends on the messages alone, so that each request begins with all of the one before it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from wakeloop.channels.conversation import Messages
from wakeloop.text.marks import KEY, mark, text_of


@dataclass(frozen=True, slots=True)
class Lines:
    """The package's words for what is missing in a history."""

    unanswered: str
    broken_off: str
    empty_reply: str


def system_prompt(given: Sequence[BaseMessage], instructions: str) -> SystemMessage | None:
    """Join the caller's own prompt, the system messages at the head of a history, and the instructions."""
    head: list[BaseMessage] = []
    for message in given:
        if not _known(message, head):
            head.append(message)
    if not instructions and not head:
        return None
    if all(isinstance(m.content, str) for m in head):
        return SystemMessage(
            "\n\n".join([*(str(m.content) for m in head), *([instructions] if instructions else [])])
        )
    tail = [{"type": "text", "text": f"\n\n{instructions}"}] if instructions else []
    return SystemMessage([*(block for m in head for block in _blocks(m)), *tail])


def _known(message: BaseMessage, head: Iterable[BaseMessage]) -> bool:
    return any(text_of(message) == text_of(other) for other in head)


def legal(messages: Sequence[AnyMessage], head: Sequence[BaseMessage], lines: Lines) -> Sequence[AnyMessage]:
    """Return the messages in an order that every server takes, without the system prompt.

    `head` holds the system messages that the prompt is made of: the same text is left out, other system
    messages and other roles are sent as the user's. Each result goes behind its call, the first for a call
    counts; a call without one is answered; a closing line stands between a result and a user message;
    assistants in a row are joined; an empty assistant's message gets a placeholder.
    """
    if is_legal(messages):
        return messages
    wire: list[AnyMessage] = []
    for given, results in _with_results(messages):
        if isinstance(given, SystemMessage) and _known(given, head):
            continue
        ours = isinstance(given, HumanMessage | AIMessage)
        message = given if ours else HumanMessage(given.content, id=given.id)
        if isinstance(message, AIMessage):
            _add_assistant(wire, message, results, lines)
        else:
            if wire and isinstance(wire[-1], ToolMessage):
                wire.append(AIMessage(lines.broken_off, additional_kwargs=mark("repair")))
            wire.append(message)
    return wire


def is_legal(messages: Sequence[Any]) -> bool:
    """See in one pass that there is nothing to do, which is so in nearly every request.

    A history that remembers how far it is sound is read from there, so that a request costs its new tail.
    """
    sound = getattr(messages, "sound", 0)
    waiting: set[str | None] = set()
    last = messages[sound - 1].type if sound else "human"
    for message in islice(messages, sound, None):
        role = message.type
        if role == "tool":
            if message.tool_call_id not in waiting:
                return False
            waiting.discard(message.tool_call_id)
        elif waiting or role not in ("human", "ai") or (role == "human" and last == "tool"):
            return False
        elif role == "ai":
            calls = message.tool_calls
            waiting = {call["id"] for call in calls}
            if last == "ai" or None in waiting or len(waiting) < len(calls) or message.invalid_tool_calls:
                return False
            if not calls and (not message.content or not text_of(message)):
                return False
        last = role
    if waiting:
        return False
    if isinstance(messages, Messages):
        messages.sound = len(messages)
    return True


def _with_results(messages: Sequence[AnyMessage]) -> list[tuple[AnyMessage, dict[int, ToolMessage]]]:
    """Pair each message with the results of its calls by their place; strays and later ones are left out."""
    paired: list[tuple[AnyMessage, dict[int, ToolMessage]]] = []
    asked: dict[str | None, list[tuple[dict[int, ToolMessage], int]]] = {}
    for given in messages:
        if isinstance(given, ToolMessage):
            if slots := asked.get(given.tool_call_id):
                results, place = slots.pop(0)
                results[place] = given
            continue
        results = {}
        message = _without_invalid(given) if isinstance(given, AIMessage) else given
        if isinstance(message, AIMessage):
            for key in {call["id"] for call in message.tool_calls}:
                asked[key] = []
            for place, call in enumerate(message.tool_calls):
                asked[call["id"]].append((results, place))
        paired.append((message, results))
    return paired


def _without_invalid(message: AIMessage) -> AIMessage:
    """Turn calls that could not be parsed into calls without arguments: no server takes broken JSON back."""
    if not message.invalid_tool_calls:
        return message
    calls = [
        *message.tool_calls,
        *(
            {"name": c["name"] or "unknown", "args": {}, "id": c["id"], "type": "tool_call"}
            for c in message.invalid_tool_calls
        ),
    ]
    kept = {key: value for key, value in message.additional_kwargs.items() if key != "tool_calls"}
    return message.model_copy(
        update={"tool_calls": calls, "invalid_tool_calls": [], "additional_kwargs": kept}
    )


def _add_assistant(
    wire: list[AnyMessage], message: AIMessage, results: dict[int, ToolMessage], lines: Lines
) -> None:
    calls = message.tool_calls
    if not calls and not text_of(message):
        message = message.model_copy(update={"content": lines.empty_reply})
    if wire and isinstance(wire[-1], AIMessage):
        message = _joined(wire.pop(), message)  # type: ignore[arg-type]
    ids = _distinct([call["id"] for call in calls], message.id)
    if ids != [call["id"] for call in calls]:
        renamed = [{**call, "id": key} for call, key in zip(calls, ids, strict=True)]
        message = message.model_copy(update={"tool_calls": renamed})
    wire.append(message)
    # results keep their order in the history, so that a reminder in the last one is the last on the wire
    for place, result in results.items():
        same = result.tool_call_id == ids[place]
        wire.append(result if same else result.model_copy(update={"tool_call_id": ids[place]}))
    for place, call in enumerate(calls):
        if place not in results:
            wire.append(
                ToolMessage(
                    lines.unanswered, name=call["name"], tool_call_id=ids[place] or "", status="error"
                )
            )


def _distinct(ids: Sequence[str | None], prefix: str | None) -> list[str | None]:
    """Replace missing and repeated call ids, the same way in every request."""
    seen: set[str | None] = {None, ""}
    result: list[str | None] = []
    for place, key in enumerate(ids):
        new = key if key not in seen else f"call_{prefix or 'x'}_{place}"
        seen.add(new)
        result.append(new)
    return result


def _joined(first: AIMessage, second: AIMessage) -> AIMessage:
    """Join two assistant's messages in a row: the first has no calls, or its results would stand between."""
    if isinstance(first.content, str) and isinstance(second.content, str):
        content: str | list[str | dict[Any, Any]] = "\n\n".join(filter(None, (first.content, second.content)))
    else:
        content = [*_blocks(first), *_blocks(second)]
    kept = {key: value for key, value in second.additional_kwargs.items() if key != KEY}
    return second.model_copy(update={"content": content, "additional_kwargs": kept})


def _blocks(message: BaseMessage) -> list[str | dict[Any, Any]]:
    if isinstance(message.content, list):
        return message.content
    return [{"type": "text", "text": message.content}] if message.content else []
