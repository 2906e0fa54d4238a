"""Calls a plain tool's function directly, past LangChain."""

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
    """A tool that is only a function and a schema: calling it directly saves 0.2 ms."""

    name: str
    function: Callable[..., Any]
    schema: type[BaseModel]

    @classmethod
    def from_tool(cls, tool: BaseTool) -> Self | None:
        """Return a tool to call directly, or None if LangChain would add something to the call."""
        schema = tool.args_schema
        if type(tool) is not StructuredTool or tool.func is None or tool.coroutine is not None:
            return None
        if not (inspect.isclass(schema) and issubclass(schema, BaseModel)):
            return None
        special = tool.response_format != "content" or tool.handle_tool_error or tool.handle_validation_error
        if special or tool.callbacks or tool.verbose:
            return None
        parameters = inspect.signature(tool.func).parameters
        fields = schema.model_fields
        if any(field.alias or field.validation_alias for field in fields.values()):
            return None
        if set(parameters) != set(fields) or any(one.kind not in PLAIN for one in parameters.values()):
            return None
        return cls(tool.name, tool.func, schema)

    def __call__(self, call: Mapping[str, Any]) -> Any:
        """Validate the arguments and call the function. Raises pydantic's `ValidationError`."""
        validated = self.schema.model_validate(call["args"])
        result = self.function(**{name: getattr(validated, name) for name in self.schema.model_fields})
        parts = result if isinstance(result, list) else [result]
        if parts and all(isinstance(part, ToolOutputMixin) for part in parts):
            return result
        return ToolMessage(format_content(result), name=self.name, tool_call_id=call["id"], id=new_id())


def has_no_listeners(config: RunnableConfig) -> bool:
    """Tell whether no callback, tracer or token stream listens to a run."""
    callbacks = config.get("callbacks")
    return not getattr(callbacks, "handlers", callbacks)


def format_content(result: Any) -> str | list[Any]:
    """Format a tool's return value as LangChain does: text and content blocks stay, the rest becomes JSON.

    >>> format_content({"a": 1})
    '{"a": 1}'
    """
    if isinstance(result, str):
        return result
    if isinstance(result, Sequence) and all(map(_is_block, result)):
        return list(result)
    try:
        return json.dumps(result, ensure_ascii=False)
    except Exception:  # noqa: BLE001 - as LangChain does
        return str(result)


def _is_block(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and part.get("type") in TOOL_MESSAGE_BLOCK_TYPES)


def takes_injection(tool: BaseTool) -> bool:
    """Tell whether a tool has arguments that the graph fills in (state, store, runtime)."""
    if isinstance(tool.args_schema, dict):
        return False
    from_model: Any = tool.tool_call_schema
    everything: Any = tool.get_input_schema()
    sent = from_model["properties"] if isinstance(from_model, dict) else from_model.model_fields
    return bool(set(everything.model_fields) - set(sent))
