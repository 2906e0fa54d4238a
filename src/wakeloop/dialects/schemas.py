"""Schemas of todo tools, and words for calls that do not fit."""

from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ValidationError, WithJsonSchema

from wakeloop.text.characters import shorten


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


ID_TYPES = ("int", "str")  # pydantic's names for the two types of an id


def explain_validation_error(tool: type[BaseModel], error: ValidationError) -> str:
    """Return where the fault is, what is allowed, and the value.

    Items count from 1, as in all other messages about a list. No Python class is named: the model does not
    know them.
    """
    first = error.errors(include_url=False, include_context=False)[0]
    problem = first["msg"].removeprefix("Value error, ")
    if first["type"] in ("model_type", "model_attributes_type", "dict_type"):
        problem = f"an object {_format_keys(tool, first['loc'])}expected"
    text = f"{_format_place(first['loc'])}: {problem[:1].lower()}{problem[1:]}"
    if first["type"] != "missing":
        text += f", not {shorten(repr(first['input']), 120)}"
    return text


def _format_place(loc: Sequence[int | str]) -> str:
    """Return the place of a fault, as in `item 2: status`, or the name of an argument."""
    for number, part in enumerate(loc):
        if isinstance(part, int):
            place = f"item {part + 1}"
            field = loc[number + 1 : number + 2]  # after it, pydantic names the type that it tried
            if field and field[0] not in ID_TYPES:
                place += f": {field[0]}"
            return place
    return str(loc[0]) if loc else "arguments"


def _format_keys(tool: type[BaseModel], loc: Sequence[int | str]) -> str:
    """Return the keys of an item, as the schema for the model has them."""
    if not loc:
        return ""
    schema = tool.model_json_schema()["properties"].get(str(loc[0]), {})
    keys = list(schema.get("items", {}).get("properties", ()))
    if len(keys) < 2:  # noqa: PLR2004 - nothing to join with "and"
        return ""
    return f"with {', '.join(keys[:-1])} and {keys[-1]} "
