"""Whether a history can be sent as it is."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import ToolCall

from wakeloop.channels.conversation import Messages
from wakeloop.model.storable_values import make_sendable
from wakeloop.model.tool_calls import LONGEST_ID, calls_agree, is_legal_name, is_legal_speaker
from wakeloop.model.user_messages import is_valid_user_message
from wakeloop.platform.computed_per_object import computed_per_object
from wakeloop.text.marks import text_of


def is_legal(messages: Sequence[Any]) -> bool:
    """Tell in one pass whether nothing has to be repaired, which is true for nearly every request.

    `Messages` remember how far they were checked, so a request only costs its new tail.
    """
    checked = getattr(messages, "legal_count", 0)
    places: dict[Any, int] = messages.places if isinstance(messages, Messages) else {}
    waiting: set[str | None] = set()  # ids of calls whose results must come next
    last_role = messages[checked - 1].type if checked else "human"
    tail = messages[checked:]
    if not all(_is_sound_message.of_all(tail)):
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


@computed_per_object
def _is_sound_message(message: Any) -> bool:
    """Tell whether a message is acceptable in itself."""
    sendable: Any = make_sendable(message)
    if sendable is not message:
        return False
    if message.type == "tool":
        return is_legal_name(message.name or "unknown")
    return _is_sound_turn(message)


def _is_sound_turn(message: Any) -> bool:
    """Tell whether a message of a user or an assistant is acceptable in itself."""
    if message.name and not is_legal_speaker(message):
        return False
    if message.type != "ai":
        return bool(message.type == "human" and is_valid_user_message(message))
    if message.invalid_tool_calls or not calls_agree(message):
        return False
    if not message.tool_calls:
        return bool(message.content and text_of(message))
    return all(map(_is_sound_call, message.tool_calls))


def _is_sound_call(call: ToolCall) -> bool:
    """Tell whether every server accepts a call's name and id."""
    key = call["id"] or ""
    return 0 < len(key) <= LONGEST_ID and is_legal_name(call["name"])


def _is_free(messages: Sequence[Any], key: str, place: int) -> bool:
    """Tell whether no message before this place made a call with this id, although an index names one."""
    return isinstance(messages, Messages) and not messages.has_call(key, place)
