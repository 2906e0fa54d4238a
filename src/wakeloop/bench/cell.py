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

from wakeloop.bench import peers
from wakeloop.bench.agents import Ending, Job, agent_named
from wakeloop.bench.journal import Row
from wakeloop.bench.meter import Bench, CeilingError, Meter, OutageError
from wakeloop.bench.models import model_of
from wakeloop.bench.patience import TIMEOUT, patiently
from wakeloop.bench.peers import PeerError
from wakeloop.bench.plan import Cell, kind_of, task_of
from wakeloop.bench.study import Study
from wakeloop.bench.task import Check, Task, damage, is_complete, share_of
from wakeloop.bench.usage import CHARACTERS
from wakeloop.bench.world import padded
from wakeloop.errors import BenchError, SettingsError, WakeloopError
from wakeloop.model.redaction import collect_secrets
from wakeloop.text.secrets import redact_text

CLAIMS = re.compile(r"\b(done|completed?|finished|all set)\b", re.IGNORECASE)
DENIES = re.compile(
    r"\b(not|cannot|unable|remain\w*|left|missing|blocked|fail\w*|incomplete|still|open)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
LONGEST = 200  # characters of what an agent died of

Model = Callable[[str, Task, int], BaseChatModel]


def claims(text: str) -> bool:
    """Tell whether a text says that the work is done: a word of doneness, and none that takes it back."""
    return bool(CLAIMS.search(text)) and not DENIES.search(text)


@dataclass
class World:
    """A task's folder while it is played, looked at whenever a turn ends."""

    task: Task
    folder: Path
    whole: list[Check] = field(default_factory=list)  # as it was when all was done first

    def look(self, said: str) -> None:
        """A turn has ended: note the world if the job is done."""
        if not self.whole and is_complete(self.task.checks(self.folder, said)):
            self.whole = self.task.check(self.folder)


def play(
    cell: Cell,
    study: Study,
    make: Model = model_of,
    timeout: float = TIMEOUT,
    find: Callable[[Cell], Task] = task_of,
) -> Row:
    """Play a cell and return its row. Raises `BenchError` for an outage or a check that can't be run.

    A request that takes longer than `timeout` seconds is an outage. A full disk is raised as it is.

    The row holds the cell; `kind`; `completed`, `share`; `end` (`done` or `open` as a program reads it,
    `ceiling`, `error`), `reason`, `claims` (the last text says that all is done), `listed`, `wakes`, `damage`
    (checks that held when the job was done and do not at the end), `calls`, `failed`, `requests`, `input`, of
    it `cached`, `output`, `estimated`, `seconds`.
    """
    try:
        return _played(cell, find(cell), study, make, timeout)
    except SettingsError as error:  # of a check of one's own: no result either
        raise BenchError(str(error)) from None


def _played(cell: Cell, task: Task, study: Study, make: Model, timeout: float) -> Row:
    with tempfile.TemporaryDirectory(prefix="wakeloop-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        task.lay_out(folder)
        world, bench = World(task, folder), Bench()
        meter = Meter(study.max_requests, world.look)
        config: RunnableConfig = {"callbacks": [meter], "recursion_limit": study.recursion_limit}
        model = make(cell.model, task, cell.seed)
        tools = bench.around(padded(task.tools(folder), cell.results * CHARACTERS))
        job = Job(task, folder, model, tools, config)
        agent = agent_named(cell.agent)
        if agent.peer:
            agent.peer.begin()
        begun = time.monotonic()
        try:
            end, ending = ended(lambda job: patiently(lambda: agent.run(job), meter, timeout), job)
        finally:
            if meter.given_up:
                peers.end_all()  # one may still wait for the reply
        seconds = time.monotonic() - begun
        if bench.full:
            raise OSError(bench.full.errno, bench.full.strerror, name)
        checks = task.checks(folder, ending.text)
        harm = damage(world.whole, task.check(folder)) if world.whole else []
    return {
        **cell._asdict(),
        "kind": kind_of(cell.family),
        "completed": is_complete(checks),
        "share": round(share_of(checks), 4),
        "end": end,
        "reason": ending.reason,
        "claims": claims(ending.text),
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


def ended(run: Callable[[Job], Ending], job: Job) -> tuple[str, Ending]:
    """Run an agent and say how it ended. Raises `BenchError` where that says nothing of the agent."""

    def short(said: object) -> str:
        known = redact_text(str(said), collect_secrets(job.model))  # a server may say a key that it was sent
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
    except PeerError as error:
        at_steps = str(error).startswith("GraphRecursionError")
        return ("ceiling" if at_steps else "error"), Ending("", "open", short(error))
    except Exception as error:  # noqa: BLE001 - whatever an agent raises is how it ended
        said = error if isinstance(error, WakeloopError) else f"{type(error).__name__}: {error}"
        return "error", Ending("", "open", short(said))
    return ending.signal, ending
