"""Whether a history may be sent as it is."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from langchain_core.messages import ToolCall

from wakeloop.channels.conversation import Messages
from wakeloop.model.storable_values import make_sendable
from wakeloop.model.tool_calls import LONGEST_ID, calls_agree, is_legal_name, is_legal_speaker
from wakeloop.model.user_messages import is_valid_user_message
from wakeloop.text.marks import text_of


def is_legal(messages: Sequence[Any]) -> bool:
    """See in one pass that there is nothing to do, which is so in nearly every request.

    A history that remembers how far it is sound is read from there, so that a request costs its new tail.
    """
    sound = getattr(messages, "legal_count", 0)
    made = messages.has_call if isinstance(messages, Messages) else _make_id_check()
    waiting: set[str | None] = set()
    last = messages[sound - 1].type if sound else "human"
    for place, message in enumerate(islice(messages, sound, None), start=sound):
        whole: Any = make_sendable(message)
        if whole is not message:
            return False
        role = message.type
        if role == "tool":
            if message.tool_call_id not in waiting or not is_legal_name(message.name or "unknown"):
                return False
            waiting.discard(message.tool_call_id)
        elif waiting or (role, last) in (("human", "tool"), ("ai", "ai")) or not _is_sound_message(message):
            return False
        elif role == "ai":
            waiting = {call["id"] for call in message.tool_calls}
            if len(waiting) < len(message.tool_calls) or any(made(key or "", place) for key in waiting):
                return False
        last = role
    if waiting:
        return False
    if isinstance(messages, Messages):
        messages.legal_count = len(messages)
    return True


def _is_sound_message(message: Any) -> bool:
    """Tell whether a message of a user or an assistant is sound in itself."""
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
    """Tell whether every server takes a call's name and id."""
    key = call["id"]
    return bool(key) and len(key or "") <= LONGEST_ID and is_legal_name(call["name"])


def _make_id_check() -> Callable[[str, int], bool]:
    """Return what tells whether a call's id was met before."""
    met: set[str] = set()

    def again(key: str, _: int) -> bool:
        return key in met or bool(met.add(key))  # type: ignore[func-returns-value]

    return again
