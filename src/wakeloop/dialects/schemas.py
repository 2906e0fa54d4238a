"""The todo tools as the model is told of them."""

from copy import deepcopy
from functools import lru_cache
from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, WithJsonSchema


def item_list_schema(item: type[BaseModel]) -> WithJsonSchema:
    """Tell the model of a list of items, whatever else is read kindly."""
    told = item.model_json_schema()
    for part in told["properties"].values():
        part.pop("title", None)
        part.pop("default", None)
    properties = {"type": "object", "properties": told["properties"], "required": list(told["properties"])}
    return WithJsonSchema({"type": "array", "items": properties})


def tool_name(tool: type[BaseModel]) -> str:
    """Return the name that the model calls a tool by: its title, else its class name."""
    return str(tool.model_config.get("title") or tool.__name__)


def tool_schema(tool: type[BaseModel]) -> dict[str, Any]:
    """Return one tool in OpenAI's format; without parameters it carries an explicit empty object."""
    schema = deepcopy(_convert(tool))
    function = schema["function"]
    function["name"] = tool_name(tool)
    properties = function["parameters"].setdefault("properties", {})
    for told in properties.values():
        told.pop("default", None)  # None is no value of the type that stands beside it
    return schema


@lru_cache(64)
def _convert(tool: type[BaseModel]) -> dict[str, Any]:
    return convert_to_openai_tool(tool)
