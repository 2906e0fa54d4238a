"""An agent whose attributes tests guess, under names that no type checker resolves."""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import create_todo_agent, update_todos
from wakeloop.testing import ScriptedModel

AT: Any = {"configurable": {"thread_id": "1"}}
GO: Any = {"messages": [("user", "go")]}
BUILD: Any = create_todo_agent
UPDATE: Any = update_todos


def hi(*replies: Any, **more: Any) -> Any:
    return BUILD(ScriptedModel(*(replies or ("Hello.",))), checkpointer=InMemorySaver(), **more)
