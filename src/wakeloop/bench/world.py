"""The tools of a world, for files and programs."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from wakeloop.text.descriptions import describe
from wakeloop.tools import FileLimits, file_tools
from wakeloop.tools.bounded_process import BoundedOutput, run_process
from wakeloop.tools.files import FilePath
from wakeloop.tools.folder import ConfinedFolder, explain_os_errors, quote_path

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
