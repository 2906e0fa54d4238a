"""Arguments checked against a JSON schema: whatever certainly does not fit is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest

from wakeloop.checks.json_schema import find_misfit

MAIL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "minLength": 1},
        "copies": {"type": "integer", "minimum": 1, "exclusiveMaximum": 10},
        "how": {"enum": ["now", "later"]},
        "files": {"type": "array", "items": {"$ref": "#/$defs/file"}, "maxItems": 2},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["to"],
    "$defs": {"file": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
}
CLOSED = {**MAIL, "additionalProperties": False}


@pytest.mark.parametrize(
    ("args", "schema", "why"),
    [
        ({"to": "b"}, MAIL, None),
        ({"to": "b", "copies": 2, "how": "now", "files": [{"path": "a"}], "note": None}, CLOSED, None),
        ({"to": "b", "copies": 2.0}, MAIL, None),
        ({"to": "b", "more": 1}, MAIL, None),
        ({"to": 5}, MAIL, "to: must be a string, got 5"),
        ({}, MAIL, "to: is required"),
        ({"to": ""}, MAIL, "to: must have at least 1 characters, has 0"),
        ({"to": "b", "copies": True}, MAIL, "copies: must be an integer, got True"),
        ({"to": "b", "copies": 0}, MAIL, "copies: must be at least 1, got 0"),
        ({"to": "b", "copies": 10}, MAIL, "copies: must be less than 10, got 10"),
        ({"to": "b", "how": "never"}, MAIL, "how: must be one of 'now', 'later', got 'never'"),
        ({"to": "b", "files": [{"path": 1}]}, MAIL, "files.0.path: must be a string, got 1"),
        ({"to": "b", "files": [{}]}, MAIL, "files.0.path: is required"),
        ({"to": "b", "files": [{"path": "a"}] * 3}, MAIL, "files: must have at most 2 items, has 3"),
        ({"to": "b", "note": 1}, MAIL, "note: must be a string, got 1"),
        ({"to": "b", "cc": 1}, CLOSED, "cc: is unknown; known are to, copies, how, files, note"),
        ([], MAIL, "arguments: must be an object, got []"),
        (
            {"x": [0] * 10_001, "y": 1},
            {"properties": {"x": {"type": "array"}, "y": {"type": "string"}}},
            "y: must be a string, got 1",
        ),
        ({"x": 1}, {}, None),
        ({"x": 1}, {"properties": {"x": False}}, "x: nothing is allowed here"),
        ({"x": 1}, {"properties": {"x": {"$ref": "https://example.org/x"}}}, None),
        ({"x": 1}, {"properties": {"x": {"$ref": "#/properties/x"}}}, None),
        ({"x": 1}, {"type": 5, "properties": [], "required": "x", "allOf": {}}, None),
    ],
)
def test_what_fits(args: Any, schema: Any, why: str | None) -> None:
    assert find_misfit(args, schema) == why


def test_a_hostile_schema_takes_no_time() -> None:
    defs = {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(28)}
    pattern = {"type": "string", "pattern": "^(a+)+$"}
    began = time.process_time()
    assert (
        find_misfit({"x": "a" * 40 + "!"}, {"properties": {"x": pattern}, "$ref": "#/$defs/0", "$defs": defs})
        is None
    )
    assert time.process_time() - began < 1
