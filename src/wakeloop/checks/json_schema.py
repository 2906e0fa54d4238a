"""Checks a value against a JSON schema.

It refuses what certainly does not fit, and lets pass what it does not know: the tool has the last word.
Patterns are not tried, and the steps are bounded, since a hostile schema could take for ever.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wakeloop.text.characters import shorten

MAX_DEPTH = 30  # levels of a value, and of references in a schema
MAX_STEPS = 10_000  # parts of a schema that are compared
TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}
SIZES: tuple[
    tuple[str, str, Callable[[Any, Any], bool], str], ...
] = (  # keyword, type of the value, whether its size fits the bound, what it must do and does
    ("minimum", "number", operator.ge, "be at least {}, got {}"),
    ("maximum", "number", operator.le, "be at most {}, got {}"),
    ("exclusiveMinimum", "number", operator.gt, "be more than {}, got {}"),
    ("exclusiveMaximum", "number", operator.lt, "be less than {}, got {}"),
    ("minLength", "string", operator.ge, "have at least {} characters, has {}"),
    ("maxLength", "string", operator.le, "have at most {} characters, has {}"),
    ("minItems", "array", operator.ge, "have at least {} items, has {}"),
    ("maxItems", "array", operator.le, "have at most {} items, has {}"),
)


def find_misfit(value: Any, schema: Any) -> str | None:
    """Return why a value does not fit a schema, beginning with the place; None if it may fit.

    >>> find_misfit({"to": 5}, {"type": "object", "properties": {"to": {"type": "string"}}})
    'to: must be a string, got 5'
    """
    return _Check(schema).find_misfit(value, schema, "", 0)


@dataclass
class _Check:
    root: Any
    steps: int = 0

    def find_misfit(self, value: Any, schema: Any, where: str, depth: int) -> str | None:
        self.steps += 1
        if depth > MAX_DEPTH or self.steps > MAX_STEPS:
            return None
        schema = _resolve_reference(schema, self.root)
        if schema is False:
            return f"{where or 'arguments'}: nothing is allowed here"
        if not isinstance(schema, Mapping):
            return None
        if why := _find_wrong_value(value, schema):
            return f"{where or 'arguments'}: {why}"
        for key in ("allOf", "anyOf", "oneOf"):
            parts = _list_parts(schema, key)
            misfits = [self.find_misfit(value, part, where, depth + 1) for part in parts]
            found = [misfit for misfit in misfits if misfit is not None]
            if found and (key == "allOf" or len(found) == len(parts)):
                return found[0]
        return self.find_in_parts(value, schema, where, depth + 1)

    def find_in_parts(self, value: Any, schema: Mapping[str, Any], where: str, depth: int) -> str | None:
        parts: Iterable[tuple[str, Any, Any]] = ()
        if isinstance(value, list) and "items" in schema:
            parts = [(str(number), part, schema["items"]) for number, part in enumerate(value)]
        elif isinstance(value, dict):
            properties = schema.get("properties")
            known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
            for name in _list_parts(schema, "required"):
                if name not in value:
                    return f"{_join(where, str(name))}: is required"
            more = True if schema.get("patternProperties") else schema.get("additionalProperties", True)
            unknown = [name for name in value if name not in known]
            if unknown and more is False:
                names = ", ".join(map(str, known)) or "none"
                return f"{_join(where, shorten(unknown[0]))}: is unknown; known are {names}"
            parts = [(name, part, known.get(name, more)) for name, part in value.items()]
        for name, part, inner in parts:
            if misfit := self.find_misfit(part, inner, _join(where, name), depth):
                return misfit
        return None


def _find_wrong_value(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a value itself: its type, its choice, its size."""
    given = schema.get("type")
    names = [given] if isinstance(given, str) else given
    if isinstance(names, list) and names and not any(_has_type(value, name) for name in names):
        kinds = " or ".join(f"an {name}" if name[0] in "aio" else f"a {name}" for name in names)
        return f"must be {kinds}, got {shorten(repr(value))}"
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        return f"must be one of {shorten(', '.join(map(repr, choices)), 200)}, got {shorten(repr(value))}"
    size: Any = len(value) if isinstance(value, str | list) else value
    for keyword, kind, fits, words in SIZES:
        bound: Any = schema.get(keyword)
        if type(bound) in (int, float) and _has_type(value, kind) and not fits(size, bound):
            return f"must {words.format(bound, size)}"
    return None


def _has_type(value: Any, name: str) -> bool:
    """Tell whether a value has a type; of an unknown one, anything may be."""
    if isinstance(value, bool) and name != "boolean":
        return name not in TYPES
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return name not in TYPES or isinstance(value, TYPES[name])


def _list_parts(schema: Mapping[str, Any], key: str) -> list[Any]:
    found = schema.get(key)
    return found if isinstance(found, list) else []


def _resolve_reference(schema: Any, root: Any) -> Any:
    """Follow a `$ref` into the same schema; an outside one, or a circle, lets everything pass."""
    for _ in range(MAX_DEPTH):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if reference is None:
            return schema
        if not isinstance(reference, str) or not reference.startswith("#"):
            return {}
        schema = root
        for step in filter(None, reference[1:].split("/")):
            key = step.replace("~1", "/").replace("~0", "~")
            schema = schema.get(key) if isinstance(schema, Mapping) else None
    return {}


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
