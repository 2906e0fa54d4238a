"""Tools by who runs them, and names that clash."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from wakeloop.checks import argument_values
from wakeloop.dialects.base import Dialect
from wakeloop.errors import ToolError, ToolNameError


def split_tools(
    tools: Sequence[BaseTool | Callable[..., Any] | dict[str, Any]], dialect: Dialect
) -> tuple[dict[str, BaseTool], list[dict[str, Any]]]:
    """Separate tools that run here from those that the provider runs; refuse clashes."""
    runnable: dict[str, BaseTool] = {}
    provided: list[dict[str, Any]] = []
    for given in tools:
        if isinstance(given, dict):
            provided.append(given)
            continue
        tool = argument_values.make_tool_from(given)
        if tool.return_direct:
            raise ToolError(
                f"The tool {tool.name!r} has return_direct, which would end a run past its todo list."
            )
        if tool.name in runnable:
            raise ToolNameError(f"Two tools are called {tool.name!r}; give one of them another name.")
        runnable[tool.name] = tool
    for name in (*runnable, *map(get_tool_name, provided)):
        if name in dialect.tool_names:
            raise ToolNameError(
                f"The tool name {name!r} belongs to the todo tools of the dialect {dialect.name!r}; "
                "give your tool another."
            )
    return runnable, provided


def unapprovable_tools(provided: Sequence[dict[str, Any]], dialect: Dialect) -> dict[str, str]:
    """Return the tools about whose calls nobody can be asked, each with the reason."""
    at_provider = dict.fromkeys(map(get_tool_name, provided), "the model's provider runs it")
    return {
        **at_provider,
        **dict.fromkeys(dialect.tool_names, "the list is approved by the setting approve_plan"),
    }


def get_tool_name(tool: BaseTool | Mapping[str, Any]) -> str:
    """Return a tool's name, also of one that the provider runs."""
    if isinstance(tool, BaseTool):
        return tool.name
    return str(tool.get("name") or tool.get("function", {}).get("name"))


def has_no_required_arguments(tool: Any) -> bool:
    """Tell whether a tool may be called without arguments, as the model is told of it."""
    told = convert_to_openai_tool(tool).get("function", {"parameters": {"required": True}})
    return not told.get("parameters", {}).get("required")
