"""A task: a world, what to do in it, hidden checks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from langchain_core.tools import BaseTool

from wakeloop.testing.jobs import Call as Call  # noqa: PLC0414 - part of a task
from wakeloop.testing.jobs import Step as Step  # noqa: PLC0414

Kind: TypeAlias = Literal["work", "found", "impossible", "already", "contradictory", "one", "question"]


@dataclass(frozen=True)
class Check:
    """One hidden check and what it says of the world, or of the last text, as it stands.

    Attributes:
        name: What is checked, by a name that no other check of the task has.
        passed: Whether it holds.
        kept: It held before any work and has to hold afterwards: no work, but damage if it breaks.
    """

    name: str
    passed: bool
    kept: bool = False


@dataclass(frozen=True)
class Task:
    """A job in a folder. It holds functions: a process of its own makes it again from family, seed, parts.

    Attributes:
        family: The name of its kind.
        seed: What it was drawn from.
        parts: How many parts the work has; 0 for a question.
        prompt: What the user says.
        files: The world at the beginning: texts by path.
        steps: A right way to do it; `()` where no work is needed.
        spoils: What a finished model does if it is pushed on: each damages the world.
        check: The hidden checks of the world, always the same ones in the same order.
        tools: The tools for a folder; the same for every agent.
        final: What a solver says at the end.
        check_text: Hidden checks of the agent's last text, where a part of the job is to say something.
    """

    family: str
    seed: int
    parts: int
    prompt: str
    files: Mapping[str, str]
    steps: tuple[Step, ...]
    spoils: tuple[Call, ...]
    check: Callable[[Path], list[Check]]
    tools: Callable[[Path], Sequence[BaseTool]]
    final: str = "All done."
    check_text: Callable[[str], list[Check]] = field(default=lambda _text: [])

    def lay_out(self, folder: Path) -> None:
        """Write the world at the beginning into a folder, which is made."""
        write_files(self.files, folder)

    def checks(self, folder: Path, said: str) -> list[Check]:
        """All hidden checks: of the world and of the last text."""
        return [*self.check(folder), *self.check_text(said)]


@dataclass(frozen=True)
class Family:
    """A kind of task, drawn from a seed.

    Attributes:
        name: Its name, lower case, with hyphens.
        about: One line: what is to be done.
        kind: What it is there to show.
        lengths: For how many parts it is made.
        make: The task for a seed and a number of parts.
    """

    name: str
    about: str
    kind: Kind
    lengths: tuple[int, ...]
    make: Callable[[int, int], Task]


def write_files(files: Mapping[str, str], folder: Path) -> None:
    """Write files into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def is_complete(checks: Sequence[Check]) -> bool:
    """Whether the job is done: every check holds."""
    return all(check.passed for check in checks)


def share_of(checks: Sequence[Check]) -> float:
    """The share of the work that is done: of the checks that did not hold before it."""
    work = [check.passed for check in checks if not check.kept]
    return sum(work) / len(work) if work else float(is_complete(checks))


def find_damage(then: Sequence[Check], now: Sequence[Check]) -> list[str]:
    """The names of checks that held then and do not now."""
    standing = {check.name for check in now if check.passed}
    return [check.name for check in then if check.passed and check.name not in standing]
