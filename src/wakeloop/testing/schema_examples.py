"""Makes values that fit a JSON schema."""

import math
from collections.abc import Mapping
from random import Random
from typing import Any

_FORMATS = {
    "date": "2024-02-29",
    "date-time": "2024-02-29T12:00:00Z",
    "time": "12:00:00Z",
    "email": "someone@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_DEEPEST = 12
_SPREAD = 9


def make_example(schema: Mapping[str, Any], rng: Random, text: str) -> Any:
    """Make a value for `schema`: required properties only, numbers near their bounds, `text` for strings.

    It follows `$ref` within the schema, takes the first alternative that is not null, and ignores `pattern`.
    """
    return _Maker(schema, rng, text).make(schema)


class _Maker:
    """Makes one example, part by part."""

    def __init__(self, root: Mapping[str, Any], rng: Random, text: str) -> None:
        self.root = root
        self.rng = rng
        self.text = text

    def make(self, schema: Mapping[str, Any], depth: int = 0) -> Any:
        """Return a value for this part of the schema; None once a recursive schema gets too deep."""
        if depth > _DEEPEST:
            return None
        values = schema.get("enum")
        if "const" in schema:
            values = [schema["const"]]
        if values:
            return self.rng.choice(values)
        if "$ref" in schema:
            return self.make(self._resolve(schema["$ref"]), depth + 1)
        alternatives = schema.get("anyOf", schema.get("oneOf", ()))
        choices = [part for part in alternatives if part.get("type") != "null"]
        if choices:
            return self.make(choices[0], depth + 1)
        if "allOf" in schema:
            return self._join_parts(schema, depth)
        return self._make_typed(schema, depth)

    def _make_typed(self, schema: Mapping[str, Any], depth: int) -> Any:
        value: Any = None
        match _type_of(schema):
            case "object":
                value = self._object(schema, depth)
            case "array":
                value = self._array(schema, depth)
            case "integer":
                value = self._integer(schema)
            case "number":
                value = float(self._integer(schema)) if _has_room(schema) else _middle(schema)
            case "boolean":
                value = self.rng.choice([False, True])
            case "string":
                value = self._string(schema)
        return value

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        known = schema.get("properties", {})
        return {name: self.make(known.get(name, {}), depth + 1) for name in schema.get("required", ())}

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        items = schema.get("items", {})
        return [self.make(items, depth + 1) for _ in range(schema.get("minItems", 1))]

    def _join_parts(self, schema: Mapping[str, Any], depth: int) -> Any:
        made = self._object(schema, depth)
        for part in schema["allOf"]:
            value = self.make(part, depth + 1)
            if not isinstance(value, dict):
                return value
            made |= value
        return made

    def _integer(self, schema: Mapping[str, Any]) -> int:
        step = max(int(schema.get("multipleOf", 1)), 1)
        low, high = _bounds(schema)
        if low is None:
            low = 1
            if high is not None:
                low = min(1, high)
        low = -(-low // step)
        most = low + _SPREAD
        if high is not None:
            most = min(high // step, most)
        return self.rng.randint(low, max(low, most)) * step

    def _string(self, schema: Mapping[str, Any]) -> str:
        text = str(_FORMATS.get(schema.get("format", ""), self.text))
        text = text.ljust(schema.get("minLength", 0), ".")
        return text[: schema.get("maxLength", len(text))]

    def _resolve(self, ref: str) -> Mapping[str, Any]:
        found: Any = self.root
        for key in ref.removeprefix("#").strip("/").split("/"):
            if key:
                found = found[key]
        return found if isinstance(found, Mapping) else {}


def _type_of(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "object" if schema.keys() & {"properties", "required"} else "string")
    if isinstance(kind, list):
        return next((str(one) for one in kind if one != "null"), "null")
    return str(kind)


def _bounds(schema: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the least and the greatest whole number that the schema allows; None is no limit."""
    lows: list[int] = []
    highs: list[int] = []
    if "minimum" in schema:
        lows.append(math.ceil(schema["minimum"]))
    if "exclusiveMinimum" in schema:
        lows.append(math.floor(schema["exclusiveMinimum"]) + 1)
    if "maximum" in schema:
        highs.append(math.floor(schema["maximum"]))
    if "exclusiveMaximum" in schema:
        highs.append(math.ceil(schema["exclusiveMaximum"]) - 1)
    return max(lows, default=None), min(highs, default=None)


def _has_room(schema: Mapping[str, Any]) -> bool:
    low, high = _bounds(schema)
    return low is None or high is None or low <= high


def _middle(schema: Mapping[str, Any]) -> float:
    """Return the middle of bounds that have no whole number between them."""
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    return float(low + high) / 2
