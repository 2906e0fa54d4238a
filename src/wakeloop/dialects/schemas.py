"""Schemas of the todo tools for the model."""

from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, WithJsonSchema


def item_list_schema(item: type[BaseModel], required: Sequence[str] = ()) -> WithJsonSchema:
    """Return the schema of a list of items as the model sees it; parsing accepts more than it says.

    Every field is required unless some are named.
    """
    schema = item.model_json_schema()
    for part in schema["properties"].values():
        part.pop("title", None)
        part.pop("default", None)
    properties = schema["properties"]
    items = {"type": "object", "properties": properties, "required": [*(required or properties)]}
    return WithJsonSchema({"type": "array", "items": items})


def tool_name(tool: type[BaseModel]) -> str:
    """Return the name of a tool: the title of its model, or else the class name."""
    return str(tool.model_config.get("title") or tool.__name__)


def tool_schema(tool: type[BaseModel]) -> dict[str, Any]:
    """Return a tool in OpenAI's format. A tool without parameters has an empty object of properties."""
    schema = deepcopy(_convert(tool))
    function = schema["function"]
    function["name"] = tool_name(tool)
    properties = function["parameters"].setdefault("properties", {})
    for part in properties.values():
        part.pop("default", None)  # a default of None does not fit the declared type
    return schema


@lru_cache(64)
def _convert(tool: type[BaseModel]) -> dict[str, Any]:
    return convert_to_openai_tool(tool)
