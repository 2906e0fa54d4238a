"""An agent's own tools, and the order of its results."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage

from wakeloop.checks.tools import get_tool_name
from wakeloop.dialects.base import Dialect
from wakeloop.errors import ToolNameError


def check_tools(tools: Sequence[Any], dialect: Dialect) -> None:
    """Refuse a second set of todo tools."""
    for tool in tools:
        if (name := get_tool_name(tool)) in dialect.tool_names:
            raise ToolNameError(
                f"Tool {name!r} is defined twice: by WakeLoopMiddleware, and by other middleware or a tool "
                "of your own. Rename the tool."
            )


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
