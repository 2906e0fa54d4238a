"""Tasks: a world and its tools, a job in it, hidden checks."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated, Literal, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException

from wakeloop.testing.jobs import Call as Call  # noqa: PLC0414 - part of a task
from wakeloop.testing.jobs import Step as Step  # noqa: PLC0414
from wakeloop.text.descriptions import describe
from wakeloop.tools import FileLimits, file_tools
from wakeloop.tools.bounded_process import BoundedOutput, run_process
from wakeloop.tools.files import FilePath
from wakeloop.tools.folder import ConfinedFolder, explain_os_errors, quote_path

HASH = 12  # characters of a hash that are used
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


_SECONDS = 10
_LONGEST = 1_000_000  # bytes of a program's output


def world_tools(folder: Path) -> list[BaseTool]:
    """Return the tools of every task: the file tools, and append, move and delete, confined to the folder."""
    world = WorldTools(ConfinedFolder(folder), FileLimits())
    tools = [*file_tools(folder)]
    for method in (world.append_file, world.move_file, world.delete_file):
        tools.append(StructuredTool.from_function(method))
    return tools


def program_tools(folder: Path) -> list[BaseTool]:
    """Return the same tools with `run_python`, for tasks whose programs have tests."""
    world = WorldTools(ConfinedFolder(folder), FileLimits())
    return [*world_tools(folder), StructuredTool.from_function(world.run_python)]


def lamp_tools(folder: Path) -> list[BaseTool]:
    """Return a small toolbox: two tools of one argument."""
    lamps = Lamps(ConfinedFolder(folder))
    return [StructuredTool.from_function(lamps.switch_on), StructuredTool.from_function(lamps.switch_off)]


@dataclass(frozen=True)
class WorldTools:
    """The other tools as methods, each with the description that the model reads."""

    folder: ConfinedFolder
    limits: FileLimits

    @describe("Append text to the end of a text file; a missing file is made.")
    def append_file(self, path: FilePath, content: Annotated[str, "The text to append."]) -> str:
        is_new = not self.folder.resolve(path).exists()
        before = b"" if is_new else self.folder.read(path, self.limits.read)
        after = before + content.encode("utf-8", errors="replace")
        self.folder.write(path, after)
        return f"Appended to {quote_path(path)}: {len(after)} bytes now."

    @describe("Move or rename a file; nothing is replaced, missing folders are made.")
    def move_file(
        self, source: FilePath, target: Annotated[str, "The new path, relative to the root folder."]
    ) -> str:
        old, new = self.folder.resolve(source), self.folder.resolve(target)
        with explain_os_errors(source):
            if not old.is_file():
                raise FileNotFoundError(source)
        if new.exists():
            raise ToolException(f"{quote_path(target)} exists already; it stays as it is.")
        with explain_os_errors(target):
            new.parent.mkdir(parents=True, exist_ok=True)
            old.rename(new)
        return f"Moved {quote_path(source)} to {quote_path(target)}."

    @describe("Delete a file.")
    def delete_file(self, path: FilePath) -> str:
        with explain_os_errors(path):
            self.folder.resolve(path).unlink()
        return f"Deleted {quote_path(path)}."

    @describe("Run a Python file of the folder, such as a test; returns exit code and output.")
    def run_python(self, path: FilePath) -> str:
        real = self.folder.resolve(path)
        with explain_os_errors(path):
            if not real.is_file():
                raise FileNotFoundError(path)
        code, output = run_python([str(real)], self.folder.root)
        return f"Exit code {code}.\n{output[-4_000:]}"


LampName = Annotated[str, "The lamp's name."]


@dataclass(frozen=True)
class Lamps:
    """Lamps, each a file `lamps/NAME.txt` that says `on` or `off`."""

    folder: ConfinedFolder

    @describe("Switch a lamp on.")
    def switch_on(self, lamp: LampName) -> str:
        return self._switch(lamp, "on")

    @describe("Switch a lamp off.")
    def switch_off(self, lamp: LampName) -> str:
        return self._switch(lamp, "off")

    def _switch(self, lamp: str, state: str) -> str:
        path = f"lamps/{lamp}.txt"
        if not self.folder.resolve(path).exists():
            raise ToolException(f"There is no lamp {lamp!r}.")
        self.folder.write(path, f"{state}\n".encode())
        return f"{lamp} is {state}."


def run_python(args: Sequence[str], folder: Path, stdin: str = "") -> tuple[int, str]:
    """Run Python without this process's environment and site packages; return exit code and output.

    This is not a sandbox: a program has the rights of this process. After ten seconds it is ended. Other
    processes of its process group end with it.
    """
    bare = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LANG") if name in os.environ}
    command = [sys.executable, "-E", "-s", "-S", "-B", *args]
    said = BoundedOutput(_LONGEST)
    code = run_process(command, folder, _SECONDS, said, env=bare, typed=stdin)
    if code is None:
        return -1, f"It was ended after {_SECONDS} seconds."
    return code, said.render().replace("\r\n", "\n")


_PROGRAM = """
import json, sys
source, asked = json.load(sys.stdin)
names = {"__name__": "checked"}
exec(compile(source, "program", "exec"), names)
print()
print(json.dumps([repr(eval(one, names)) for one in asked]))
"""


@lru_cache(maxsize=4096)
def answers_match(source: str, cases: tuple[tuple[str, str], ...]) -> bool:
    """Return whether expressions have the expected `repr`, evaluated in a process that doesn't know it."""
    asked, answers = [], []
    for expression, answer in cases:
        asked.append(expression)
        answers.append(answer)
    _, output = run_python(["-c", _PROGRAM], Path(gettempdir()), json.dumps([source, asked]))
    return output.splitlines()[-1:] == [json.dumps(answers)]
