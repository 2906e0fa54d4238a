"""Arguments generated from a schema."""

from random import Random
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from wakeloop.testing.jobs import make_example


class Inner(BaseModel):
    name: str = Field(min_length=30)
    next: "Inner | None" = None


class Everything(BaseModel):
    text: str = Field(max_length=4)
    day: str = Field(json_schema_extra={"format": "date"})
    size: int = Field(ge=3, le=5)
    low: int = Field(lt=-2)
    odd: int = Field(gt=10, multiple_of=7)
    ratio: float = Field(gt=0, lt=1)
    price: float = Field(ge=2.5)
    flag: bool
    kind: Literal["a", "b"]
    one: Literal["only"]
    maybe: int | None
    nothing: None
    many: list[Inner] = Field(min_length=2)
    free: list[str]
    table: dict[str, int]
    either: Inner | int
    absent: str = "default"


@given(st.integers())
def test_an_example_fits_its_schema(seed: int) -> None:
    made = make_example(Everything.model_json_schema(), Random(seed), "some text")
    assert "absent" not in made
    assert len(Everything.model_validate(made, strict=True).many) == 2
    assert (made["text"], made["day"], made["one"], made["nothing"]) == ("some", "2024-02-29", "only", None)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, "t"),
        ({"properties": {}}, {}),
        ({"type": ["null", "string"]}, "t"),
        ({"type": "null"}, None),
        ({"type": "array", "minItems": 0}, []),
        (
            {"allOf": [{"required": ["a"]}, {"required": ["b"]}], "required": ["c"]},
            {"a": "t", "b": "t", "c": "t"},
        ),
        ({"allOf": [{"enum": ["x"]}], "default": "y"}, "x"),
        ({"oneOf": [{"type": "null"}, {"const": 4}]}, 4),
        ({"type": "object", "required": ["unknown"]}, {"unknown": "t"}),
        ({"type": "string", "minLength": 3}, "t.."),
    ],
)
def test_handwritten_schemas(schema: dict[str, Any], value: Any) -> None:
    assert make_example(schema, Random(1), "t") == value


def test_a_recursive_schema_ends() -> None:
    schema = {
        "$ref": "#/$defs/A",
        "$defs": {"A": {"properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]}},
    }
    made = make_example(schema, Random(1), "t")
    assert set(made) == {"a"}
    assert str(made).endswith("None" + "}" * str(made).count("{"))
