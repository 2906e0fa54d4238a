"""What an agent brings along: its tools, its results' order."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage

from wakeloop.checks.tools import get_tool_name
from wakeloop.dialects.base import Dialect
from wakeloop.errors import ToolError, ToolNameError

MUST_BE_FIRST = (
    "WakeLoopMiddleware has to stand first in the list of middleware: a hook of another runs behind it after "
    "the model, and a wake passes it by, so that it counts too few calls or answers a todo call once more."
)


def is_result(message: BaseMessage) -> bool:
    """Tell whether a message is a call's result."""
    return isinstance(message, ToolMessage)


def check_tools(tools: Sequence[Any], dialect: Dialect) -> None:
    """Refuse a second layer of todo tools, and tools that end the run past the list."""
    for tool in tools:
        if (name := get_tool_name(tool)) in dialect.tool_names:
            raise ToolNameError(
                f"The tool {name!r} is there twice: WakeLoopMiddleware brings it, and so does another "
                "middleware or a tool of that name. Take TodoListMiddleware out, or rename the tool."
            )
        if getattr(tool, "return_direct", False):
            raise ToolError(f"The tool {name!r} has return_direct, which would end a run past its todo list.")


def order_results(messages: Sequence[AnyMessage], dialect: Dialect) -> Sequence[AnyMessage]:
    """Return a history whose results stand as the graph writes them: the list's, then in the calls' order."""
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
        if (right := sorted(results, key=lambda m: rank[m.tool_call_id])) != results:
            ordered = list(messages) if ordered is None else ordered
            ordered[place + 1 : end] = right
    return messages if ordered is None else ordered
