"""Plays one cell: an agent, a task, a model, a seed."""

import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphRecursionError

from wakeloop.bench.agents import agent_named
from wakeloop.bench.journal import Row
from wakeloop.bench.meter import CeilingError, OutageError, RequestMeter, ToolCounter
from wakeloop.bench.models import make_model
from wakeloop.bench.plan import Cell, family_kind, make_task
from wakeloop.bench.study import Study
from wakeloop.bench.task import Check, Ending, Job, Task, find_damage, is_complete, share_of
from wakeloop.bench.time_limit import TIMEOUT, run_with_timeout
from wakeloop.errors import BenchError, SettingsError, WakeloopError
from wakeloop.model.redaction import collect_secrets
from wakeloop.testing.token_usage import CHARACTERS_PER_TOKEN
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
        end, ending = run_to_end(lambda job: run_with_timeout(lambda: agent.run(job), meter, timeout), job)
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


def run_to_end(run: Callable[[Job], Ending], job: Job) -> tuple[str, Ending]:
    """Run an agent and return how it ended. Raises `BenchError` if that says nothing about the agent."""

    def short(said: object) -> str:
        known = redact_text(str(said), collect_secrets(job.model))  # a server may repeat the key it was sent
        return " ".join(known.split())[:LONGEST]

    try:
        ending = run(job)
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
