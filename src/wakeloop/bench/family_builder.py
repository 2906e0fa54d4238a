"""Builds families of tasks from parts and expected files."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

from langchain_core.tools import BaseTool

from wakeloop.bench.task import Call, Check, Family, Step, Task, answers_match, world_tools
from wakeloop.config.files import read_yaml
from wakeloop.testing.jobs import seeded_random

LENGTHS = (1, 5, 20, 60)
WORDS = read_yaml(Path(__file__).with_name("families.yaml")).values
_WORDS = [
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor"),
    *("iris", "juniper", "kestrel", "lagoon", "maple", "nectar", "opal", "quartz"),
    *("river", "saffron", "tundra", "umber", "violet", "willow"),
]
_MOST_SPOILS = 3
RULE = re.compile(":?-+:?")  # in the line below the head of a Markdown table

Comparison = Literal["text", "table", "rows", "json", "program"]


@dataclass(frozen=True)
class Expected:
    """What a file should contain, and how it is compared.

    `text`: the same lines, apart from white space at their ends; `table`: a Markdown table of the same cells;
    `rows`: the same lines in any order below the same head; `json`: the same value; `program`: Python whose
    functions return the right answers for the `cases`.
    """

    text: str
    like: Comparison = "text"
    cases: tuple[tuple[str, str], ...] = ()

    def matches(self, found: str | None) -> bool:
        """Return whether a file with this text is as expected; None means that there is no file."""
        if found is None:
            return False
        if found == self.text:
            return True
        if self.like == "program":
            return answers_match(found, self.cases)
        return _comparable(found, self.like) == _comparable(self.text, self.like)


@dataclass(frozen=True)
class Part:
    """One part of a job.

    Attributes:
        files: The files that it needs at the beginning.
        wants: The expected files at the end, by path; None is a file that must not exist.
        calls: The calls that do it; by default the wanted files are written and the unwanted ones deleted.
        mentioned: A name that the last text has to mention.
        found: Whether it only comes to light once the part before it is done.
        spoil: A call that damages it once it is done, where the tools cannot write files.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    wants: Mapping[str, Expected | None] = field(default_factory=dict)
    calls: tuple[Call, ...] | None = None
    mentioned: str = ""
    found: bool = False
    spoil: Call | None = None

    def solution(self) -> tuple[Call, ...]:
        """Return the calls that do this part."""
        if self.calls is not None:
            return self.calls
        made = []
        for path, want in self.wants.items():
            if want is None:
                made.append(delete_call(path))
            else:
                made.append(write_call(path, want.text))
        return tuple(made)


def write_call(path: str, content: str) -> Call:
    """Return a call that writes a file."""
    return Call("write_file", {"path": path, "content": content})


def read_call(path: str) -> Call:
    """Return a call that reads a file."""
    return Call("read_file", {"path": path})


def delete_call(path: str) -> Call:
    """Return a call that deletes a file."""
    return Call("delete_file", {"path": path})


def move_call(source: str, target: str) -> Call:
    """Return a call that moves a file."""
    return Call("move_file", {"source": source, "target": target})


def append_call(path: str, content: str) -> Call:
    """Return a call that appends to a file."""
    return Call("append_file", {"path": path, "content": content})


def single_parts(**options: Any) -> Callable[[Callable[[Random, str], Part]], Family]:
    """Make a family whose parts are drawn one by one, by a function of a random generator and a name."""

    def family(part: Callable[[Random, str], Part]) -> Family:
        def parts(rng: Random, names: Sequence[str]) -> list[Part]:
            return [part(rng, name) for name in names]

        parts.__name__, parts.__doc__ = part.__name__, part.__doc__
        return connected_parts(**options)(parts)

    return family


def connected_parts(
    *,
    files: Mapping[str, str] | None = None,
    tools: Callable[[Path], Sequence[BaseTool]] = world_tools,
    closed: str | None = None,
) -> Callable[[Callable[[Random, Sequence[str]], list[Part]]], Family]:
    """Make a family whose parts depend on each other: a function of dice and all names draws them.

    The function's docstring describes the family, and `families.yaml` has its words. `files` are in every
    world. Nothing may be added to the folder `closed` that was not asked for; "." is the whole world.
    """

    def family(draw: Callable[[Random, Sequence[str]], list[Part]]) -> Family:
        name = draw.__name__.replace("_", "-")
        words = WORDS[name]

        def make(seed: int, parts: int) -> Task:
            rng = seeded_random(f"{name}/{seed}/{parts}")
            names = [f"{rng.choice(_WORDS)}-{number}" for number in rng.sample(range(100, 1000), parts)]
            drawn = draw(rng, names)
            world = dict(files or {})
            wants: dict[str, Expected | None] = {}
            steps = []
            for part_name, part in zip(names, drawn, strict=True):
                world |= part.files
                wants |= part.wants
                steps.append(Step(words["label"].format(part_name), part.solution(), part.found))
            mentioned = [part.mentioned for part in drawn if part.mentioned]

            def check(folder: Path) -> list[Check]:
                checks = check_files(folder, world, wants)
                if closed is not None:
                    checks.append(check_nothing_added(folder, {*world, *wants}, closed))
                return checks

            return Task(
                family=name,
                seed=seed,
                parts=parts,
                prompt=words["prompt"].format(list=", ".join(names)),
                files=world,
                steps=tuple(steps),
                spoils=tuple(part.spoil for part in drawn if part.spoil)
                or tuple(_draw_spoils(rng, world, wants)),
                check=check,
                tools=tools,
                final=" ".join(["All done.", *map("Not possible: {}.".format, mentioned)]),
                check_text=lambda text: [Check(f"says {word}", word in text) for word in mentioned],
            )

        lengths = tuple(words.get("lengths", LENGTHS))
        return Family(name, draw.__doc__ or "", words.get("kind", "work"), lengths, make)

    return family


def check_files(folder: Path, world: Mapping[str, str], wants: Mapping[str, Expected | None]) -> list[Check]:
    """Return a check for each file: wanted files have to be right, all others unchanged."""
    checks = []
    for path, text in world.items():
        if path not in wants:
            is_right = Expected(text).matches(read_text(folder, path))
            checks.append(Check(f"{path} is right", is_right, kept=True))
    for path, want in wants.items():
        name = f"{path} is gone" if want is None else f"{path} is right"
        was_right = _matches(world.get(path), want)
        checks.append(Check(name, _matches(read_text(folder, path), want), kept=was_right))
    return checks


def check_nothing_added(folder: Path, known: Collection[str], within: str = ".") -> Check:
    """Return the check that no file has been added."""
    added = False
    for path in (folder / within).rglob("*"):
        added = added or (path.is_file() and path.relative_to(folder).as_posix() not in known)
    name = "no file was added" if within == "." else f"no file was added to {within}"
    return Check(name, not added, kept=True)


def read_text(folder: Path, path: str) -> str | None:
    """Return the text of a file, None if it is not a readable text file; reading a pipe would block."""
    file = folder / path
    try:
        return file.read_text(encoding="utf-8") if file.is_file() else None
    except (OSError, UnicodeError):
        return None


def _matches(found: str | None, want: Expected | None) -> bool:
    if want is None:
        return found is None
    return want.matches(found)


def _draw_spoils(
    rng: Random, world: Mapping[str, str], wants: Mapping[str, Expected | None]
) -> Iterator[Call]:
    """Draw calls that damage finished work: a file is overwritten or restored, or its source deleted."""
    for path in rng.sample(sorted(wants), min(_MOST_SPOILS - 1, len(wants))):
        yield write_call(path, "Tidied up.\n")
    if sources := sorted(world.keys() - wants.keys()):
        yield delete_call(rng.choice(sources))


def _comparable(text: str, like: Comparison) -> object:
    """Return the part of the text that is compared."""
    if like == "json":
        try:
            return json.dumps(json.loads(text), sort_keys=True)
        except ValueError:
            return text
    lines = [*map(str.rstrip, text.strip().splitlines())]
    if like == "table":
        cells = (re.sub(r"\s*\|\s*", "|", line.strip().strip("|")).strip() for line in lines)
        return [RULE.sub("-", row) for row in cells]
    if like == "rows":
        return [*lines[:1], *sorted(lines[1:])]
    return lines
