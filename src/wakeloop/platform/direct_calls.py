"""Calls a plain tool's function without LangChain's detour."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools.base import TOOL_MESSAGE_BLOCK_TYPES
from pydantic import BaseModel

from wakeloop.text.marks import new_id

PLAIN = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class DirectTool:
    """A tool that is nothing but a function and a schema: 0.2 ms of a call are LangChain's own otherwise."""

    name: str
    function: Callable[..., Any]
    schema: type[BaseModel]

    @classmethod
    def from_tool(cls, tool: BaseTool) -> Self | None:
        """Return the direct way to a tool, or None where LangChain has something to add to it."""
        schema = tool.args_schema
        if type(tool) is not StructuredTool or tool.func is None or tool.coroutine is not None:
            return None
        if not (inspect.isclass(schema) and issubclass(schema, BaseModel)):
            return None
        special = tool.response_format != "content" or tool.handle_tool_error or tool.handle_validation_error
        if special or tool.callbacks or tool.verbose:
            return None
        taken = inspect.signature(tool.func).parameters
        aliased = any(field.alias or field.validation_alias for field in schema.model_fields.values())
        if (
            aliased
            or set(taken) != set(schema.model_fields)
            or any(p.kind not in PLAIN for p in taken.values())
        ):
            return None
        return cls(tool.name, tool.func, schema)

    def __call__(self, call: Mapping[str, Any]) -> Any:
        """Check the arguments and call the function. Raises pydantic's `ValidationError` for unfit ones."""
        checked = self.schema.model_validate(call["args"])
        result = self.function(**{name: getattr(checked, name) for name in self.schema.model_fields})
        parts = result if isinstance(result, list) else [result]
        if parts and all(isinstance(part, ToolOutputMixin) for part in parts):
            return result
        return ToolMessage(format_content(result), name=self.name, tool_call_id=call["id"], id=new_id())


def has_no_listeners(config: RunnableConfig) -> bool:
    """Tell whether no callback, tracer or token stream listens to a run."""
    heard = config.get("callbacks")
    return not getattr(heard, "handlers", heard)


def format_content(result: Any) -> str | list[Any]:
    """Render what a function returned as LangChain would: text and content blocks stay, the rest is JSON."""
    if isinstance(result, str):
        return result
    if isinstance(result, Sequence) and all(map(_is_block, result)):
        return list(result)
    try:
        return json.dumps(result, ensure_ascii=False)
    except Exception:  # noqa: BLE001 - whatever does not serialise has a text
        return str(result)


def _is_block(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and part.get("type") in TOOL_MESSAGE_BLOCK_TYPES)


def takes_injection(tool: BaseTool) -> bool:
    """Tell whether the graph gives a tool arguments that the model does not send (state, store, runtime)."""
    if isinstance(tool.args_schema, dict):
        return False
    told: Any = tool.tool_call_schema
    taken: Any = tool.get_input_schema()
    return bool(
        set(taken.model_fields) - set(told["properties"] if isinstance(told, dict) else told.model_fields)
    )
