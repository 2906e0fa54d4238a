"""Values of channels after writes, without a graph."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any

from wakeloop.channels.conversation import merge_messages
from wakeloop.channels.reducers import merge_entries, merge_goal, merge_settings
from wakeloop.channels.todo_list import merge_todos

BATCH_REDUCERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"messages": merge_messages, "todos": merge_todos}
)
"""Reducers by channel that take all writes of a superstep."""
SINGLE_REDUCERS: Mapping[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = MappingProxyType(
    {
        "todo_goal": (str, merge_goal),
        "todo_settings": (dict, merge_settings),
        **dict.fromkeys(
            ("todo_handoff", "owed_replies", "waiting_on", "todo_subagents"), (list, merge_entries)
        ),
    }
)
"""By channel: a factory of its first value, and the reducer that takes one write at a time."""


def apply_writes(channel: str, value: Any, writes: Sequence[Any]) -> Any:
    """Return the value of a channel after some writes. None means that it has no value yet.

    An `Overwrite` replaces the value. A channel without a reducer keeps the last write.
    """
    # Reading a thread shall not import LangGraph. Until its types are imported, no write is an `Overwrite`.
    types = sys.modules.get("langgraph.types")
    for place, write in enumerate(writes):
        if types is not None and isinstance(write, types.Overwrite):
            return apply_writes(channel, write.value, writes[place + 1 :])
    if channel in BATCH_REDUCERS:
        return BATCH_REDUCERS[channel]([] if value is None else value, writes)
    if channel in SINGLE_REDUCERS:
        make_first, merge = SINGLE_REDUCERS[channel]
        return reduce(merge, writes, make_first() if value is None else value)
    return writes[-1] if writes else value
