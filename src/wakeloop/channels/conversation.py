"""The conversation: messages found by id, and their reducer."""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from hashlib import blake2s
from itertools import chain
from typing import Any, Self

from langchain_core.messages import (
    AnyMessage,
    BaseMessage,
    BaseMessageChunk,
    RemoveMessage,
    convert_to_messages,
    message_chunk_to_message,
)

from wakeloop.channels.indexed_list import IndexedList
from wakeloop.errors import DamagedError
from wakeloop.text.characters import shorten

REMOVE_ALL_MESSAGES = "__remove_all__"  # as LangGraph has it, whose graph is not needed to read a thread


class Messages(IndexedList[Any]):
    """The conversation, found by message id; results are also found by the call that they answer.

    `legal_count` counts the messages at its beginning that are known to be legal, every call answered;
    `measured_size` those whose size is known, and that size.
    """

    __slots__ = ("legal_count", "measured_size")
    measured_size: tuple[int, int]
    legal_count: int

    def __init__(self, items: Iterable[Any] = (), where: dict[Any, int] | None = None) -> None:
        super().__init__(items, where)
        self.legal_count, self.measured_size = 0, (0, 0)
        if where is None:
            self.places.update({("call", m.tool_call_id): i for i, m in enumerate(self) if m.type == "tool"})

    def __copy__(self) -> Self:
        new = super().__copy__()
        new.legal_count, new.measured_size = self.legal_count, self.measured_size
        return new

    @staticmethod
    def key(item: Any) -> Any:
        """Return a message's id."""
        return item.id

    def upsert(self, item: Any) -> int:
        """Replace the message of the same id in its place, or append it; return the place."""
        place = super().upsert(item)
        if place < self.legal_count:
            self.legal_count = self.round_start(place)
        if place < self.measured_size[0]:
            self.measured_size = 0, 0
        if item.type == "tool":
            self.places["call", item.tool_call_id] = place
        return place

    def round_start(self, place: int) -> int:
        """Return where the round of a message begins: a result that is replaced is read with its calls."""
        while place and self[place].type == "tool":
            place -= 1
        return place

    def total_size(self, of: Callable[[Any], int]) -> int:
        """Return the sum of the sizes of all messages; those known before are not looked at again."""
        places, known = self.measured_size
        self.measured_size = len(self), known + sum(map(of, self[places:]))
        return self.measured_size[1]

    def has_call(self, call_id: str, place: int) -> bool:
        """Tell whether a call of this id was made before this place; the place is noted where it was not."""
        found = self.places.setdefault(("made", call_id), place)
        if found == place:
            return False
        if found < place and any(c["id"] == call_id for c in getattr(self[found], "tool_calls", ())):
            return True
        self.places["made", call_id] = place  # another copy's, or of a message that is gone
        return False

    def has_result(self, call_id: str) -> bool:
        """Tell whether a result for a call of this id stands in the conversation."""
        place = self.places.get(("call", call_id))
        if place is None:
            return False
        there = chain(self[place : place + 1], self)  # most often it is the first
        return any(getattr(message, "tool_call_id", None) == call_id for message in there)


def merge_messages(state: Sequence[AnyMessage], writes: Sequence[Any]) -> list[AnyMessage]:
    """Append, replace and remove messages by id: the reducer of `messages`, for a `DeltaChannel`.

    `state` is the conversation, `writes` a batch of updates (a list of message-likes, or one). A message that
    is removed and added again moves to the end; an unknown id to remove is ignored. An id is derived only for
    input without one, from place and content, on a copy: the same writes give the same messages.

    Example:
        >>> [message.text for message in merge_messages([], [[("user", "Hello")], [("ai", "Hi")]])]
        ['Hello', 'Hi']
    """
    merged = copy(state) if isinstance(state, Messages) else Messages(_load_messages(state))
    for write in writes:
        items = [write] if not isinstance(write, list) else write
        if any(isinstance(item, RemoveMessage) for item in items):
            merged = _remove_messages(merged, items)
        else:
            for item in items:
                merged.upsert(_ensure_id(item, len(merged)))
    return merged


def _load_messages(state: Any) -> list[Any]:
    """Read a conversation as it was stored. Raises `DamagedError` for one that is none."""
    if not isinstance(state, list | tuple):
        raise DamagedError(f"messages must be a list, got {shorten(repr(state))}")
    try:
        return convert_to_messages(state)
    except Exception as error:  # noqa: BLE001 - whatever it is, it stands for what is stored
        raise DamagedError(f"an item of messages is not a message ({type(error).__name__})") from None


def _remove_messages(merged: Messages, items: Sequence[Any]) -> Messages:
    """Apply a batch that takes messages away: what is added again after it stands at the end."""
    kept: list[Any] = list(merged)
    where = {message.id: place for place, message in reversed(list(enumerate(kept)))}
    for item in items:
        message = item if isinstance(item, RemoveMessage) else _ensure_id(item, len(where))
        place = where.get(message.id)
        if isinstance(message, RemoveMessage):
            if message.id == REMOVE_ALL_MESSAGES:
                kept, where = [], {}
            elif place is not None:
                kept[place] = None
                del where[message.id]
        elif place is not None:
            kept[place] = message
        else:
            where[message.id] = len(kept)
            kept.append(message)
    return Messages(message for message in kept if message is not None)


def _ensure_id(item: Any, place: int) -> BaseMessage:
    message = item if isinstance(item, BaseMessage) else convert_to_messages([item])[0]
    if isinstance(message, BaseMessageChunk):
        message = message_chunk_to_message(message)
    if message.id:
        return message
    said = message.content if isinstance(message.content, str) else repr(message.content)
    told = f"{place}|{message.type}|{said}".encode("utf-8", "replace")  # as a saver stores half a pair
    return message.model_copy(update={"id": blake2s(told, digest_size=16).hexdigest()})
