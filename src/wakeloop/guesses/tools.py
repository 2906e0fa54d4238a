"""Tools by who runs them, and names that clash."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from wakeloop.dialects.base import Dialect
from wakeloop.errors import ToolError, ToolNameError
from wakeloop.guesses import values


def sorted_tools(
    tools: Sequence[BaseTool | Callable[..., Any] | dict[str, Any]], dialect: Dialect
) -> tuple[dict[str, BaseTool], list[dict[str, Any]]]:
    """Separate tools that run here from those that the provider runs; refuse clashes."""
    runnable: dict[str, BaseTool] = {}
    provided: list[dict[str, Any]] = []
    for given in tools:
        if isinstance(given, dict):
            provided.append(given)
            continue
        tool = values.tool_of(given)
        if tool.return_direct:
            raise ToolError(
                f"The tool {tool.name!r} has return_direct, which would end a run past its todo list."
            )
        if tool.name in runnable:
            raise ToolNameError(f"Two tools are called {tool.name!r}; give one of them another name.")
        runnable[tool.name] = tool
    for name in (*runnable, *map(name_of_tool, provided)):
        if name in dialect.names:
            raise ToolNameError(
                f"The tool name {name!r} belongs to the todo tools of the dialect {dialect.name!r}; "
                "give your tool another."
            )
    return runnable, provided


def not_asked(provided: Sequence[dict[str, Any]], dialect: Dialect) -> dict[str, str]:
    """Return the tools about whose calls nobody can be asked, each with the reason."""
    at_provider = dict.fromkeys(map(name_of_tool, provided), "the model's provider runs it")
    return {**at_provider, **dict.fromkeys(dialect.names, "the list is approved by the setting approve_plan")}


def name_of_tool(tool: BaseTool | Mapping[str, Any]) -> str:
    """Return a tool's name, also of one that the provider runs."""
    if isinstance(tool, BaseTool):
        return tool.name
    return str(tool.get("name") or tool.get("function", {}).get("name"))


def requires_nothing(tool: Any) -> bool:
    """Tell whether a tool may be called without arguments, as the model is told of it."""
    told = convert_to_openai_tool(tool).get("function", {"parameters": {"required": True}})
    return not told.get("parameters", {}).get("required")
