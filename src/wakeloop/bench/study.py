"""The study: what is asked, written down before the run."""

import hashlib
import json
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wakeloop.config.files import read_yaml
from wakeloop.errors import BenchError

BUILT_IN = Path(__file__).parent / "studies"
HASH = 12  # characters of a hash that are shown and kept


class Prices(BaseModel):
    """What a million tokens cost, in any unit: of the input, of its cached part, of the output.

    The default counts tokens, cached ones at a tenth.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(1_000_000, ge=0, allow_inf_nan=False)
    cached: float = Field(100_000, ge=0, allow_inf_nan=False)
    output: float = Field(1_000_000, ge=0, allow_inf_nan=False)

    def cost(self, row: dict[str, Any]) -> float:
        """Return the price of one cell."""
        fresh = row["input"] - row["cached"]
        whole = fresh * self.input + row["cached"] * self.cached + row["output"] * self.output
        return float(whole) / 1_000_000


class Study(BaseModel):
    """What is compared, and what would count as a result: fixed before the first cell is run."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: str = Field(min_length=1)
    """One word or two."""
    hypothesis: str = Field(min_length=1)
    """What is expected, in a sentence that can turn out wrong."""
    primary: Literal["completed", "share", "requests"] = "completed"
    """The outcome that the hypothesis is judged by: all checks hold, the share of the work, or requests."""
    reference: str
    """The agent that every other is compared with."""
    smallest: float = Field(gt=0)
    """The smallest difference of the primary outcome that matters: a share of 1, or requests."""
    subject: str = "wakeloop"
    """The agent that the claim is about: where others do better than it is said first."""
    agents: tuple[str, ...] = Field(min_length=1)
    """Agents by name."""
    models: tuple[str, ...] = Field(min_length=1)
    """`openai:NAME`, `PROVIDER:NAME`, `NAME@URL`, or `weak:stop=0.3,sticky=0.3`."""
    tasks: tuple[str, ...] = Field(min_length=1)
    """`FAMILY`, `FAMILY:PARTS`, `*:PARTS`, `@KIND:PARTS`, or a folder of tasks of one's own."""
    seeds: int = Field(ge=1)
    """Runs of each: the seeds from 1 on. A seed is the same task, and the same dice of a weak model."""
    results: tuple[int, ...] = Field((0,), min_length=1)
    """Tokens that each tool result is filled up to; 0 leaves it."""
    max_requests: int = Field(500, ge=1)
    """Requests of one cell at most, the same for every agent."""
    recursion_limit: int = Field(5_000, ge=10)
    """Supersteps of one cell at most, the same for every agent that is a graph."""
    prices: Prices = Prices()
    """What is counted as spending."""

    @property
    def hash(self) -> str:
        """What changes when anything in it does."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:HASH]

    def with_changes(self, **changes: Any) -> "Study":
        """Return it with some fields changed; None changes nothing."""
        given = {key: value for key, value in changes.items() if value is not None}
        return parse_study(self.model_dump() | given, "the options") if given else self


def load_study(name: str) -> Study:
    """Read a study from a file, or one of the package's own by its name. Raises `BenchError`."""
    path = Path(name)
    if path.suffix not in (".yaml", ".yml", ".json"):
        own = sorted(one.stem for one in BUILT_IN.glob("*.yaml"))
        path = BUILT_IN / f"{require_known('study', name, own)}.yaml"
    return parse_study(dict(read_yaml(path).values), str(path))


def parse_study(values: dict[str, Any], where: str) -> Study:
    """Check what a study says. Raises `BenchError` with one sentence for each wrong value."""
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
    """Return a name that is known. Raises `BenchError` with the nearest right one."""
    names = list(known)
    if name in names:
        return name
    raise BenchError(unknown_name(what, name, names))


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """Say that there is nothing of this name, with the nearest right one."""
    near = get_close_matches(name, known := list(known), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
    return f"There is no {what} {name!r}; {hint}"


def _describe_error(error: Any, where: str) -> str:
    field = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"{where}: {field!r} is missing."
    if error["type"] == "extra_forbidden":
        known = Study.model_fields if len(error["loc"]) == 1 else Prices.model_fields
        return f"{where}: {unknown_name('key', str(error['loc'][-1]), known)}"
    return f"{where}: {field!r} cannot be {error['input']!r}: {error['msg'][:1].lower()}{error['msg'][1:]}."
