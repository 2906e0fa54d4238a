"""Checks of tools and their names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from wakeloop.checks.argument_values import make_tool_from
from wakeloop.dialects.base import Dialect
from wakeloop.errors import ToolError, ToolNameError


def split_tools(
    tools: Sequence[BaseTool | Callable[..., Any] | dict[str, Any]], dialect: Dialect
) -> tuple[dict[str, BaseTool], list[dict[str, Any]]]:
    """Separate the tools that run here from those that the provider runs, and refuse names that clash."""
    runnable: dict[str, BaseTool] = {}
    provided: list[dict[str, Any]] = []
    for given in tools:
        if isinstance(given, dict):
            provided.append(given)
            continue
        tool = make_tool_from(given)
        if tool.return_direct:
            raise ToolError(
                f"Tool {tool.name!r} has return_direct=True, which would end a run while todos are open."
            )
        if tool.name in runnable:
            raise ToolNameError(f"Two tools are called {tool.name!r}. Rename one of them.")
        runnable[tool.name] = tool
    for name in (*runnable, *map(get_tool_name, provided)):
        if name in dialect.tool_names:
            raise ToolNameError(
                f"The name {name!r} belongs to a todo tool of the dialect {dialect.name!r}. Rename your tool."
            )
    return runnable, provided


def unapprovable_tools(provided: Sequence[dict[str, Any]], dialect: Dialect) -> dict[str, str]:
    """Return the tools whose calls cannot be approved by a person, with the reasons."""
    at_provider = dict.fromkeys(map(get_tool_name, provided), "the model's provider runs it")
    todo_tools = dict.fromkeys(dialect.tool_names, "the setting approve_plan covers the list")
    return {**at_provider, **todo_tools}


def get_tool_name(tool: BaseTool | Mapping[str, Any]) -> str:
    """Return a tool's name, also of one that the provider runs."""
    if isinstance(tool, BaseTool):
        return tool.name
    return str(tool.get("name") or tool.get("function", {}).get("name"))


def has_no_required_arguments(tool: Any) -> bool:
    """Return whether the schema that the model sees allows a call without arguments."""
    schema = convert_to_openai_tool(tool)
    if "function" not in schema:  # a tool of the provider: nothing is known
        return False
    return not schema["function"].get("parameters", {}).get("required")
