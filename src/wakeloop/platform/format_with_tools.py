"""A request for a format, with the agent's tools bound to it.

`with_structured_output` returns a chain whose first step asks. What is bound there can be seen, so that more
can be bound to it; no argument of the method does that for every client.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableBinding, RunnableParallel, RunnableSequence

_TOOLS = frozenset(("tools", "toolConfig", "functions"))


def bind_tools_to_format(formatted: Runnable[Any, Any], more: Mapping[str, Any]) -> Runnable[Any, Any]:
    """Return a chain that asks with these bound too; one whose format is a tool is returned as it is."""
    if not isinstance(formatted, RunnableSequence):
        return formatted
    first: Any = formatted.first
    asked = first.steps__.get("raw") if isinstance(first, RunnableParallel) else first
    if not isinstance(asked, RunnableBinding) or _TOOLS & asked.kwargs.keys():
        return formatted
    again: Any = asked.bind(**more)
    return RunnableSequence(
        RunnableParallel(raw=again) if asked is not first else again, *formatted.middle, formatted.last
    )


def openai_tool_arguments(model: BaseChatModel, tools: list[Any], choice: Any) -> dict[str, Any]:
    """Return what binds tools beside a format on langchain-openai.

    Its chat completions go through openai's parser, which refuses tools that are not `strict`, though no
    server asks for that: they travel in `extra_body`, which it does not look into.
    """
    more = {"tools": tools, "tool_choice": choice}
    by_responses: Any = getattr(model, "_use_responses_api", None)
    if by_responses is not None and by_responses({"tools": tools}):
        return more
    return {"extra_body": {**(getattr(model, "extra_body", None) or {}), **more}}
