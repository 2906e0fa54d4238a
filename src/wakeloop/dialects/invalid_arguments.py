"""Error messages for the arguments of todo calls."""

from collections.abc import Sequence

from pydantic import BaseModel, ValidationError

from wakeloop.text.characters import shorten

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
