"""Studies: the question, written before the run; its cells."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wakeloop.bench.families import FAMILIES
from wakeloop.bench.task import HASH, Family, Task
from wakeloop.bench.task_folders import check_tasks, load_tasks
from wakeloop.config.files import read_yaml
from wakeloop.errors import BenchError
from wakeloop.text.wording import suggest

BUILT_IN = Path(__file__).parent / "studies"


class Prices(BaseModel):
    """The price of a million tokens of input, cached input and output, in any unit.

    The default counts input tokens: cached ones as a tenth, output as eight, as real prices do.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(1_000_000, ge=0, allow_inf_nan=False)
    cached: float = Field(100_000, ge=0, allow_inf_nan=False)
    output: float = Field(8_000_000, ge=0, allow_inf_nan=False)

    def cost(self, row: dict[str, Any]) -> float:
        """Return the price of one cell."""
        fresh = row["input"] - row["cached"]
        whole = fresh * self.input + row["cached"] * self.cached + row["output"] * self.output
        return float(whole) / 1_000_000


class Study(BaseModel):
    """What is compared, and what counts as a result: fixed before the first cell runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: str = Field(min_length=1)
    """One word or two."""
    hypothesis: str = Field(min_length=1)
    """The expected result, in a sentence that can turn out wrong."""
    primary: Literal["completed", "share", "requests"] = "completed"
    """The outcome that the hypothesis is judged by: all checks hold, the share of the work, or requests."""
    reference: str
    """The agent that all others are compared with."""
    smallest: float = Field(gt=0)
    """The smallest difference of the primary outcome that matters: a share of 1, or requests."""
    subject: str = "wakeloop"
    """The agent that the claim is about; the page begins with its losses."""
    agents: tuple[str, ...] = Field(min_length=1)
    """Agents by name."""
    models: tuple[str, ...] = Field(min_length=1)
    """`openai:NAME`, `PROVIDER:NAME`, `NAME@URL`, or `weak:stop=0.3,sticky=0.3`."""
    tasks: tuple[str, ...] = Field(min_length=1)
    """`FAMILY`, `FAMILY:PARTS`, `*:PARTS`, `@KIND:PARTS`, or a folder of the user's own tasks."""
    seeds: int = Field(ge=1)
    """The number of seeds, from 1 on. A seed determines the task and the draws of a weak model."""
    results: tuple[int, ...] = Field((0,), min_length=1)
    """Tokens that each tool result is padded to; 0 does not pad."""
    max_requests: int = Field(500, ge=1)
    """The most requests of one cell, the same for every agent."""
    recursion_limit: int = Field(5_000, ge=10)
    """The most supersteps of one cell, the same for every agent that is a graph."""
    prices: Prices = Prices()
    """The prices for the cost of a run."""
    habits: dict[str, str] = Field(default_factory=dict)
    """Names of models, for a table of habits."""

    @property
    def hash(self) -> str:
        """A hash of all fields."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:HASH]

    def with_changes(self, **changes: Any) -> "Study":
        """Return the study with some fields changed; None changes nothing."""
        given = {key: value for key, value in changes.items() if value is not None}
        if not given:
            return self
        return parse_study(self.model_dump() | given, "the options")


def load_study(name: str) -> Study:
    """Load a study from a file, or one of the package's own by its name. Raises `BenchError`."""
    path = Path(name)
    if path.suffix not in (".yaml", ".yml", ".json"):
        own = sorted(one.stem for one in BUILT_IN.glob("*.yaml"))
        path = BUILT_IN / f"{require_known('study', name, own)}.yaml"
    return parse_study(dict(read_yaml(path).values), str(path))


def parse_study(values: dict[str, Any], where: str) -> Study:
    """Make a study from values. Raises `BenchError` with a sentence for each wrong value."""
    try:
        study = Study.model_validate(values)
    except ValidationError as error:
        raise BenchError(" ".join(_describe_error(one, where) for one in error.errors())) from None
    for field in ("reference", "subject"):
        if getattr(study, field) not in study.agents:
            raise BenchError(
                f"{where}: the {field} {getattr(study, field)!r} is not one of the study's agents."
            )
    if study.primary != "requests" and study.smallest > 1:
        raise BenchError(
            f"{where}: 'smallest' is a fraction: write 5 points as 0.05, got {study.smallest:g}."
        )
    return study


def require_known(what: str, name: str, known: Iterable[str]) -> str:
    """Return the name if it is known. Raises `BenchError` with the nearest known one."""
    names = list(known)
    if name in names:
        return name
    raise BenchError(unknown_name(what, name, names))


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """Return an error message for an unknown name, with the nearest known one."""
    return f"Unknown {what} {name!r}. {suggest(name, known)}"


def _describe_error(error: Any, where: str) -> str:
    field = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"{where}: {field!r} is missing."
    if error["type"] == "extra_forbidden":
        known = Study.model_fields if len(error["loc"]) == 1 else Prices.model_fields
        return f"{where}: {unknown_name('key', str(error['loc'][-1]), known)}"
    return f"{where}: {field!r} cannot be {error['input']!r}: {error['msg'][:1].lower()}{error['msg'][1:]}."


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
