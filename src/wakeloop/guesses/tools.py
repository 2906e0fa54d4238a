"""Tools by who runs them, and names that clash."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.tools import BaseTool

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
    names = [*runnable, *(str(d.get("name") or d.get("function", {}).get("name")) for d in provided)]
    for name in names:
        if name in dialect.names:
            raise ToolNameError(
                f"The tool name {name!r} belongs to the todo tools of the dialect {dialect.name!r}; "
                "give your tool another."
            )
    return runnable, provided
