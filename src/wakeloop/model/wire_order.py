"""Repairs a history into an order that servers accept.

The result depends on the messages alone, so that each request begins with all of the one before it.
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
    """The package's prompts that fill the gaps of a history."""

    unanswered: str
    broken_off: str
    no_text: str


def join_system_prompt(given: Sequence[BaseMessage], instructions: str) -> SystemMessage | None:
    r"""Join the caller's prompt, the system messages at the start of a history, and the instructions.

    >>> join_system_prompt([SystemMessage("Be brief."), SystemMessage("Be brief.")], "Use the list.").content
    'Be brief.\n\nUse the list.'
    """
    head: list[BaseMessage] = []
    for message in given:
        if not _is_in_head(message, head):
            head.append(message)
    if not instructions and not head:
        return None
    if all(isinstance(message.content, str) for message in head):
        texts = [str(message.content) for message in head]
        if instructions:
            texts.append(instructions)
        return SystemMessage(fix_surrogates("\n\n".join(texts)))
    blocks: list[str | dict[Any, Any]] = []
    for message in head:
        blocks += _content_blocks(message)
    if instructions:
        blocks.append({"type": "text", "text": f"\n\n{instructions}"})
    return SystemMessage(fix_surrogates(blocks))


def _is_in_head(message: BaseMessage, head: Iterable[BaseMessage]) -> bool:
    return any(text_of(message) == text_of(other) for other in head)


def make_legal(
    messages: Sequence[AnyMessage], head: Sequence[BaseMessage], texts: RepairTexts
) -> Sequence[AnyMessage]:
    """Return the messages in an order that every server accepts, without the system prompt.

    `head` are the system messages in the prompt. A message with the same text is left out; other system
    messages and unknown roles are sent as user messages.

    - Each result follows its call. Further results of a call are left out, and a call without one gets one.
    - Between a result and a user message comes an assistant's message.
    - Assistant messages in a row are joined, and an empty one gets a placeholder.
    - Names and ids of calls are legal and unique, and the same in blocks and in `tool_calls`.
    - All text can be encoded as UTF-8.
    """
    if is_legal(messages):
        return messages
    wire: list[AnyMessage] = []
    taken: set[str] = set()  # ids of calls
    sendable: Any = [make_sendable(message) for message in messages]
    for original, results in _pair_results(sendable):
        if isinstance(original, SystemMessage) and _is_in_head(original, head):
            continue
        if isinstance(original, AIMessage):
            message: Any = with_legal_speaker(original)
            _add_assistant(wire, message, results, texts, taken)
            continue
        message = HumanMessage(original.content, id=original.id)
        if isinstance(original, HumanMessage):
            message = with_legal_speaker(original)
        if wire and isinstance(wire[-1], ToolMessage):
            wire.append(AIMessage(texts.broken_off, additional_kwargs=make_mark("repair")))
        wire.append(repair_user_message(message, texts.no_text))
    return wire


def _pair_results(messages: Sequence[AnyMessage]) -> list[tuple[AnyMessage, dict[int, ToolMessage]]]:
    """Pair each message with the results of its calls, by the call's place; stray results are left out."""
    paired: list[tuple[AnyMessage, dict[int, ToolMessage]]] = []
    waiting: dict[str | None, list[tuple[dict[int, ToolMessage], int]]] = {}  # calls without a result, by id
    for original in messages:
        if isinstance(original, ToolMessage):
            slots = waiting.get(original.tool_call_id)
            if slots:
                results, place = slots.pop(0)
                results[place] = original
            continue
        results = {}
        message = _make_calls_legal(original) if isinstance(original, AIMessage) else original
        if isinstance(message, AIMessage):
            for call in message.tool_calls:  # an id that is used again is about the newer call
                waiting[call["id"]] = []
            for place, call in enumerate(message.tool_calls):
                waiting[call["id"]].append((results, place))
        paired.append((message, results))
    return paired


def _make_calls_legal(message: AIMessage) -> AIMessage:
    """Give calls legal names; those that could not be parsed are sent without arguments."""
    names = [call["name"] for call in message.tool_calls]
    if not message.invalid_tool_calls and calls_agree(message) and all(map(is_legal_name, names)):
        return message
    pairs: list[Pair] = [(call, {**call, "name": legal_name(call["name"])}) for call in message.tool_calls]
    for broken in message.invalid_tool_calls:
        legal = ToolCall(name=legal_name(broken["name"]), args={}, id=broken["id"], type="tool_call")
        pairs.append((broken, legal))
    return message.model_copy(update=set_calls(message, pairs))


def _add_assistant(
    wire: list[AnyMessage],
    message: AIMessage,
    results: dict[int, ToolMessage],
    texts: RepairTexts,
    taken: set[str],
) -> None:
    """Append an assistant's message with unique ids, and a result for each of its calls."""
    calls = message.tool_calls
    if not calls and not text_of(message):
        message = message.model_copy(update={"content": texts.no_text})
    ids = _make_ids_unique([call["id"] for call in calls], message.id or len(wire), taken)
    if ids != [call["id"] for call in calls]:
        pairs: list[Pair] = [(call, {**call, "id": key}) for call, key in zip(calls, ids, strict=True)]
        message = message.model_copy(update=set_calls(message, pairs))
    if wire and isinstance(wire[-1], AIMessage):
        message = _join_messages(wire.pop(), message)  # type: ignore[arg-type]
    wire.append(message)
    # results keep their order in the history, so that a reminder in the last one comes last
    for place, result in results.items():
        wire.append(_place_result(result, ids[place], message.tool_calls[place]["name"]))
    for place, call in enumerate(message.tool_calls):
        if place not in results:
            wire.append(
                ToolMessage(texts.unanswered, name=call["name"], tool_call_id=ids[place], status="error")
            )


def _place_result(result: ToolMessage, key: str, name: str) -> ToolMessage:
    """Return a result under its call's id, also in blocks that repeat the id."""
    update: dict[str, Any] = {}
    if result.tool_call_id != key:
        update["tool_call_id"] = key
    if result.name and not is_legal_name(result.name):
        update["name"] = name
    if not update:
        return result
    if isinstance(result.content, list):
        blocks: list[Any] = list(result.content)
        for place, block in enumerate(blocks):
            if isinstance(block, dict) and "tool_use_id" in block:
                blocks[place] = {**block, "tool_use_id": key}
        update["content"] = blocks
    return result.model_copy(update=update)


def _make_ids_unique(ids: Sequence[str | None], seed: object, taken: set[str]) -> list[str]:
    """Replace ids that are missing, too long or in use, in the same way in every request."""
    unique: list[str] = []
    for place, key in enumerate(ids):
        new, turn = key or "", 0
        while not new or len(new) > LONGEST_ID or new in taken:
            new, turn = derive_id(seed, place, turn), turn + 1
        taken.add(new)
        unique.append(new)
    return unique


def _join_messages(first: AIMessage, second: AIMessage) -> AIMessage:
    """Join two assistant messages in a row; the first has no calls, or their results would follow it."""
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
