"""Task folders of the user's own."""

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wakeloop.bench.task import Call, Check, Step, Task
from wakeloop.bench.world import program_tools, world_tools
from wakeloop.config.files import read_yaml
from wakeloop.errors import SettingsError

FILE = "task.yaml"
_SECONDS = 60
_LINE = re.compile(r"^(ok|not ok) (.+)$", re.MULTILINE)


class Part(BaseModel):
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
    steps: list[Part] = []
    """A right way to do it, only for the weak model: steps of `label` and `calls` (name, arguments)."""
    spoils: list[tuple[str, dict[str, Any]]] = []
    """What makes finished work worse, only for the weak model."""


def load(path: str | Path) -> list[Task]:
    """The tasks in a folder: its own `task.yaml`, or those of the folders in it, in order of their names.

    A task is a folder with `task.yaml`, `files/` (the world at the beginning) and `check.py` or a command
    under `check`. The check is run in the world's folder, with the task's folder as its last argument, and
    says `ok NAME` or `not ok NAME` on a line for each thing that it looks at; its exit code is a check where
    it says none, and where it is not 0 though every line is ok. What is ok before any work has to stay so.

    It is run with the rights of this process. Raises SettingsError, with file and line, for a sheet that
    can't be read, and where there is no task.
    """
    root = Path(path).resolve()
    here = [root] if (root / FILE).is_file() else sorted(sheet.parent for sheet in root.glob(f"*/{FILE}"))
    if not here:
        raise SettingsError(f"{root} holds no task: put a {FILE} into it, or into folders in it.")
    return [_task(folder) for folder in here]


def _task(folder: Path) -> Task:
    sheet = _sheet(folder / FILE)
    command = sheet.check or [sys.executable, str(folder / "check.py")]
    if sheet.check is None and not (folder / "check.py").is_file():
        raise SettingsError(
            f"{folder} has no check: put a check.py beside {FILE}, or a command under `check`."
        )
    files = _files(folder / "files")
    return Task(
        family=folder.name,
        seed=0,
        parts=sheet.parts,
        prompt=sheet.prompt,
        files=files,
        steps=tuple(Step(part.label, _calls(part.calls), part.found) for part in sheet.steps),
        spoils=_calls(sheet.spoils),
        check=_checker(command, folder, files),
        tools=program_tools if sheet.tools == "programs" else world_tools,
        final=" ".join(["All done.", *sheet.says]),
        check_text=lambda text: [Check(f"says {word}", word in text) for word in sheet.says],
    )


def _calls(given: list[tuple[str, dict[str, Any]]]) -> tuple[Call, ...]:
    return tuple(Call(name, args) for name, args in given)


def _sheet(path: Path) -> Sheet:
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


def _files(folder: Path) -> dict[str, str]:
    """The world at the beginning: every text file below `files/`."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            try:
                found[path.relative_to(folder).as_posix()] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                raise SettingsError(f"{path} is not UTF-8 text; a task's files are texts.") from None
    return found


def _checker(command: list[str], folder: Path, files: Mapping[str, str]) -> Callable[[Path], list[Check]]:
    """The check of a folder; what holds in the untouched world is kept, no work."""

    @cache
    def held() -> frozenset[str]:
        with TemporaryDirectory() as name:
            for path, text in files.items():
                place = Path(name, path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, encoding="utf-8")
            return frozenset(thing for thing, passed in _said(command, folder, Path(name)) if passed)

    def check(world: Path) -> list[Check]:
        return [Check(name, passed, name in held()) for name, passed in _said(command, folder, world)]

    return check


def _said(command: list[str], folder: Path, world: Path) -> list[tuple[str, bool]]:
    """What a check says of a world. One that can't be run is an error of the task, not a check that fails."""
    try:
        ended = subprocess.run(  # noqa: S603 - the user's own check
            [*command, str(folder)],
            cwd=world,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SettingsError(f"The check of {folder} could not be run: {error}.") from None
    lines = [(name.strip(), word == "ok") for word, name in _LINE.findall(ended.stdout)]
    failed = ended.returncode != 0 and all(passed for _, passed in lines)  # it may have broken off
    return [*lines, ("the check", not failed)] if failed or not lines else lines
