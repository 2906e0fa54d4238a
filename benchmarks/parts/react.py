"""LangGraph's `create_react_agent`, with two tools that keep a list in its state."""

import warnings
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId
from langgraph.prebuilt import InjectedState, create_react_agent
from langgraph.types import Command

from parts.hand import Todos, apply
from parts.job import Costless, work

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it is deprecated, and still widely used
    from langgraph.prebuilt.chat_agent_executor import AgentState

    class State(AgentState):
        """Its messages, and the list."""

        todos: Todos


def todo_write(items: list[str], call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Store the items."""
    return stored([], "todo_write", {"items": items}, call_id)


def todo_update(
    id: int,  # noqa: A002 - the job calls it so
    status: str,
    todos: Annotated[Todos, InjectedState("todos")],
    call_id: Annotated[str, InjectedToolCallId],
) -> Any:
    """Close an item."""
    return stored(todos, "todo_update", {"id": id, "status": status}, call_id)


def stored(todos: Todos, name: str, args: dict[str, Any], call_id: str) -> Any:
    """Return a tool's update: the new list, and its result."""
    todos, text = apply(todos, {"name": name, "args": args})
    return Command(update={"todos": todos, "messages": [ToolMessage(text, tool_call_id=call_id)]})


def react(model: Costless, saver: Any) -> Any:
    """Build the agent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return create_react_agent(
            model, [work, todo_write, todo_update], state_schema=State, checkpointer=saver
        )
