"""Checks a value against a JSON schema.

It refuses what certainly does not fit, and lets pass what it does not know: the tool has the last word.
Patterns are not tried, and the steps are bounded, since a hostile schema could take for ever.
"""

from collections.abc import Mapping
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
BOUNDS: Mapping[str, tuple[Any, str]] = {
    "minimum": (lambda value, bound: value >= bound, "at least"),
    "maximum": (lambda value, bound: value <= bound, "at most"),
    "exclusiveMinimum": (lambda value, bound: value > bound, "more than"),
    "exclusiveMaximum": (lambda value, bound: value < bound, "less than"),
}
LENGTHS: Mapping[type[str] | type[list[Any]], tuple[str, str, str]] = {
    str: ("minLength", "maxLength", "characters"),
    list: ("minItems", "maxItems", "items"),
}


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
        if not isinstance(schema, Mapping):
            return f"{where or 'arguments'}: nothing is allowed here" if schema is False else None
        for find in (_find_wrong_type, _find_wrong_choice, _find_wrong_size):
            if why := find(value, schema):
                return f"{where or 'arguments'}: {why}"
        branch = self.find_in_branches(value, schema, where, depth)
        return branch or self.find_in_parts(value, schema, where, depth)

    def find_in_parts(self, value: Any, schema: Mapping[str, Any], where: str, depth: int) -> str | None:
        if isinstance(value, dict):
            return self.find_in_object(value, schema, where, depth)
        if isinstance(value, list) and "items" in schema:
            for number, item in enumerate(value):
                if misfit := self.find_misfit(item, schema["items"], _join(where, str(number)), depth + 1):
                    return misfit
        return None

    def find_in_branches(self, value: Any, schema: Mapping[str, Any], where: str, depth: int) -> str | None:
        for part in _list_parts(schema, "allOf"):
            if misfit := self.find_misfit(value, part, where, depth + 1):
                return misfit
        for key in ("anyOf", "oneOf"):
            misfits = []
            for part in _list_parts(schema, key):
                misfits.append(self.find_misfit(value, part, where, depth + 1))
            if misfits and None not in misfits:
                return misfits[0]
        return None

    def find_in_object(
        self, value: Mapping[str, Any], schema: Mapping[str, Any], where: str, depth: int
    ) -> str | None:
        properties = schema.get("properties")
        known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        for name in _list_parts(schema, "required"):
            if name not in value:
                return f"{_join(where, str(name))}: is required"
        more = True if schema.get("patternProperties") else schema.get("additionalProperties", True)
        for name, part in value.items():
            if name not in known and more is False:
                names = ", ".join(map(str, known)) or "none"
                return f"{_join(where, shorten(name))}: is unknown; known are {names}"
            if misfit := self.find_misfit(part, known.get(name, more), _join(where, name), depth + 1):
                return misfit
        return None


def _find_wrong_type(value: Any, schema: Mapping[str, Any]) -> str | None:
    given = schema.get("type")
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names:
        return None
    for name in names:
        if name not in TYPES or _has_type(value, name):
            return None
    kinds = " or ".join(f"an {name}" if name[0] in "aio" else f"a {name}" for name in names)
    return f"must be {kinds}, got {shorten(repr(value))}"


def _has_type(value: Any, name: str) -> bool:
    if isinstance(value, bool) and name != "boolean":
        return False
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES[name])


def _find_wrong_choice(value: Any, schema: Mapping[str, Any]) -> str | None:
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(choices, list) or value in choices:
        return None
    return f"must be one of {shorten(', '.join(map(repr, choices)), 200)}, got {shorten(repr(value))}"


def _find_wrong_size(value: Any, schema: Mapping[str, Any]) -> str | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        for key, (fits, words) in BOUNDS.items():
            bound = schema.get(key)
            if type(bound) in (int, float) and not fits(value, bound):
                return f"must be {words} {bound}, got {value}"
    for kind, (least, most, unit) in LENGTHS.items():
        if not isinstance(value, kind):
            continue
        if isinstance(schema.get(least), int) and len(value) < schema[least]:
            return f"must have at least {schema[least]} {unit}, has {len(value)}"
        if isinstance(schema.get(most), int) and len(value) > schema[most]:
            return f"must have at most {schema[most]} {unit}, has {len(value)}"
    return None


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
