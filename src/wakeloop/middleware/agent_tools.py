"""An agent's own tools, and the order of its results."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.tools import ToolException
from langgraph.types import Command

from wakeloop.checks.tools import get_tool_name
from wakeloop.dialects.base import Dialect
from wakeloop.errors import ToolError, ToolNameError
from wakeloop.model.tool_results import bind_to_call, describe_tool_error, error_result
from wakeloop.platform.tool_boundary import find_time_limit, passes_boundary, wall_off
from wakeloop.text.secrets import redact_text

Result = ToolMessage | Command[Any]


def check_tools(tools: Sequence[Any], dialect: Dialect) -> None:
    """Refuse a second set of todo tools."""
    for tool in tools:
        if (name := get_tool_name(tool)) in dialect.tool_names:
            raise ToolNameError(
                f"Tool {name!r} is defined twice: by WakeLoopMiddleware, and by other middleware or a tool "
                "of your own. Rename the tool."
            )


def wall_off_call(request: ToolCallRequest) -> tuple[ToolCallRequest, float | None]:
    """Return a call whose tool cannot end the event loop, and the seconds that it may take."""
    if request.tool is None:
        return request, None
    return request.override(tool=wall_off(request.tool)), find_time_limit(request.tool)


def bind_result(call: Mapping[str, Any], result: Result) -> Result:
    """Return what a tool answered, bound to its own call."""
    if not isinstance(result, ToolMessage):
        return result
    [own] = bind_to_call(call, [result])
    return cast("ToolMessage", own)


def answer_tool_error(call: Mapping[str, Any], tool: object, error: BaseException) -> ToolMessage:
    """Answer a call with what its tool raised. An ordinary exception is raised again: it is up to the agent.

    The agent knows nothing of exceptions that are no `Exception`, such as SystemExit or the panic of a Rust
    extension: in a host, they would end everything. What one of the package's own tools refuses, such as a
    file that does not exist, is for the model.
    """
    refused = isinstance(error, ToolError) or (isinstance(error, ToolException) and _is_own(tool))
    ordinary = isinstance(error, Exception) and not refused
    if ordinary or passes_boundary(error):
        raise error
    return error_result(call, redact_text(describe_tool_error(error)))


def _is_own(tool: object) -> bool:
    function = getattr(tool, "func", None)
    return getattr(function, "__module__", "").startswith("wakeloop.")


def order_results(messages: Sequence[AnyMessage], dialect: Dialect) -> Sequence[AnyMessage]:
    """Return a history with results in the graph's order: the todo calls' first, then as the calls."""
    ordered: list[AnyMessage] | None = None
    for place, message in enumerate(messages):
        if message.type != "ai" or not message.tool_calls[1:]:
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
