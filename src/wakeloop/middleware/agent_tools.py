"""An agent's own tools, and the order of its results."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.tools import ToolException
from langgraph.config import get_config
from langgraph.types import Command

from wakeloop.checks.argument_values import get_tool_name
from wakeloop.dialects.base import Dialect
from wakeloop.errors import ToolError, ToolNameError
from wakeloop.loop.ledger import read_notes
from wakeloop.model.tool_results import bind_to_call, describe_tool_error, error_result
from wakeloop.nodes.run_tools import read_tool_update
from wakeloop.platform.runnables import read_step
from wakeloop.platform.tool_boundary import find_time_limit, passes_boundary, unwrap_group, wall_off
from wakeloop.state import PRIVATE_CHANNELS
from wakeloop.text.secrets import redact_text

Result = ToolMessage | Command[Any]
PRIVATE = PRIVATE_CHANNELS - {"structured_response"}  # which belongs to the agent


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


def bind_result(request: ToolCallRequest, result: Result | list[Result]) -> Result:
    """Return what a tool answered, bound to its own call. Raises `ToolError` for what it may not write."""
    parts: list[Any] = result if isinstance(result, list) else [result]
    messages = [part for part in parts if isinstance(part, ToolMessage)]
    bound = iter(bind_to_call(request.tool_call, [*messages]))
    new: list[Any] = []
    for part in parts:
        if isinstance(part, Command):
            new.append(_read_command(request, part))
        else:
            new.append(next(bound) if isinstance(part, ToolMessage) else part)
    # LangChain takes a list, too, but its types do not say so
    return cast("Result", new if isinstance(result, list) else new[0])


def _read_command(request: ToolCallRequest, command: Command[Any]) -> Command[Any]:
    """Return a tool's command; its list will be merged with a todo call of the same reply."""
    if command.graph == Command.PARENT or command.update is None:
        return command
    update = read_tool_update(command.update, request.tool_call["name"], read_step(get_config()), PRIVATE)
    base = read_notes(request.state).get("base")
    if base is not None and update.get("todos") is not None:
        update["todos"]["base"] = base
    return replace(command, update=update)


def answer_tool_error(call: Mapping[str, Any], tool: object, error: BaseException) -> ToolMessage:
    """Answer a call with what its tool raised. An ordinary exception is raised again: it is up to the agent.

    The agent knows nothing of exceptions that are no `Exception`, such as SystemExit or the panic of a Rust
    extension: in a host, they would end everything. What one of the package's own tools refuses, such as a
    file that does not exist, is for the model.
    """
    refused = isinstance(error, ToolError) or (isinstance(error, ToolException) and _is_own(tool))
    ordinary = isinstance(error, Exception) and not refused
    error = error if ordinary else unwrap_group(error)
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
