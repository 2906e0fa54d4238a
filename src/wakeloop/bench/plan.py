"""The plan: which cells a study has, and their tasks."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from wakeloop.bench.families import FAMILIES
from wakeloop.bench.study import Study, require_known
from wakeloop.bench.task import Family, Task
from wakeloop.bench.task_folders import check_tasks, load_tasks
from wakeloop.errors import BenchError


class Cell(NamedTuple):
    """One run: an agent, a model, a task and a seed. Values that all cells share stay in the study."""

    agent: str
    model: str
    family: str
    parts: int
    seed: int
    results: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Cell":
        """Return the cell of a row."""
        return cls(*map(row.__getitem__, cls._fields))

    @property
    def task(self) -> tuple[str, int, int]:
        """The group of its runs: family, parts, and size of the tools' results."""
        return self.family, self.parts, self.results


def plan_cells(study: Study) -> list[Cell]:
    """Return every cell once. Seeds are outermost, so half of a run is half of every comparison."""
    tasks: list[tuple[str, int]] = []
    for text in study.tasks:
        tasks += expand_tasks(text)
    seeds = range(1, study.seeds + 1)
    cells = []
    for seed, task, results, model, agent in product(seeds, tasks, study.results, study.models, study.agents):
        cells.append(Cell(agent, model, *task, seed, results))
    return list(dict.fromkeys(cells))


def expand_tasks(text: str) -> Iterator[tuple[str, int]]:
    """Yield the families and lengths that a line of a study means. Raises `BenchError`."""
    if is_folder(text):
        for task in own_tasks(text):
            yield f"{text.rstrip('/')}/#{task.family}", task.parts
        return
    name, _, parts = text.partition(":")
    if parts and not parts.isdecimal():
        raise BenchError(f"A task must be FAMILY:PARTS with a number of parts, got {text!r}.")
    lengths: set[int] = set()
    for family in _named_families(name):
        lengths.update(family.lengths)
        for length in family.lengths:
            if not parts or length == int(parts):
                yield family.name, length
    if parts and int(parts) not in lengths:
        known = ", ".join(map(str, sorted(lengths)))
        raise BenchError(f"The family {name!r} has {known} parts, not {parts}.")


def is_folder(text: str) -> bool:
    """Return whether a line of a study means a folder of the user's own."""
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
    """Return the kind of a family; the kind of a user's own task is `own`."""
    return "own" if is_own_task(family) else FAMILIES[family].kind


def is_own_task(family: str) -> bool:
    """Return whether a task is a folder of the user's own."""
    return family not in FAMILIES


def own_tasks(folder: str) -> tuple[Task, ...]:
    """Return the tasks in a folder, which is read once."""
    return _load_once(Path(folder).resolve())


def check_own_tasks(folder: str) -> None:
    """Check the tasks in a folder, once. Raises `SettingsError` if they can't show anything."""
    _check_once(Path(folder).resolve())


@lru_cache(maxsize=16)
def _check_once(folder: Path) -> None:
    check_tasks(folder)


@lru_cache(maxsize=16)
def _load_once(folder: Path) -> tuple[Task, ...]:
    return tuple(load_tasks(folder))
