"""Whether servers accept a history, and its repair.

The result depends on the messages alone, so that each request begins with all of the one before it.
"""

from collections.abc import Callable, Iterable, Sequence
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

from wakeloop.channels.conversation import Messages
from wakeloop.model.storable_values import make_sendable
from wakeloop.model.tool_calls import (
    LONGEST_ID,
    Pair,
    calls_agree,
    derive_id,
    legal_name,
    set_calls,
    with_legal_speaker,
)
from wakeloop.platform.computed_per_object import computed_per_object
from wakeloop.text.characters import fix_surrogates
from wakeloop.text.marks import KEY, make_mark, text_of

_RESULT_TYPES = ("tool_result", "function_call_output")  # a tuple: a block's type may be unhashable


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


def is_legal(messages: Sequence[Any]) -> bool:
    """Tell in one pass whether nothing has to be repaired, which is true for nearly every request.

    `Messages` remember how far they were checked, so a request only costs its new tail.
    """
    checked = getattr(messages, "legal_count", 0)
    places: dict[Any, int] = messages.places if isinstance(messages, Messages) else {}
    waiting: set[str | None] = set()  # ids of calls whose results must come next
    last_role = messages[checked - 1].type if checked else "human"
    tail = messages[checked:]
    if not all(_is_sound.of_all(tail)):
        return False
    for place, message in enumerate(tail, start=checked):
        role = message.type
        if role == "tool":
            if message.tool_call_id not in waiting:
                return False
            waiting.discard(message.tool_call_id)
        elif waiting or (role, last_role) in (("human", "tool"), ("ai", "ai")):
            return False
        elif role == "ai":
            for call in message.tool_calls:
                key = call["id"] or ""
                # another place may be one that another copy of the conversation has noted
                is_new = places.setdefault(("made", key), place) == place
                if key in waiting or not (is_new or _is_free(messages, key, place)):
                    return False
                waiting.add(key)
        last_role = role
    if isinstance(messages, Messages) and not waiting:
        messages.legal_count = len(messages)
    return not waiting


def _is_free(messages: Sequence[Any], key: str, place: int) -> bool:
    """Tell whether no message before this place made a call with this id, although an index names one."""
    return isinstance(messages, Messages) and not messages.has_call(key, place)


@computed_per_object
def _is_sound(message: Any) -> bool:
    """Tell whether every server accepts a message by itself, with ids of calls as they are."""
    if message.type == "ai" and not all(
        0 < len(call["id"] or "") <= LONGEST_ID for call in message.tool_calls
    ):
        return False
    return repair_message(message, "no text") is message


def repair_message(message: Any, no_text: str) -> Any:
    """Return a message that every server accepts by itself: most often the same object.

    System messages and unknown roles become user messages; `no_text` replaces an empty text.
    """
    message = make_sendable(message)
    if message.type == "tool":
        name = message.name and legal_name(message.name)
        return message if name == message.name else message.model_copy(update={"name": name})
    if message.type == "ai":
        message = _make_calls_legal(message)
        if not message.tool_calls and not (message.content and text_of(message)):
            message = message.model_copy(update={"content": no_text})
    else:
        if message.type != "human":
            message = HumanMessage(message.content, id=message.id)
        content = _repair_content(message.content, no_text)
        if content is not message.content:
            message = message.model_copy(update={"content": content})
    return with_legal_speaker(message) if message.name else message


def _repair_content(content: str | list[Any], no_text: str) -> str | list[Any]:
    """Return the content of a user message without tool results and with something in it.

    In some providers' histories tool results are blocks of a user message. No call waits for them here, so
    they become text.
    """
    if isinstance(content, str):
        return content if content and not content.isspace() else no_text
    if any(map(_is_result, content)):
        content = [_result_as_text(block) if _is_result(block) else block for block in content]
    return no_text if all(map(_is_blank, content)) else content


def _is_result(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") in _RESULT_TYPES


def _is_blank(block: Any) -> bool:
    if isinstance(block, dict):
        if block.get("type") != "text":
            return False
        block = block.get("text")
    return not (isinstance(block, str) and block.strip())


def _result_as_text(block: Any) -> dict[str, Any]:
    result = block.get("content") or block.get("output") or ""
    texts = []
    for part in result if isinstance(result, list) else [result]:
        texts.append(part if isinstance(part, str | dict) else str(part))
    return {"type": "text", "text": str(HumanMessage(texts).text)}


def make_legal(
    messages: Sequence[AnyMessage], head: Sequence[BaseMessage], fill: Callable[[str], str]
) -> Sequence[AnyMessage]:
    """Return the messages in an order that every server accepts, without the system prompt.

    `head` are the system messages in the prompt. A message with the same text is left out; other system
    messages and unknown roles are sent as user messages. `fill` returns a prompt of the package, which fills
    a gap.

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
    others = [m for m in messages if not (isinstance(m, SystemMessage) and _is_in_head(m, head))]
    for message, results in _pair_results(others, fill("no_text")):
        if isinstance(message, AIMessage):
            _add_assistant(wire, message, results, fill("unanswered"), taken)
            continue
        if wire and isinstance(wire[-1], ToolMessage):
            wire.append(AIMessage(fill("run_interrupted"), additional_kwargs=make_mark("repair")))
        wire.append(message)
    return wire


def _pair_results(
    messages: Sequence[AnyMessage], no_text: str
) -> list[tuple[AnyMessage, dict[int, ToolMessage]]]:
    """Pair each message with the results of its calls, by the call's place; stray results are left out."""
    paired: list[tuple[AnyMessage, dict[int, ToolMessage]]] = []
    waiting: dict[str | None, list[tuple[dict[int, ToolMessage], int]]] = {}  # calls without a result, by id
    for original in messages:
        message = repair_message(original, no_text)
        if isinstance(message, ToolMessage):
            slots = waiting.get(message.tool_call_id)
            if slots:
                results, place = slots.pop(0)
                results[place] = message
            continue
        results = {}
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
    if not message.invalid_tool_calls and calls_agree(message) and names == [*map(legal_name, names)]:
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
    unanswered: str,
    taken: set[str],
) -> None:
    """Append an assistant's message with unique ids, and a result for each of its calls."""
    calls = message.tool_calls
    ids = _make_ids_unique([call["id"] for call in calls], message.id or len(wire), taken)
    if ids != [call["id"] for call in calls]:
        pairs: list[Pair] = [(call, {**call, "id": key}) for call, key in zip(calls, ids, strict=True)]
        message = message.model_copy(update=set_calls(message, pairs))
    if wire and isinstance(wire[-1], AIMessage):
        message = _join_messages(wire.pop(), message)  # type: ignore[arg-type]
    wire.append(message)
    # results keep their order in the history, so that a reminder in the last one comes last
    for place, result in results.items():
        wire.append(_with_call_id(result, ids[place]))
    for place, call in enumerate(calls):
        if place not in results:
            wire.append(ToolMessage(unanswered, name=call["name"], tool_call_id=ids[place], status="error"))


def _with_call_id(result: ToolMessage, key: str) -> ToolMessage:
    """Return a result under its call's id, also in blocks that repeat the id."""
    if result.tool_call_id == key:
        return result
    content: Any = result.content
    if isinstance(content, list):
        content = list(content)
        for place, block in enumerate(content):
            if isinstance(block, dict) and "tool_use_id" in block:
                content[place] = {**block, "tool_use_id": key}
    return result.model_copy(update={"tool_call_id": key, "content": content})


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
