"""What is wrong with a todo call's arguments, in words."""

from collections.abc import Sequence

from pydantic import BaseModel, ValidationError

from wakeloop.text.characters import shorten

ID_TYPES = ("int", "str")  # pydantic's words for the ways to read an id


def explain_validation_error(tool: type[BaseModel], error: ValidationError) -> str:
    """Say the place, what is allowed, and the value; no class of Python's is named.

    An item is named by its place, counted from 1, as in every other sentence about a list that is sent.
    """
    first = error.errors(include_url=False, include_context=False)[0]
    got = "" if first["type"] == "missing" else f", not {shorten(repr(first['input']), 120)}"
    said = first["msg"].removeprefix("Value error, ")
    if first["type"] in ("model_type", "model_attributes_type", "dict_type"):
        said = f"an object {_format_keys(tool, first['loc'])}expected"
    return f"{_format_place(first['loc'])}: {said[:1].lower()}{said[1:]}{got}"


def _format_place(loc: Sequence[int | str]) -> str:
    """Return where a fault is, in words: `item 2: status`, or the name of an argument."""
    number = next((place for place, part in enumerate(loc) if isinstance(part, int)), None)
    if number is None:
        return str(loc[0]) if loc else "arguments"
    within = loc[number + 1 : number + 2]  # pydantic's own words for the ways to read a value stand behind
    return ": ".join([f"item {int(loc[number]) + 1}", *(str(key) for key in within if key not in ID_TYPES)])


def _format_keys(tool: type[BaseModel], loc: Sequence[int | str]) -> str:
    """Return which keys an item has, as the model was told."""
    told = tool.model_json_schema()["properties"].get(str(loc[0]), {}) if loc else {}
    keys = list(told.get("items", {}).get("properties", ()))
    return f"with {', '.join(keys[:-1])} and {keys[-1]} " if len(keys) > 1 else ""
