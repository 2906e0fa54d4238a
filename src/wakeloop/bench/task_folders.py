"""Task folders of the user's own."""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wakeloop.bench.study import HASH
from wakeloop.bench.task import Call, Check, Step, Task, is_complete, write_files
from wakeloop.bench.world import program_tools, world_tools
from wakeloop.config.files import read_yaml
from wakeloop.errors import SettingsError
from wakeloop.platform.computed_once import computed_once
from wakeloop.text.characters import pluralize
from wakeloop.tools.bounded_process import BoundedOutput, run_process

FILE = "task.yaml"
SECONDS = 60  # that a check may take
LONGEST = 1_000_000  # bytes of what it says
_LINE = re.compile(r"^(ok|not ok) (.+)$", re.MULTILINE)


class SheetStep(BaseModel):
    """A step, for the weak model."""

    model_config = ConfigDict(extra="forbid")
    label: str = Field(min_length=1)
    calls: list[tuple[str, dict[str, Any]]]
    found: bool = False


class Sheet(BaseModel):
    """What `task.yaml` holds: unknown keys are refused with the nearest right one."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    prompt: str = Field(min_length=1)
    """What the user says."""
    parts: int = Field(1, ge=0)
    """How many parts the work has; 0 for a question."""
    check: list[str] | None = Field(None, min_length=1)
    """The command of the check; without it `check.py`, run by this Python."""
    says: list[str] = []
    """Words that the last text has to hold."""
    tools: Literal["files", "programs"] = "files"
    """The file tools, or these with `run_python`."""
    steps: list[SheetStep] = []
    """A right way to do it, only for the weak model: steps of `label` and `calls` (name, arguments)."""
    spoils: list[tuple[str, dict[str, Any]]] = []
    """What makes finished work worse, only for the weak model."""


def load_tasks(path: str | Path) -> list[Task]:
    """The tasks in a folder: its own `task.yaml`, or those of the folders in it, in order of their names.

    A task is a folder with `task.yaml`, `files/` (the world at the beginning) and `check.py` or a command
    under `check`. The check is run in the world's folder, with the task's folder as its last argument, and
    says `ok NAME` or `not ok NAME` on a line for each thing that it looks at; its exit code is a check where
    it says none, and where it is not 0 though every line is ok. What is ok before any work has to stay so.

    It is run with the rights of this process, in a copy of the world, for a minute at most; what it leaves
    running in its process group ends with it. Raises SettingsError, with file and line, for a sheet that
    can't be read, and where there is no task.
    """
    return [_load_task(folder) for folder in _find_folders(Path(path).resolve())]


def check_tasks(path: str | Path) -> None:
    """Refuse tasks that say nothing of an agent. Raises `SettingsError` with the folder's name.

    The checks of a task with parts must not all hold before any work, and they must when its steps are made,
    if it tells any.
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
            refused = [said for step in task.steps for said in _refused_calls(step.calls, task, world)]
            failing = [check.name for check in task.checks(world, task.final) if not check.passed]
            if task.steps and failing:
                why = [*refused, cast(Checker, task.check).words]
                raise SettingsError(
                    f"The steps of {folder} do not complete it: {failing[0]!r} fails after them"
                    f"{next((f' ({one})' for one in why if one), '')}."
                )
            if digest_tasks(folder) != before:
                raise SettingsError(
                    f"The check of {folder} writes into its own folder, where the next run finds it. "
                    "Let it write into its working directory."
                )


def digest_tasks(path: str | Path, *journal: Path) -> str:
    """Return what changes when anything in a folder's tasks does.

    What stands beside the tasks is none of them, nor are the journal of a run in one and what lies beside it.
    """
    found, root = hashlib.sha256(), Path(path).resolve()
    for folder in _find_folders(root):
        ours = [mine if folder.is_relative_to(mine.parent) else mine.parent for mine in journal]
        for file in sorted(folder.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and not any(map(file.is_relative_to, ours)):
                text = file.read_bytes()
                found.update(f"{file.relative_to(root).as_posix()}\0{len(text)}\0".encode() + text)
    return found.hexdigest()[:HASH]


def _refused_calls(calls: Sequence[Call], task: Task, world: Path) -> Iterator[str]:
    """Make calls, and say which were refused, and why."""
    tools = {tool.name: tool for tool in task.tools(world)}
    for name, args in calls:
        try:
            tools[name].invoke(dict(args))
        except KeyError:
            yield f"there is no tool {name!r}"
        except Exception as error:  # noqa: BLE001 - a tool may raise anything
            yield f"{name}: {' '.join(str(error).split())}".rstrip(".")


def _find_folders(root: Path) -> list[Path]:
    """The folders of tasks: this one, or those in it. Raises `SettingsError` where there is none."""
    here = [root] if (root / FILE).is_file() else sorted(sheet.parent for sheet in root.glob(f"*/{FILE}"))
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
    return tuple(Call(name, args) for name, args in given)


def _read_sheet(path: Path) -> Sheet:
    document = read_yaml(path)
    try:
        return Sheet.model_validate(dict(document.values))
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else None
        near = get_close_matches(key or "", Sheet.model_fields, n=1)
        hint = f"; did you mean {near[0]!r}?" if near and near[0] != key else ""
        where = ".".join(map(str, first["loc"]))
        raise document.error(key, f"{where}: {first['msg']}{hint}") from None


def _check_syntax(program: Path) -> None:
    """Refuse a check that is no Python: it would fail for ever, whatever was done."""
    try:
        compile(program.read_bytes(), str(program), "exec")
    except (SyntaxError, ValueError) as error:
        raise SettingsError(f"{program} is not valid Python: {error}.") from None


def _read_files(folder: Path) -> dict[str, str]:
    """The world at the beginning: every text file below `files/`."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            try:
                found[path.relative_to(folder).as_posix()] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                raise SettingsError(f"{path} is not UTF-8 text. A task's files must be text.") from None
    return found


def _uncopyable(folder: str, names: list[str]) -> list[str]:
    """Names of what can't be copied: pipes, sockets, devices, and what may not be read."""
    return [name for name in names if not _can_copy(Path(folder, name))]


def _can_copy(path: Path) -> bool:
    if path.is_symlink() or not (path.is_dir() or path.is_file()):
        return path.is_symlink()
    return os.access(path, os.R_OK | os.X_OK if path.is_dir() else os.R_OK)


@dataclass
class Checker:
    """The check of a folder; what holds in the untouched world is kept, no work."""

    command: Sequence[str]
    folder: Path
    files: Mapping[str, str]
    words: str = ""  # its last ones, of its errors

    def __call__(self, world: Path) -> list[Check]:
        """What it says of a world. One that can't be run is an error of the task: `SettingsError`."""
        before = self.held_before
        return [Check(name, passed, name in before) for name, passed in self.run(world)]

    @computed_once
    def held_before(self) -> frozenset[str]:
        """The names of what holds before any work."""
        with TemporaryDirectory() as name:
            write_files(self.files, Path(name))
            return frozenset(thing for thing, passed in self.run(Path(name)) if passed)

    def run(self, world: Path) -> list[tuple[str, bool]]:
        """Run it in a copy of the world: what it writes there is not seen by the agent that is at work."""
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
        failed = code != 0 and all(passed for _, passed in lines)  # it may have broken off
        return [*lines, ("the check", not failed)] if failed or not lines else lines
