"""The plan: which cells a study has, and their tasks."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from wakeloop.bench.families import FAMILIES
from wakeloop.bench.study import Study, require_known
from wakeloop.bench.task import Family, Task
from wakeloop.bench.task_folders import check_tasks, load_tasks
from wakeloop.errors import BenchError


class Cell(NamedTuple):
    """One run: who does which task with which model. What a study's cells have in common stays there."""

    agent: str
    model: str
    family: str
    parts: int
    seed: int
    results: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Cell":
        """Return the cell that a row is of."""
        return cls(*(row[name] for name in cls._fields))

    @property
    def task(self) -> tuple[str, int, int]:
        """What its runs are grouped by: the task, and the size of its tools' results."""
        return self.family, self.parts, self.results


def plan_cells(study: Study) -> list[Cell]:
    """Return every cell once, seeds outermost: half of the run is half of every comparison."""
    kinds = [kind for text in study.tasks for kind in expand_tasks(text)]
    every = (
        Cell(agent, model, family, parts, seed, results)
        for seed in range(1, study.seeds + 1)
        for family, parts in kinds
        for results in study.results
        for model in study.models
        for agent in study.agents
    )
    return list(dict.fromkeys(every))


def expand_tasks(text: str) -> Iterator[tuple[str, int]]:
    """Return the families and lengths that a study's line means. Raises `BenchError`."""
    if is_folder(text):
        yield from ((f"{text.rstrip('/')}/#{task.family}", task.parts) for task in own_tasks(text))
        return
    name, _, parts = text.partition(":")
    if parts and not parts.isdecimal():
        raise BenchError(f"A task must be FAMILY:PARTS with a number of parts, got {text!r}.")
    every = [(family.name, length) for family in _named_families(name) for length in family.lengths]
    meant = [one for one in every if not parts or one[1] == int(parts)]
    if not meant:
        lengths = ", ".join(map(str, sorted({length for _, length in every})))
        raise BenchError(f"The family {name!r} has {lengths} parts, not {parts}.")
    yield from meant


def is_folder(text: str) -> bool:
    """Tell whether a study's line means a folder of the user's own."""
    return "/" in text or Path(text).is_dir()


def _named_families(name: str) -> list[Family]:
    if name == "*":
        return list(FAMILIES.values())
    if name.startswith("@"):
        found = [family for family in FAMILIES.values() if family.kind == name[1:]]
        if not found:
            kinds = ", ".join(sorted({f"@{family.kind}" for family in FAMILIES.values()}))
            raise BenchError(f"Unknown kind of task {name!r}. Available: {kinds}.")
        return found
    return [FAMILIES[require_known("family of tasks", name, FAMILIES)]]


def make_task(cell: Cell) -> Task:
    """Make the task of a cell."""
    folder, mark, name = cell.family.partition("/#")
    if mark:
        return next(task for task in own_tasks(folder) if task.family == name)
    return FAMILIES[cell.family].make(cell.seed, cell.parts)


def family_kind(family: str) -> str:
    """Return what a family shows; a folder of one's own is `own`."""
    return "own" if is_own_task(family) else FAMILIES[family].kind


def is_own_task(family: str) -> bool:
    """Tell whether a task is a folder of the user's own."""
    return family not in FAMILIES


def own_tasks(folder: str) -> tuple[Task, ...]:
    """Read a folder of tasks, once."""
    return _load_once(Path(folder).resolve())


def check_own_tasks(folder: str) -> None:
    """Refuse a folder whose tasks show nothing, once. Raises `SettingsError`."""
    _check_once(Path(folder).resolve())


@lru_cache(maxsize=16)
def _check_once(folder: Path) -> None:
    check_tasks(folder)


@lru_cache(maxsize=16)
def _load_once(folder: Path) -> tuple[Task, ...]:
    return tuple(load_tasks(folder))
