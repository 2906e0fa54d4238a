"""What the model is sent: the legal order of messages.

Depends on the messages alone, so that each request begins with all of the one before it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from wakeloop.model.legality import is_legal
from wakeloop.model.storable_values import make_sendable
from wakeloop.model.tool_calls import (
    LONGEST_ID,
    Pair,
    calls_agree,
    derive_id,
    is_legal_name,
    legal_name,
    set_calls,
    with_legal_speaker,
)
from wakeloop.model.user_messages import repair_user_message
from wakeloop.text.characters import fix_surrogates
from wakeloop.text.marks import KEY, make_mark, text_of


@dataclass(frozen=True, slots=True)
class RepairTexts:
    """The package's words for what is missing in a history."""

    unanswered: str
    broken_off: str
    empty_reply: str


def join_system_prompt(given: Sequence[BaseMessage], instructions: str) -> SystemMessage | None:
    """Join the caller's own prompt, the system messages at the head of a history, and the instructions."""
    head: list[BaseMessage] = []
    for message in given:
        if not _is_in_head(message, head):
            head.append(message)
    if not instructions and not head:
        return None
    if all(isinstance(m.content, str) for m in head):
        texts = [*(str(m.content) for m in head), *([instructions] if instructions else [])]
        return SystemMessage(fix_surrogates("\n\n".join(texts)))
    tail = [{"type": "text", "text": f"\n\n{instructions}"}] if instructions else []
    return SystemMessage(fix_surrogates([*(block for m in head for block in _content_blocks(m)), *tail]))


def _is_in_head(message: BaseMessage, head: Iterable[BaseMessage]) -> bool:
    return any(text_of(message) == text_of(other) for other in head)


def make_legal(
    messages: Sequence[AnyMessage], head: Sequence[BaseMessage], lines: RepairTexts
) -> Sequence[AnyMessage]:
    """Return the messages in an order that every server takes, without the system prompt.

    `head` holds the system messages that the prompt is made of: the same text is left out, other system
    messages and other roles are sent as the user's. Each result goes behind its call, the first for a call
    counts; a call without one is answered; a closing line stands between a result and a user message;
    assistants in a row are joined; an empty assistant's message gets a placeholder. Names and ids of calls
    are legal and unique, and stand in blocks as they stand in `tool_calls`. Of all texts UTF-8 can be made.
    """
    if is_legal(messages):
        return messages
    wire: list[AnyMessage] = []
    taken: set[str] = set()
    for given, results in _pair_results([make_sendable(message) for message in messages]):  # type: ignore[misc]
        if isinstance(given, SystemMessage) and _is_in_head(given, head):
            continue
        ours = isinstance(given, HumanMessage | AIMessage)
        message: Any = with_legal_speaker(given) if ours else HumanMessage(given.content, id=given.id)
        if isinstance(message, AIMessage):
            _add_assistant(wire, message, results, lines, taken)
        else:
            if wire and isinstance(wire[-1], ToolMessage):
                wire.append(AIMessage(lines.broken_off, additional_kwargs=make_mark("repair")))
            wire.append(repair_user_message(message, lines.empty_reply))
    return wire


def _pair_results(messages: Sequence[AnyMessage]) -> list[tuple[AnyMessage, dict[int, ToolMessage]]]:
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
        message = _make_calls_legal(given) if isinstance(given, AIMessage) else given
        if isinstance(message, AIMessage):
            for key in {call["id"] for call in message.tool_calls}:
                asked[key] = []
            for place, call in enumerate(message.tool_calls):
                asked[call["id"]].append((results, place))
        paired.append((message, results))
    return paired


def _make_calls_legal(message: AIMessage) -> AIMessage:
    """Give calls legal names; those that could not be parsed are sent without arguments."""
    names = [call["name"] for call in message.tool_calls]
    if not message.invalid_tool_calls and calls_agree(message) and all(map(is_legal_name, names)):
        return message
    pairs: list[Pair] = [(call, {**call, "name": legal_name(call["name"])}) for call in message.tool_calls]
    for broken in message.invalid_tool_calls:
        call = ToolCall(name=legal_name(broken["name"]), args={}, id=broken["id"], type="tool_call")
        pairs.append((broken, call))
    return message.model_copy(update=set_calls(message, pairs))


def _add_assistant(
    wire: list[AnyMessage],
    message: AIMessage,
    results: dict[int, ToolMessage],
    lines: RepairTexts,
    taken: set[str],
) -> None:
    calls = message.tool_calls
    if not calls and not text_of(message):
        message = message.model_copy(update={"content": lines.empty_reply})
    ids = _make_ids_unique([call["id"] for call in calls], message.id or len(wire), taken)
    if ids != [call["id"] for call in calls]:
        pairs: list[Pair] = [(call, {**call, "id": key}) for call, key in zip(calls, ids, strict=True)]
        message = message.model_copy(update=set_calls(message, pairs))
    if wire and isinstance(wire[-1], AIMessage):
        message = _join_messages(wire.pop(), message)  # type: ignore[arg-type]
    wire.append(message)
    # results keep their order in the history, so that a reminder in the last one is the last on the wire
    for place, result in results.items():
        wire.append(_place_result(result, ids[place], message.tool_calls[place]["name"]))
    for place, call in enumerate(message.tool_calls):
        if place not in results:
            wire.append(
                ToolMessage(lines.unanswered, name=call["name"], tool_call_id=ids[place], status="error")
            )


def _place_result(result: ToolMessage, key: str, name: str) -> ToolMessage:
    """Return a result under its call's id, in the blocks of those who send their own too."""
    update: dict[str, Any] = {} if result.tool_call_id == key else {"tool_call_id": key}
    if result.name and not is_legal_name(result.name):
        update["name"] = name
    if update and isinstance(result.content, list):
        update["content"] = [
            {**part, "tool_use_id": key} if isinstance(part, dict) and "tool_use_id" in part else part
            for part in result.content
        ]
    return result.model_copy(update=update) if update else result


def _make_ids_unique(ids: Sequence[str | None], told: object, taken: set[str]) -> list[str]:
    """Replace ids that are missing, too long or in use, the same way in every request."""
    result: list[str] = []
    for place, key in enumerate(ids):
        new, turn = key or "", 0
        while not new or len(new) > LONGEST_ID or new in taken:
            new, turn = derive_id(told, place, turn), turn + 1
        taken.add(new)
        result.append(new)
    return result


def _join_messages(first: AIMessage, second: AIMessage) -> AIMessage:
    """Join two assistant's messages in a row: the first has no calls, or its results would stand between."""
    if isinstance(first.content, str) and isinstance(second.content, str):
        content: str | list[str | dict[Any, Any]] = "\n\n".join(filter(None, (first.content, second.content)))
    else:
        content = [*_content_blocks(first), *_content_blocks(second)]
    kept = {key: value for key, value in second.additional_kwargs.items() if key != KEY}
    return second.model_copy(update={"content": content, "additional_kwargs": kept})


def _content_blocks(message: BaseMessage) -> list[str | dict[Any, Any]]:
    if isinstance(message.content, list):
        return message.content
    return [{"type": "text", "text": message.content}] if message.content else []
