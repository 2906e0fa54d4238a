"""What channels hold after writes, without a graph."""

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
"""By channel, the reducer that takes all writes of a superstep."""
SINGLE_REDUCERS: Mapping[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = MappingProxyType(
    {
        "todo_goal": (str, merge_goal),
        "todo_settings": (dict, merge_settings),
        **dict.fromkeys(
            ("todo_handoff", "owed_replies", "waiting_on", "todo_subagents"), (list, merge_entries)
        ),
    }
)
"""By channel, what makes its first value, and the reducer that takes one write after the other."""


def apply_writes(channel: str, value: Any, writes: Sequence[Any]) -> Any:
    """Return what a channel holds after some writes, as its own reducer has it; None is no value yet.

    What a write puts in its place takes its place; without a reducer the last write does.
    """
    types = sys.modules.get("langgraph.types")  # which reading such a write has imported
    for place, write in enumerate(writes):
        if types is not None and isinstance(write, types.Overwrite):
            return apply_writes(channel, write.value, writes[place + 1 :])
    if channel in BATCH_REDUCERS:
        return BATCH_REDUCERS[channel]([] if value is None else value, writes)
    if channel not in SINGLE_REDUCERS:
        return writes[-1] if writes else value
    first, merge = SINGLE_REDUCERS[channel]
    return reduce(merge, writes, first() if value is None else value)
