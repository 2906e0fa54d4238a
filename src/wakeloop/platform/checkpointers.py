"""Whether a run has a checkpointer, and what it stored."""

from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

CHECKPOINTER_KEY = "__pregel_checkpointer"  # in the config of a task
INTERRUPT_CHANNEL = "__interrupt__"  # where a checkpoint's writes hold what a task asks


def has_checkpointer(config: RunnableConfig | Mapping[str, Any]) -> bool:
    """Tell whether the run of a node is stored, by its graph's own checkpointer or by a parent's."""
    return (config.get("configurable") or {}).get(CHECKPOINTER_KEY) is not None


def find_interrupt_values(stored: CheckpointTuple | None) -> Iterator[tuple[str, Any]]:
    """Yield id and value of each interrupt that a checkpoint waits at."""
    for _, channel, asked in (stored.pending_writes if stored else None) or ():
        if channel == INTERRUPT_CHANNEL:
            for one in asked if isinstance(asked, list | tuple) else [asked]:
                yield one.id, one.value
