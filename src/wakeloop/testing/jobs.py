"""Jobs for a weak model: steps and the calls that do them."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple, Protocol

DONE = "All done."
OWN_LABEL = re.compile(r"(request \d+, )?part \d+ of \d+")


class Call(NamedTuple):
    """A tool call."""

    name: str
    args: Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """One part of the work.

    Attributes:
        label: Its text in a todo list.
        calls: The calls that do it, in this order.
        found: Whether it only comes to light once the step before it is done, so no plan can contain it.
        times: How often each call must have been accepted; counts earlier steps with the same calls.
    """

    label: str
    calls: tuple[Call, ...]
    found: bool = False
    times: int = 1


class Job(Protocol):
    """What a weak model has to do. The tasks of the bench have the same attributes."""

    @property
    def steps(self) -> Sequence[Step]:
        """The steps of one correct solution; empty if no work is needed."""

    @property
    def spoils(self) -> Sequence[Call]:
        """Calls that a finished model may make when it is pushed on; each one damages finished work."""

    @property
    def final(self) -> str:
        """The model's last text in a job without steps."""


@dataclass(frozen=True)
class PlainJob:
    """A job with fixed steps."""

    steps: Sequence[Step]
    spoils: Sequence[Call] = ()
    final: str = DONE


def seeded_random(seed: str) -> Random:
    """Return a random generator; the same seed gives the same numbers."""
    return Random(seed)  # noqa: S311 - draws must repeat, they keep no secret


def make_job(
    tools: Mapping[str, Mapping[str, Any]], seed: int, parts: int | Sequence[str], turns: int = 1
) -> PlainJob:
    """Make up a job for the user's latest request; its steps are calls of the `tools`.

    `parts` is the number of steps, or the labels of steps that somebody else planned. `turns` is the number
    of user requests so far. Without tools there is nothing to do.
    """
    if not tools:
        return PlainJob([])
    made: Counter[str] = Counter()
    steps: list[Step] = []
    for turn in range(1, turns + 1):
        steps = []
        for label in _labels(parts, turn):
            call = _example_call(tools, seeded_random(f"{seed}/job/{label}"), label)
            made[str(call)] += 1
            steps.append(Step(label, (call,), times=made[str(call)]))
    return PlainJob(steps)


def _labels(parts: int | Sequence[str], turn: int) -> Sequence[str]:
    if not isinstance(parts, int):
        return parts
    prefix = "" if turn == 1 else f"request {turn}, "
    return [f"{prefix}part {number} of {parts}" for number in range(1, parts + 1)]


def example_args(function: Mapping[str, Any], rng: Random, text: str) -> dict[str, Any]:
    """Return arguments that fit a tool's schema; `text` fills its free strings."""
    args: dict[str, Any] = make_example({"type": "object", **function.get("parameters", {})}, rng, text)
    return args


def _example_call(tools: Mapping[str, Mapping[str, Any]], rng: Random, label: str) -> Call:
    name = rng.choice(sorted(tools))
    return Call(name, example_args(tools[name], rng, label))


_FORMATS = {
    "date": "2024-02-29",
    "date-time": "2024-02-29T12:00:00Z",
    "time": "12:00:00Z",
    "email": "someone@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_DEEPEST = 12  # levels of a recursive schema
_SPREAD = 9  # of whole numbers above the least one


def make_example(  # noqa: PLR0911 - one for each kind of schema
    schema: Mapping[str, Any], rng: Random, text: str, root: Mapping[str, Any] | None = None, depth: int = 0
) -> Any:
    """Make a value for `schema`: required properties only, numbers near their bounds, `text` for strings.

    It follows `$ref` within the schema `root`, takes the first alternative that is not null, and ignores
    `pattern`. Once a recursive schema gets too deep, the value is None.
    """
    if depth > _DEEPEST:
        return None

    def inner(part: Mapping[str, Any]) -> Any:
        return make_example(part, rng, text, root or schema, depth + 1)

    if "const" in schema or schema.get("enum"):
        return rng.choice([schema["const"]] if "const" in schema else schema["enum"])
    alternatives = schema.get("anyOf", schema.get("oneOf", ()))
    choices = [part for part in alternatives if part.get("type") != "null"]
    if "$ref" in schema:
        choices = [_resolve_reference(root or schema, schema["$ref"])]
    if choices:
        return inner(choices[0])
    kind = _type_of(schema)
    if kind == "array":
        return [inner(schema.get("items", {})) for _ in range(schema.get("minItems", 1))]
    if kind != "object":
        return _make_scalar(schema, kind, rng, text)
    known = schema.get("properties", {})
    made: Any = {name: inner(known.get(name, {})) for name in schema.get("required", ())}
    for part in schema.get("allOf", ()):
        value = inner(part)
        if not isinstance(value, dict):
            return value
        made |= value
    return made


def _make_scalar(schema: Mapping[str, Any], kind: str, rng: Random, text: str) -> Any:
    made: Any = None
    if kind == "boolean":
        made = rng.choice([False, True])
    elif kind in ("integer", "number"):
        low, high = _whole_bounds(schema)
        has_room = low is None or high is None or low <= high
        if kind == "integer" or has_room:
            made = _make_integer(schema, rng)
        else:  # no whole number lies between them
            made = (_bound(schema, "Minimum") + _bound(schema, "Maximum")) / 2
        made = made if kind == "integer" else float(made)
    elif kind == "string":
        made = str(_FORMATS.get(schema.get("format", ""), text)).ljust(schema.get("minLength", 0), ".")
        made = made[: schema.get("maxLength", len(made))]
    return made


def _make_integer(schema: Mapping[str, Any], rng: Random) -> int:
    step = max(int(schema.get("multipleOf", 1)), 1)
    low, high = _whole_bounds(schema)
    if low is None:
        low = 1 if high is None else min(1, high)
    low = -(-low // step)
    most = low + _SPREAD if high is None else min(high // step, low + _SPREAD)
    return rng.randint(low, max(low, most)) * step


def _whole_bounds(schema: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the least and the greatest whole number that the schema allows; None means no limit."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        low = math.floor(schema["exclusiveMinimum"]) + 1
    if "exclusiveMaximum" in schema:
        high = math.ceil(schema["exclusiveMaximum"]) - 1
    return low if low is None else math.ceil(low), high if high is None else math.floor(high)


def _bound(schema: Mapping[str, Any], end: str) -> float:
    return float(schema.get(end.lower(), schema.get(f"exclusive{end}")))


def _type_of(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "object" if schema.keys() & {"properties", "required", "allOf"} else "string")
    if isinstance(kind, list):
        return next((str(one) for one in kind if one != "null"), "null")
    return str(kind)


def _resolve_reference(root: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    found: Any = root
    for key in reference.removeprefix("#").strip("/").split("/"):
        if key:
            found = found[key]
    return found if isinstance(found, Mapping) else {}
