"""Jobs for a weak model: steps and the calls that do them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple, Protocol

from wakeloop.testing.schema_examples import make_example

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
