"""The channel of the conversation: its list and its reducer."""

import json
from collections.abc import Iterable, Sequence
from copy import copy
from hashlib import blake2s
from itertools import chain
from typing import Any

from langchain_core.messages import (
    AnyMessage,
    BaseMessage,
    BaseMessageChunk,
    RemoveMessage,
    convert_to_messages,
    message_chunk_to_message,
)

from wakeloop.errors import DamagedError
from wakeloop.text.characters import shorten

# Copied from LangGraph, so that reading a thread need not import its graph.
REMOVE_ALL_MESSAGES = "__remove_all__"


FORKED = object()  # a key in the index; it says that two copies have the same id at different places


class Messages(list[Any]):
    """The conversation, with an index by message id, and by call id for tool results.

    Its copies share the index, so every lookup verifies the place. Copies diverge: each task of a superstep
    writes to its own, and each router reads a copy with its writes. If a place is beyond the end of this copy
    or has another id, another copy wrote it, and this copy does not have the id. Only if copies have ever put
    one id at different places (`FORKED`) is the list scanned. An index per copy cost 0.92 of a step without a
    saver at 100 items.

    The first `legal_count` messages are known to be legal: every call has its result. The calls of the first
    `noted_count` messages are in `made`, perhaps with some of other copies.
    """

    __slots__ = ("legal_count", "made", "noted_count", "places")

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self.places: dict[Any, int] = {}
        self.legal_count, self.noted_count, self.made = 0, 0, set[int]()
        for place, message in enumerate(self):
            self.places[message.id] = place
            if message.type == "tool":
                self.places["call", message.tool_call_id] = place

    def __copy__(self) -> "Messages":
        new = Messages.__new__(Messages)
        new.extend(self)
        new.places, new.made = self.places, self.made
        new.legal_count, new.noted_count = self.legal_count, self.noted_count
        return new

    def find(self, key: Any) -> int | None:
        """Return the place of the message with this id, or None."""
        place = self.places.get(key)
        if place is None or (place < len(self) and self[place].id == key):
            return place
        if FORKED not in self.places:
            return None
        return next((place for place, message in enumerate(self) if message.id == key), None)

    def upsert(self, item: Any) -> int:
        """Replace the message with the same id in its place, or append the message. Return its place."""
        key, end = item.id, len(self)
        is_new = self.places.get(key, end) == end and FORKED not in self.places  # here, at least
        found = None if is_new else self.find(key)
        place = end if found is None else found
        if found is None:
            # Keep a place that another copy has noted; if it is a different one, the index has forked.
            if self.places.setdefault(key, end) != end:
                self.places[FORKED] = self.places[key] = end
            self.append(item)
        else:
            self[place] = item
        # A replaced message makes everything after it unknown again.
        if place < self.legal_count:
            self.legal_count = self.round_start(place)
        self.noted_count = min(self.noted_count, place)
        if item.type == "tool":
            self.places["call", item.tool_call_id] = place
        return place

    def round_start(self, place: int) -> int:
        """Return the place of the reply that a result answers; of any other message, its own place."""
        while place and self[place].type == "tool":
            place -= 1
        return place

    def has_call(self, call_id: str, place: int) -> bool:
        """Return whether a message before this place made a call with this id; if not, note this place."""
        found = self.places.setdefault(("made", call_id), place)
        if found == place:
            return False
        if found < place and any(call["id"] == call_id for call in getattr(self[found], "tool_calls", ())):
            return True
        self.places["made", call_id] = place  # the place was another copy's, or its message is gone
        return False

    def may_repeat(self, calls: Iterable[Any], place: int) -> bool:
        """Tell whether one of these calls may be like one that a message before this place made.

        False is certain. So most rounds, which repeat nothing, need not read the history.
        """
        for message in self[self.noted_count : place]:
            for call in getattr(message, "tool_calls", ()):
                self.made.add(_hash_call(call))
        self.noted_count = max(self.noted_count, place)
        return not self.made.isdisjoint(map(_hash_call, calls))

    def has_result(self, call_id: str) -> bool:
        """Return whether the conversation has a result for a call with this id."""
        place = self.places.get(("call", call_id))
        if place is None:
            return False
        # The place may be another copy's. Usually it is right, so look there before the scan.
        in_order = chain(self[place : place + 1], self)
        return any(getattr(message, "tool_call_id", None) == call_id for message in in_order)


def _hash_call(call: Any) -> int:
    """Return a number that is the same for calls with equal arguments; for odd ones, by the name alone."""
    try:
        return hash((call["name"], json.dumps(call["args"], sort_keys=True, default=str)))
    except (TypeError, ValueError, RecursionError):
        return hash(call["name"])


def merge_messages(state: Sequence[AnyMessage], writes: Sequence[Any]) -> list[AnyMessage]:
    """Append, replace and remove messages by id: the reducer of `messages`, for a `DeltaChannel`.

    `state` is the conversation, `writes` the updates of a batch: each is one message-like or a list of them.
    A message that is removed and added again moves to the end; removing an unknown id is ignored. A message
    without an id gets one derived from its place and content, so the same writes give the same messages.

    Example:
        >>> [message.text for message in merge_messages([], [[("user", "Hello")], [("ai", "Hi")]])]
        ['Hello', 'Hi']
    """
    merged = copy(state) if isinstance(state, Messages) else Messages(_load_messages(state))
    for write in writes:
        items = [*map(_to_message, write if isinstance(write, list) else [write])]
        for item in items:
            if isinstance(item, RemoveMessage):
                merged = _remove_messages(merged, items)
                break
        else:
            for item in items:
                merged.upsert(item if item.id else _with_id(item, len(merged)))
    return merged


def _load_messages(state: Any) -> list[Any]:
    """Return a stored conversation. Raises `DamagedError` if it is not one."""
    if not isinstance(state, list | tuple):
        raise DamagedError(f"messages must be a list, got {shorten(repr(state))}")
    try:
        return convert_to_messages(state)
    except Exception as error:  # noqa: BLE001 - whatever LangChain raises, the stored data is the cause
        raise DamagedError(f"an item of messages is not a message ({type(error).__name__})") from None


def _to_message(item: Any) -> BaseMessage:
    """Return an update's item as a message: a server sends dicts, those that remove a message included."""
    message = item if isinstance(item, BaseMessage) else convert_to_messages([item])[0]
    return message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message


def _remove_messages(merged: Messages, items: Sequence[BaseMessage]) -> Messages:
    """Apply an update that removes messages. Those that it adds again come last."""
    kept: list[Any] = list(merged)
    where: dict[str | None, int] = {}
    for place, message in enumerate(kept):
        where.setdefault(message.id, place)
    for item in items:
        if isinstance(item, RemoveMessage):
            if item.id == REMOVE_ALL_MESSAGES:
                kept, where = [], {}
            elif item.id in where:
                kept[where.pop(item.id)] = None  # a gap, so that the other places stay right
            continue
        message = item if item.id else _with_id(item, len(where))
        if message.id in where:
            kept[where[message.id]] = message
        else:
            where[message.id] = len(kept)
            kept.append(message)
    return Messages(message for message in kept if message is not None)


def _with_id(message: BaseMessage, place: int) -> BaseMessage:
    """Return a message with an id. The caller's message is not changed: it may use it elsewhere."""
    content = message.content if isinstance(message.content, str) else repr(message.content)
    # Savers store half a surrogate pair as "?"; "replace" does the same, so a stored message has the same id.
    seed = f"{place}|{message.type}|{content}".encode("utf-8", "replace")
    return message.model_copy(update={"id": blake2s(seed, digest_size=16).hexdigest()})
