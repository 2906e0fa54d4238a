"""An agent's own tools, and the order of its results."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage

from wakeloop.checks.tools import get_tool_name
from wakeloop.dialects.base import Dialect
from wakeloop.errors import ToolError, ToolNameError

MUST_BE_FIRST = (
    "WakeLoopMiddleware must be the first in the list of middleware. Another one has a hook after the model, "
    "which a wake skips, so it counts too few calls or answers a todo call twice."
)


def is_result(message: BaseMessage) -> bool:
    """Tell whether a message is the result of a call."""
    return isinstance(message, ToolMessage)


def check_tools(tools: Sequence[Any], dialect: Dialect) -> None:
    """Refuse a second set of todo tools, and tools that would end the run past the list."""
    for tool in tools:
        if (name := get_tool_name(tool)) in dialect.tool_names:
            raise ToolNameError(
                f"Tool {name!r} is defined twice: by WakeLoopMiddleware, and by other middleware or a tool "
                "of your own. Remove TodoListMiddleware, or rename the tool."
            )
        if getattr(tool, "return_direct", False):
            raise ToolError(f"Tool {name!r} has return_direct, which would end a run without its todo list.")


def order_results(messages: Sequence[AnyMessage], dialect: Dialect) -> Sequence[AnyMessage]:
    """Return a history with results in the graph's order: the todo calls' first, then as the calls."""
    ordered: list[AnyMessage] | None = None
    for place, message in enumerate(messages):
        if not isinstance(message, AIMessage) or not message.tool_calls[1:]:
            continue
        calls = sorted(message.tool_calls, key=lambda call: call["name"] not in dialect.tool_names)
        rank = {call["id"]: i for i, call in enumerate(calls)}
        end = place + 1
        while end < len(messages) and getattr(messages[end], "tool_call_id", None) in rank:
            end += 1
        results: list[Any] = list(messages[place + 1 : end])
        right = sorted(results, key=lambda result: rank[result.tool_call_id])
        if right != results:
            if ordered is None:
                ordered = list(messages)
            ordered[place + 1 : end] = right
    return messages if ordered is None else ordered
