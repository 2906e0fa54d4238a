"""Binds tools to a request for a format.

`with_structured_output` returns a chain whose first step is the bound model. More can be bound to that step;
no argument of the method does so for every client.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableBinding, RunnableParallel, RunnableSequence

_TOOLS = frozenset(("tools", "toolConfig", "functions"))


def bind_tools_to_format(formatted: Runnable[Any, Any], more: Mapping[str, Any]) -> Runnable[Any, Any]:
    """Return a chain whose request has these arguments too; if its format is a tool, return it unchanged."""
    if not isinstance(formatted, RunnableSequence):
        return formatted
    first: Any = formatted.first
    in_parallel = isinstance(first, RunnableParallel)  # with `include_raw`
    model = first.steps__.get("raw") if in_parallel else first
    if not isinstance(model, RunnableBinding) or _TOOLS & model.kwargs.keys():
        return formatted
    bound: Any = model.bind(**more)
    if in_parallel:
        bound = RunnableParallel(raw=bound)
    return RunnableSequence(bound, *formatted.middle, formatted.last)


def openai_tool_arguments(model: BaseChatModel, tools: list[Any], choice: Any) -> dict[str, Any]:
    """Return the arguments that add tools to a request for a format on langchain-openai.

    Its chat completions use openai's parser, which refuses tools that are not `strict` although no server
    requires that. The parser does not read `extra_body`, so the tools go there.
    """
    arguments = {"tools": tools, "tool_choice": choice}
    uses_responses: Any = getattr(model, "_use_responses_api", None)
    if uses_responses is not None and uses_responses({"tools": tools}):
        return arguments
    return {"extra_body": {**(getattr(model, "extra_body", None) or {}), **arguments}}
