"""Plays one cell, or a sample of them as an estimate."""

import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.errors import GraphRecursionError

from wakeloop.bench.agents import agent_named
from wakeloop.bench.journal import Row
from wakeloop.bench.meter import (
    TIMEOUT,
    CeilingError,
    OutageError,
    RequestMeter,
    ToolCounter,
    run_with_timeout,
)
from wakeloop.bench.models import WEAK, is_weak, make_model
from wakeloop.bench.study import Cell, Study, family_kind, is_own_task, make_task
from wakeloop.bench.task import Check, Ending, Job, Task, find_damage, is_complete, share_of
from wakeloop.errors import BenchError, SettingsError, WakeloopError
from wakeloop.model.redaction import collect_secrets
from wakeloop.testing.captured_requests import CHARACTERS_PER_TOKEN
from wakeloop.text.secrets import redact_text

COMPLETION_WORDS = re.compile(r"\b(done|completed?|finished|all set)\b", re.IGNORECASE)
DENIAL_WORDS = re.compile(
    r"\b(not|cannot|unable|remain\w*|left|missing|blocked|fail\w*|incomplete|still|open)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
LONGEST = 200  # characters of an error that are kept

ModelMaker = Callable[[str, Task, int], BaseChatModel]


def claims_completion(text: str) -> bool:
    """Return whether the text says that the work is done, without a word that denies it."""
    return bool(COMPLETION_WORDS.search(text)) and not DENIAL_WORDS.search(text)


@dataclass
class WatchedWorld:
    """A task's folder while it is played; it is checked whenever a turn ends."""

    task: Task
    folder: Path
    whole: list[Check] = field(default_factory=list)  # the checks when everything was done for the first time

    def look(self, said: str) -> None:
        """Run the checks at the end of a turn, and keep them if the job is done."""
        if not self.whole and is_complete(self.task.checks(self.folder, said)):
            self.whole = self.task.check(self.folder)


def play_cell(
    cell: Cell,
    study: Study,
    make: ModelMaker = make_model,
    timeout: float = TIMEOUT,
    find: Callable[[Cell], Task] = make_task,
) -> Row:
    """Play a cell and return its row. Raises `BenchError` for an outage or a check that can't be run.

    A request that takes longer than `timeout` seconds is an outage. The error of a full disk is raised.

    The row has the fields of the cell; `kind`; `completed`, `share`; `end` (`done` or `open` for a program,
    `ceiling`, `error`), `reason`, `claims` (the last text says that everything is done), `listed`, `wakes`,
    `damage` (checks that passed when the job was done and fail at the end), `calls`, `failed`, `requests`,
    `input` and the `cached` part of it, `output`, `estimated`, `seconds`.
    """
    try:
        return _play_task(cell, find(cell), study, make, timeout)
    except SettingsError as error:  # a user's own check that can't be run: no result either
        raise BenchError(str(error)) from None


def _play_task(cell: Cell, task: Task, study: Study, make: ModelMaker, timeout: float) -> Row:
    with tempfile.TemporaryDirectory(prefix="wakeloop-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        task.lay_out(folder)
        world, bench = WatchedWorld(task, folder), ToolCounter(cell.results * CHARACTERS_PER_TOKEN)
        meter = RequestMeter(study.max_requests, world.look)
        config: RunnableConfig = {"callbacks": [meter], "recursion_limit": study.recursion_limit}
        model = make(cell.model, task, cell.seed)
        tools = bench.wrap(task.tools(folder))
        job = Job(task, folder, model, tools, config)
        agent = agent_named(cell.agent)
        begun = time.monotonic()
        end, ending = run_to_end(lambda: run_with_timeout(lambda: agent.run(job), meter, timeout), model)
        seconds = time.monotonic() - begun
        if bench.full:
            raise OSError(bench.full.errno, bench.full.strerror, name)
        checks = task.checks(folder, ending.text)
        harm = find_damage(world.whole, task.check(folder)) if world.whole else []
    return {
        **cell._asdict(),
        "kind": family_kind(cell.family),
        "completed": is_complete(checks),
        "share": round(share_of(checks), 4),
        "end": end,
        "reason": ending.reason,
        "claims": claims_completion(ending.text),
        "listed": ending.listed,
        "wakes": ending.wakes,
        "damage": len(harm),
        "calls": bench.calls,
        "failed": bench.failed,
        "requests": meter.requests,
        "input": meter.input,
        "cached": meter.cached,
        "output": meter.output,
        "estimated": meter.estimated,
        "seconds": round(seconds, 3),
    }


def run_to_end(run: Callable[[], Ending], model: BaseChatModel) -> tuple[str, Ending]:
    """Run an agent and return how it ended. Raises `BenchError` if that says nothing about the agent."""

    def short(said: object) -> str:
        known = redact_text(str(said), collect_secrets(model))  # a server may repeat the key it was sent
        return " ".join(known.split())[:LONGEST]

    try:
        ending = run()
    except CeilingError as error:
        return "ceiling", Ending("", "open", str(error))
    except GraphRecursionError:
        return "ceiling", Ending("", "open", "recursion_limit")
    except OutageError as error:
        raise BenchError(short(error)) from None
    except (BenchError, SettingsError):
        raise
    except WakeloopError as error:
        return "error", Ending("", "open", short(error))
    except Exception as error:  # noqa: BLE001 - whatever an agent raises is how it ended
        return "error", Ending("", "open", short(f"{type(error).__name__}: {error}"))
    return ending.signal, ending


SAMPLE = 3  # cells played for each agent, length and size of results
SECONDS_PER_REQUEST = 3.0  # of a real model
PROGRAM_TOOL = "run_python"


class Estimate(NamedTuple):
    """The expected totals of some cells with a reliable model, and the most requests they can make."""

    cells: int
    requests: float
    input: float
    cached: float
    output: float
    cost: float
    seconds: float
    most_requests: int


def estimate_run(study: Study, ahead: Sequence[Cell], workers: int) -> Estimate:
    """Play a sample of the cells offline, with a reliable weak model, and multiply.

    Nothing of a user's own task is run: its checks count as passed, its programs as silent.
    """
    groups: dict[tuple[str, int, int], list[Cell]] = defaultdict(list)
    for cell in ahead:
        groups[cell.agent, cell.parts, cell.results].append(cell)
    total = dict.fromkeys(("requests", "input", "cached", "output", "cost", "seconds"), 0.0)
    for some in groups.values():
        rows = _play_sample(some, study)
        for name in ("requests", "input", "cached", "output"):
            total[name] += len(some) * _mean(rows, name)
        total["cost"] += len(some) * sum(map(study.prices.cost, rows)) / max(1, len(rows))
        real = sum(not is_weak(cell.model) for cell in some)
        total["seconds"] += (
            len(some) * _mean(rows, "seconds") + real * _mean(rows, "requests") * SECONDS_PER_REQUEST
        )
    total["seconds"] /= workers
    return Estimate(len(ahead), **total, most_requests=len(ahead) * study.max_requests)


def _play_sample(some: Sequence[Cell], study: Study) -> list[Row]:
    apart = max(1, len(some) // SAMPLE)
    return [play_cell(cell._replace(model=WEAK), study, find=_inert_task) for cell in some[::apart][:SAMPLE]]


def _inert_task(cell: Cell) -> Task:
    """Return a cell's task; of a user's own task nothing is run."""
    task = make_task(cell)
    if not is_own_task(cell.family):
        return task
    return replace(
        task, check=lambda _world: [], tools=lambda folder: [*map(_inert_tool, task.tools(folder))]
    )


def _inert_tool(tool: BaseTool) -> BaseTool:
    """Return the same tool; the one for programs runs nothing and reports success."""
    if tool.name != PROGRAM_TOOL:
        return tool
    return tool.model_copy(update={"func": lambda **_: "Exit code 0.\n"})


def _mean(rows: Sequence[Row], name: str) -> float:
    return sum(float(row[name]) for row in rows) / max(1, len(rows))
