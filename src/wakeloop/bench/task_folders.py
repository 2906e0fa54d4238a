"""Tasks from the user's own folders."""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wakeloop.bench.task import (
    HASH,
    Call,
    Check,
    Step,
    Task,
    is_complete,
    program_tools,
    world_tools,
    write_files,
)
from wakeloop.config.files import read_yaml
from wakeloop.errors import SettingsError
from wakeloop.platform.computed_once import computed_once
from wakeloop.text.characters import pluralize
from wakeloop.text.wording import suggest
from wakeloop.tools.bounded_process import BoundedOutput, run_process

FILE = "task.yaml"
SECONDS = 60  # how long a check may take
LONGEST = 1_000_000  # bytes of its output
_LINE = re.compile(r"^(ok|not ok) (.+)$", re.MULTILINE)


class SheetStep(BaseModel):
    """A step, for the weak model."""

    model_config = ConfigDict(extra="forbid")
    label: str = Field(min_length=1)
    calls: list[tuple[str, dict[str, Any]]]
    found: bool = False


class Sheet(BaseModel):
    """The content of `task.yaml`; unknown keys are refused with the nearest known one."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    prompt: str = Field(min_length=1)
    """The user's message."""
    parts: int = Field(1, ge=0)
    """The number of parts; 0 for a question."""
    check: list[str] | None = Field(None, min_length=1)
    """The command of the check. Default: run `check.py` with this Python."""
    says: list[str] = []
    """Words that the last text must contain."""
    tools: Literal["files", "programs"] = "files"
    """The file tools, or the file tools and `run_python`."""
    steps: list[SheetStep] = []
    """One correct solution, only for the weak model: steps with `label` and `calls` (name, arguments)."""
    spoils: list[tuple[str, dict[str, Any]]] = []
    """Calls that damage finished work, only for the weak model."""


def load_tasks(path: str | Path) -> list[Task]:
    """Return the tasks in a folder: that of its `task.yaml`, or those of the folders in it, sorted by name.

    A task is a folder with `task.yaml`, `files/` (the world at the beginning) and `check.py` or a command
    under `check`. The check runs in the world's folder, with the task's folder as its last argument. It
    prints a line `ok NAME` or `not ok NAME` for each result. Its exit code counts as a result if it prints
    none, or if the code is not 0 although every line is ok. Whatever is ok before any work has to stay so.

    The check runs with the rights of this process, in a copy of the world, for at most a minute; its whole
    process group ends with it. Raises SettingsError, with file and line, for an invalid `task.yaml`,
    and for a folder without a task.
    """
    return [*map(_load_task, _find_folders(Path(path).resolve()))]


def check_tasks(path: str | Path) -> None:
    """Raise `SettingsError`, with the folder's name, for tasks that say nothing about an agent.

    The checks of a task with parts must not all pass before any work. If the task has steps, they must all
    pass after these.
    """
    root = Path(path).resolve()
    for folder in _find_folders(root):
        task, before = _load_task(folder), digest_tasks(folder)
        with TemporaryDirectory() as name:
            world = Path(name).resolve()
            task.lay_out(world)
            if task.parts and is_complete(task.checks(world, "")):
                raise SettingsError(
                    f"The checks of {folder} all hold before any work, so they show nothing. Fix them, "
                    "or set `parts: 0` if there is nothing to do."
                )
            refused: list[str] = []
            for step in task.steps:
                refused += _refused_calls(step.calls, task, world)
            failing = [check.name for check in task.checks(world, task.final) if not check.passed]
            if task.steps and failing:
                message = f"The steps of {folder} do not complete it: {failing[0]!r} fails after them"
                why = refused[0] if refused else cast(Checker, task.check).words
                if why:
                    message += f" ({why})"
                raise SettingsError(f"{message}.")
            if digest_tasks(folder) != before:
                raise SettingsError(
                    f"The check of {folder} writes into its own folder, where the next run finds it. "
                    "Let it write into its working directory."
                )


def digest_tasks(path: str | Path, *journal: Path) -> str:
    """Return what changes when anything in a folder's tasks does.

    Files next to the tasks don't count, nor does the journal of a run inside a task, or files next to it.
    """
    found, root = hashlib.sha256(), Path(path).resolve()
    for folder in _find_folders(root):
        ours = []
        for mine in journal:
            # A journal next to the tasks is ignored alone; one inside a task with its whole folder.
            ours.append(mine if folder.is_relative_to(mine.parent) else mine.parent)
        for file in sorted(folder.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and not any(map(file.is_relative_to, ours)):
                text = file.read_bytes()
                found.update(f"{file.relative_to(root).as_posix()}\0{len(text)}\0".encode() + text)
    return found.hexdigest()[:HASH]


def _refused_calls(calls: Sequence[Call], task: Task, world: Path) -> Iterator[str]:
    """Make calls, and yield why some were refused."""
    tools = {tool.name: tool for tool in task.tools(world)}
    for name, args in calls:
        try:
            tools[name].invoke(dict(args))
        except KeyError:
            yield f"there is no tool {name!r}"
        except Exception as error:  # noqa: BLE001 - a tool may raise anything
            yield f"{name}: {' '.join(str(error).split())}".rstrip(".")


def _find_folders(root: Path) -> list[Path]:
    """Return the folders of tasks: this one, or those in it. Raises `SettingsError` without any."""
    if (root / FILE).is_file():
        return [root]
    here = sorted(sheet.parent for sheet in root.glob(f"*/{FILE}"))
    if not here:
        raise SettingsError(f"{root} has no task: add a {FILE} to it, or to folders in it.")
    return here


def _load_task(folder: Path) -> Task:
    sheet = _read_sheet(folder / FILE)
    command = sheet.check or [sys.executable, str(folder / "check.py")]
    if sheet.check is None and not (folder / "check.py").is_file():
        raise SettingsError(
            f"{folder} has no check: add a check.py next to {FILE}, or a command under `check`."
        )
    if sheet.check is None:
        _check_syntax(folder / "check.py")
    files = _read_files(folder / "files")
    return Task(
        family=folder.name,
        seed=0,
        parts=sheet.parts,
        prompt=sheet.prompt,
        files=files,
        steps=tuple(Step(part.label, _calls(part.calls), part.found) for part in sheet.steps),
        spoils=_calls(sheet.spoils),
        check=Checker(command, folder, files),
        tools=program_tools if sheet.tools == "programs" else world_tools,
        final=" ".join(["All done.", *sheet.says]),
        check_text=lambda text: [Check(f"says {word}", word in text) for word in sheet.says],
    )


def _calls(given: list[tuple[str, dict[str, Any]]]) -> tuple[Call, ...]:
    return tuple(starmap(Call, given))


def _read_sheet(path: Path) -> Sheet:
    document = read_yaml(path)
    try:
        return Sheet.model_validate(dict(document.values))
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else None
        if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
            why = f"unknown key {key!r}. {suggest(key, Sheet.model_fields)}"
            raise document.error(key, why) from None
        where = ".".join(map(str, first["loc"]))
        raise document.error(key, f"{where}: {first['msg']}") from None


def _check_syntax(program: Path) -> None:
    """Raise `SettingsError` for a check that is not valid Python: it would always fail."""
    try:
        compile(program.read_bytes(), str(program), "exec")
    except (SyntaxError, ValueError) as error:
        raise SettingsError(f"{program} is not valid Python: {error}.") from None


def _read_files(folder: Path) -> dict[str, str]:
    """Return the initial files: every text file below `files/`."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            try:
                found[path.relative_to(folder).as_posix()] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                raise SettingsError(f"{path} is not UTF-8 text. A task's files must be text.") from None
    return found


def _uncopyable(folder: str, names: list[str]) -> list[str]:
    """Return the names that can't be copied: pipes, sockets, devices, and unreadable files."""
    return [name for name in names if not _can_copy(Path(folder, name))]


def _can_copy(path: Path) -> bool:
    if path.is_symlink():
        return True
    if path.is_dir():
        return os.access(path, os.R_OK | os.X_OK)
    return path.is_file() and os.access(path, os.R_OK)


@dataclass
class Checker:
    """The check of a folder. Results that pass in the untouched world have to stay so, see `Check.kept`."""

    command: Sequence[str]
    folder: Path
    files: Mapping[str, str]
    words: str = ""  # the last line of its errors

    def __call__(self, world: Path) -> list[Check]:
        """Return its results for a world. Raises `SettingsError` for a check that can't be run."""
        before = self.held_before
        return [Check(name, passed, name in before) for name, passed in self.run(world)]

    @computed_once
    def held_before(self) -> frozenset[str]:
        """The names of the results that pass before any work."""
        with TemporaryDirectory() as name:
            write_files(self.files, Path(name))
            return frozenset(thing for thing, passed in self.run(Path(name)) if passed)

    def run(self, world: Path) -> list[tuple[str, bool]]:
        """Run it in a copy of the world, so that the running agent does not see its files."""
        output, errors = BoundedOutput(LONGEST), BoundedOutput(LONGEST)
        with TemporaryDirectory() as name:
            copy, temporary = Path(name, "world"), Path(name, "tmp")
            temporary.mkdir()
            env = os.environ | {"TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
            try:
                shutil.copytree(world, copy, symlinks=True, ignore=_uncopyable)
                command = [*self.command, str(self.folder)]
                code = run_process(command, copy, SECONDS, output, errors=errors, env=env)
            except OSError as error:
                raise SettingsError(f"The check of {self.folder} could not be run: {error}.") from None
        self.words = next(iter(errors.render().strip().splitlines()[-1:]), "").strip()
        if code is None:
            raise SettingsError(
                f"The check of {self.folder} did not end within {pluralize(SECONDS, 'second')}."
            )
        if code < 0:
            raise SettingsError(f"The check of {self.folder} was ended by signal {-code}.")
        lines = [(name.strip(), word == "ok") for word, name in _LINE.findall(output.render())]
        failed = code != 0 and all(passed for _, passed in lines)  # it may have crashed halfway
        if failed or not lines:
            lines.append(("the check", not failed))
        return lines
