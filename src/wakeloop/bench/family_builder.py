"""How a family says what it is: parts, what is wanted."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

from langchain_core.tools import BaseTool

from wakeloop.bench.program_check import answers_match
from wakeloop.bench.task import Call, Check, Family, Kind, Step, Task
from wakeloop.bench.world import world_tools
from wakeloop.testing.jobs import seeded_random

LENGTHS = (1, 5, 20, 60)
_WORDS = [
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "iris", "juniper", "kestrel"),
    *(
        "lagoon",
        "maple",
        "nectar",
        "opal",
        "quartz",
        "river",
        "saffron",
        "tundra",
        "umber",
        "violet",
        "willow",
    ),
]
_MOST_SPOILS = 3
RULE = re.compile(":?-+:?")  # what stands between head and rows of a Markdown table

Comparison = Literal["text", "table", "lines", "rows", "json", "program"]


@dataclass(frozen=True)
class Expected:
    """What a file is to hold, and how like it what is found has to be.

    `text`: the same lines, white space at their ends aside; `table`: a Markdown table of the same cells;
    `lines`: the same lines in any order; `rows`: the same, below the same head; `json`: the same value;
    `program`: Python whose functions answer the `cases` right.
    """

    text: str
    like: Comparison = "text"
    cases: tuple[tuple[str, str], ...] = ()

    def matches(self, found: str | None) -> bool:
        """Whether a file of this text is as wanted; None is no file."""
        if found is None or found == self.text:
            return found is not None
        if self.like == "program":
            return answers_match(found, self.cases)
        return _comparable(found, self.like) == _comparable(self.text, self.like)


@dataclass(frozen=True)
class Part:
    """One part of a job.

    Attributes:
        files: What the world begins with for it.
        wants: How files have to be in the end, by path; None is a file that must not be there.
        calls: How it is done; without them the wanted files are written and the unwanted ones deleted.
        told: What the last text has to name.
        found: Nobody knows of it before the part before it is done.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    wants: Mapping[str, Expected | None] = field(default_factory=dict)
    calls: tuple[Call, ...] | None = None
    told: str = ""
    found: bool = False

    def solution(self) -> tuple[Call, ...]:
        """The calls that do it."""
        if self.calls is not None:
            return self.calls
        return tuple(
            write_call(path, want.text) if want else delete_call(path) for path, want in self.wants.items()
        )


def write_call(path: str, content: str) -> Call:
    """A call that writes a file."""
    return Call("write_file", {"path": path, "content": content})


def read_call(path: str) -> Call:
    """A call that reads one."""
    return Call("read_file", {"path": path})


def delete_call(path: str) -> Call:
    """A call that deletes one."""
    return Call("delete_file", {"path": path})


def move_call(source: str, target: str) -> Call:
    """A call that moves one."""
    return Call("move_file", {"source": source, "target": target})


def append_call(path: str, content: str) -> Call:
    """A call that appends to one."""
    return Call("append_file", {"path": path, "content": content})


def single_parts(
    prompt: str,
    label: str,
    *,
    kind: Kind = "work",
    lengths: tuple[int, ...] = LENGTHS,
    files: Mapping[str, str] | None = None,
    tools: Callable[[Path], Sequence[BaseTool]] = world_tools,
) -> Callable[[Callable[[Random, str], Part]], Family]:
    """A family whose parts are drawn one by one, by a function of dice and a name; `files` are in all worlds.

    The docstring says what it is about; `{}` in `label` is the part's name, `{list}` in `prompt` all names.
    """

    def family(part: Callable[[Random, str], Part]) -> Family:
        def parts(rng: Random, names: Sequence[str]) -> list[Part]:
            return [part(rng, name) for name in names]

        parts.__name__, parts.__doc__ = part.__name__, part.__doc__
        return connected_parts(prompt, label, kind=kind, lengths=lengths, files=files, tools=tools)(parts)

    return family


def connected_parts(
    prompt: str,
    label: str,
    *,
    kind: Kind = "work",
    lengths: tuple[int, ...] = LENGTHS,
    files: Mapping[str, str] | None = None,
    tools: Callable[[Path], Sequence[BaseTool]] = world_tools,
    closed: str | None = None,
) -> Callable[[Callable[[Random, Sequence[str]], list[Part]]], Family]:
    """A family whose parts hang together: drawn by a function of dice and all names.

    Into the folder `closed` nothing may be put that nobody asked for; "." is the whole world.
    """

    def family(draw: Callable[[Random, Sequence[str]], list[Part]]) -> Family:
        name = draw.__name__.strip("_").replace("_", "-")

        def make(seed: int, parts: int) -> Task:
            rng = seeded_random(f"{name}/{seed}/{parts}")
            names = [f"{rng.choice(_WORDS)}-{number}" for number in rng.sample(range(100, 1000), parts)]
            drawn = draw(rng, names)
            world = {**(files or {}), **{path: text for part in drawn for path, text in part.files.items()}}
            wants = {path: want for part in drawn for path, want in part.wants.items()}
            told = [part.told for part in drawn if part.told]
            return Task(
                family=name,
                seed=seed,
                parts=parts,
                prompt=prompt.format(list=", ".join(names)),
                files=world,
                steps=tuple(
                    Step(label.format(name), part.solution(), part.found)
                    for name, part in zip(names, drawn, strict=True)
                ),
                spoils=tuple(_draw_spoils(rng, world, wants)),
                check=lambda folder: [
                    *check_files(folder, world, wants),
                    *([] if closed is None else [check_nothing_added(folder, {*world, *wants}, closed)]),
                ],
                tools=tools,
                final="All done." + "".join(f" Not possible: {word}." for word in told),
                check_text=lambda text: [Check(f"says {word}", word in text) for word in told],
            )

        return Family(name, (draw.__doc__ or "").strip(), kind, lengths, make)

    return family


def check_files(folder: Path, world: Mapping[str, str], wants: Mapping[str, Expected | None]) -> list[Check]:
    """Whether files are as wanted, and those that nobody asked about as they were."""
    whole = {path: Expected(text) for path, text in world.items() if path not in wants} | dict(wants)
    return [
        Check(f"{path} {'is gone' if want is None else 'is right'}", _matches(read_text(folder, path), want),
              kept=path not in wants or _matches(world.get(path), want))
        for path, want in whole.items()
    ]  # fmt: skip


def check_nothing_added(folder: Path, known: Collection[str], within: str = ".") -> Check:
    """Whether no file has been added."""
    found = {path.relative_to(folder).as_posix() for path in (folder / within).rglob("*") if path.is_file()}
    where = "" if within == "." else f" to {within}"
    return Check(f"no file was added{where}", found <= set(known), kept=True)


def read_text(folder: Path, path: str) -> str | None:
    """The text of a file, None if it is no readable one; a pipe would be waited for."""
    try:
        return (folder / path).read_text(encoding="utf-8") if (folder / path).is_file() else None
    except (OSError, UnicodeError):
        return None


def _matches(found: str | None, want: Expected | None) -> bool:
    return found is None if want is None else want.matches(found)


def _draw_spoils(
    rng: Random, world: Mapping[str, str], wants: Mapping[str, Expected | None]
) -> Iterator[Call]:
    """What makes finished work worse: a file tidied up, a file brought back, a source thrown away."""
    for path in rng.sample(sorted(wants), min(_MOST_SPOILS - 1, len(wants))):
        yield write_call(path, "Tidied up.\n")
    if sources := sorted(world.keys() - wants.keys()):
        yield delete_call(rng.choice(sources))


def _comparable(text: str, like: Comparison) -> object:
    """What of a text is compared."""
    if like == "json":
        try:
            return json.dumps(json.loads(text), sort_keys=True)
        except ValueError:
            return text
    lines = [line.rstrip() for line in text.strip().splitlines()]
    if like == "table":
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
        return [["-" if RULE.fullmatch(cell) else cell for cell in row] for row in rows]
    if like == "rows":
        return [*lines[:1], *sorted(lines[1:])]
    return sorted(lines) if like == "lines" else lines
