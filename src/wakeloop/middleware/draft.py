"""Several nodes in one hook: their writes as one update."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, RemoveMessage

from wakeloop.channels.conversation import REMOVE_ALL_MESSAGES, Messages, merge_messages
from wakeloop.channels.reducers import apply_writes
from wakeloop.channels.todo_list import OwnList
from wakeloop.text.marks import find_last, kind_of
from wakeloop.todos.changes import stamp_item, write_all


class Draft:
    """A state as one node after another writes it, and the one update for all of it."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self.before: Sequence[Any] = state["messages"]
        self.first: dict[str, Any] = dict(state)
        self.now: dict[str, Any] = dict(state)
        self.unread: list[Any] = []
        self.messages: list[Any] = []
        self.written: dict[str, Any] = {}

    @property
    def state(self) -> Any:
        """The state as it is now; the history is merged only when somebody reads it."""
        if self.unread:
            self.now["messages"] = merge_messages(self.now["messages"], self.unread)
            self.unread = []
        return self.now

    @property
    def ledger(self) -> Any:
        """The notes as they are now."""
        return self.now.get("todo_ledger") or {}

    def apply(self, update: Mapping[str, Any]) -> None:
        """Write what a node returned."""
        for key, value in update.items():
            if key == "messages":
                self.unread.append(value)
                self.messages += value
                continue
            self.now[key] = apply_writes(key, self.now.get(key), [value])
            if key == "todos" and "todos" in self.written:
                self.written["todos"] = write_all(self.now["todos"])
            else:
                self.written[key] = value

    def build_update(self, jump: str | None = None) -> dict[str, Any] | None:
        """Return all writes as one update; `jump` is where the agent continues."""
        update = dict(self.written)
        if "todos" in update and getattr(self.first["todos"], "is_plain", False):
            now = self.now["todos"]
            whole = OwnList(now)
            whole.stamp = now.stamp
            update |= {"todos": whole, "todo_ledger": {**self.ledger, "own": stamp_item(whole)}}
        if not _have_ids(self.before):
            update["messages"] = replace_history(self.state["messages"])
        elif self.messages:
            removes = any(isinstance(message, RemoveMessage) for message in self.messages)
            update["messages"] = self.messages
            if removes and not isinstance(self.before, Messages):  # `add_messages` does not move messages
                update["messages"] = replace_history(merge_messages(self.before, [self.messages]))
        if jump is not None:
            update["jump_to"] = jump
        return update or None


def replace_history(messages: Sequence[Any]) -> list[Any]:
    """Return the writes that put a history in the place of the present one."""
    return [RemoveMessage(REMOVE_ALL_MESSAGES), *messages]


def with_message_ids(state: Any) -> Any:
    """Return a state whose messages have ids; deepagents' channel gives none to a message in a tuple.

    The placeholder that took the place of a reply while a plan waited is removed.
    """
    messages = state["messages"]
    sound = assign_ids(messages)
    if gone := remove_placeholder(messages):
        sound = merge_messages(sound, [gone])
    return state if sound is messages else {**state, "messages": sound}


def remove_placeholder(messages: Sequence[Any]) -> list[Any]:
    """Return the write that removes an empty last reply, a placeholder."""
    last = find_last(AIMessage, messages)
    is_placeholder = last is not None and kind_of(last) == "repair" and not last.content
    return [RemoveMessage(last.id or "")] if last and is_placeholder else []


def assign_ids(messages: Sequence[Any]) -> Sequence[Any]:
    """Return a history whose messages have ids."""
    if _have_ids(messages):
        return messages
    return merge_messages([], [list(messages)])


def _have_ids(messages: Sequence[Any]) -> bool:
    missing = [message for message in messages if not message.id]  # a generator costs a call per message
    return not missing
