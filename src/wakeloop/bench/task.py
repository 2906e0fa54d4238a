"""Tasks: a world, a job in it, hidden checks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from wakeloop.testing.jobs import Call as Call  # noqa: PLC0414 - part of a task
from wakeloop.testing.jobs import Step as Step  # noqa: PLC0414

CONTINUE_PROMPT = "Go on if anything is left to do; otherwise say that all is done."
Kind: TypeAlias = Literal["work", "found", "impossible", "already", "contradictory", "one", "question"]


@dataclass(frozen=True)
class Check:
    """The result of a hidden check of the world, or of the last text.

    Attributes:
        name: What is checked; unique within the task.
        passed: Whether the check passes.
        kept: Whether it passed before any work and has to stay so; its failure is damage.
    """

    name: str
    passed: bool
    kept: bool = False


@dataclass(frozen=True)
class Task:
    """A job in a folder. It has functions, so another process must make it again from family, seed and parts.

    Attributes:
        family: The name of its family.
        seed: The seed it was drawn from.
        parts: The number of parts; 0 for a question.
        prompt: The user's message.
        files: The files at the beginning: content by path.
        steps: One correct solution; `()` if no work is needed.
        spoils: Calls of a finished model that is pushed on; each one damages the world.
        check: Runs the hidden checks of the world, always the same ones in the same order.
        tools: Makes the tools for a folder; the same for every agent.
        final: The last text of a solver.
        check_text: Runs the hidden checks of the agent's last text, if the job is to report something.
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
        """Create a folder and write the initial files into it."""
        write_files(self.files, folder)

    def checks(self, folder: Path, said: str) -> list[Check]:
        """Run all hidden checks: of the world and of the last text."""
        return [*self.check(folder), *self.check_text(said)]


@dataclass(frozen=True)
class Family:
    """A kind of task, drawn from a seed.

    Attributes:
        name: Its name, in lower case with hyphens.
        about: One line that says what is to be done.
        kind: The difficulty that it tests.
        lengths: The numbers of parts that it offers.
        make: Makes the task for a seed and a number of parts.
    """

    name: str
    about: str
    kind: Kind
    lengths: tuple[int, ...]
    make: Callable[[int, int], Task]


@dataclass(frozen=True)
class Job:
    """The input of an agent, the same for all."""

    task: Task
    folder: Path
    model: BaseChatModel
    tools: list[BaseTool]
    config: RunnableConfig


@dataclass(frozen=True)
class Ending:
    """How an agent ended.

    Attributes:
        text: The last text of the model.
        signal: The result for a program: `done`, or `open` if the agent itself reports that work is left.
        reason: The agent's own word for the ending, if it has one.
        listed: The number of items on its list at the end.
        wakes: How often the agent, or a loop around it, asked the model to continue.
    """

    text: str
    signal: Literal["done", "open"]
    reason: str = ""
    listed: int = 0
    wakes: int = 0


def write_files(files: Mapping[str, str], folder: Path) -> None:
    """Create a folder and write files into it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def is_complete(checks: Sequence[Check]) -> bool:
    """Return whether the job is done: every check passes."""
    return all(check.passed for check in checks)


def share_of(checks: Sequence[Check]) -> float:
    """Return the share of the work that is done: of the checks that failed before it."""
    work = [check.passed for check in checks if not check.kept]
    if not work:
        return float(is_complete(checks))
    return sum(work) / len(work)


def find_damage(then: Sequence[Check], now: Sequence[Check]) -> list[str]:
    """Return the names of checks that passed then and fail now."""
    standing = {check.name for check in now if check.passed}
    return [check.name for check in then if check.passed and check.name not in standing]
