"""Kills a run at every point, resumes it, and prints figures."""

import argparse
import gc
import json
import os
import random
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from job import JOBS
from points import Points, saver_at
from runs import SECOND, LoopedRun, Run, in_a_process

RUNS = {"sqlite": Run, "postgres": Run, "async-sqlite": LoopedRun, "async-postgres": LoopedRun}
DURABILITIES = ("sync", "async", "exit")
STUCK = ("checkpoint 11, before", "model 8")  # storage that stops there, and the kill


@dataclass
class Kill:
    """The outcome of one kill."""

    point: str
    message: bool
    left: dict[str, Any]
    passed: list[str]  # the points before it
    lost: int  # steps that had ended, with the next begun, and are not stored
    unstored: list[str]  # tool calls that had run and whose results are not stored
    again: list[str]  # tool calls that the graph ran a second time
    finished: list[str]  # of those, the ones that had finished: stored, or a later step had begun
    asked_again: int | None  # requests beyond those of an undisturbed run
    faults: list[str] = field(default_factory=list)  # whatever may never happen


def kill(run: Run, whole: dict[str, Any], point: str, *, message: bool, stall: str | None = None) -> Kill:
    """Kill a run at a point, resume it in another process, and compare it with an undisturbed run."""
    status, _ = in_a_process(run.begin, point, stall)
    assert status == -signal.SIGKILL, f"{point}: ended with {status} instead of a kill"
    passed, effects = run.lines("begun"), run.lines("effects")
    status, found = in_a_process(run.resume, SECOND if message else None)
    assert status == 0, f"{point}: the resumed run ended with {status}"
    left = found["left"]
    begun = max((int(p.split()[1][:-1]) for p in passed if p.startswith("step ")), default=1)
    requests = sum(p.startswith("model ") for p in passed) + found["requests"]
    again = sorted(call for call, times in Counter(run.lines("effects")).items() if times > 1)
    return Kill(
        point=point,
        message=message,
        left=left,
        passed=passed,
        lost=max(0, begun - 1 - max(0, left["step"] or 0)),
        unstored=sorted(set(effects) - set(left["results"])),
        again=again,
        finished=[call for call in again if finished(call, passed)],
        asked_again=None if message else requests - whole["requests"],
        faults=list(faults_of(found, whole, message=message)),
    )


def finished(call: str, passed: list[str]) -> bool:
    """Return whether the killed process had stored a call's result or finished its step."""
    ran = f"tool {call.split('-')[1]}, after"
    if f"writes of run_tools {call}, stored" in passed:
        return True
    return ran in passed and any(point.startswith("step ") for point in passed[passed.index(ran) :])


def faults_of(found: dict[str, Any], whole: dict[str, Any], *, message: bool) -> Iterator[str]:
    """List what must never happen, at any point and with any durability."""
    yield from found["faults"]
    if found["twice"]:
        yield f"{found['twice']} messages twice"
    if found["unequal"]:
        yield f"calls without one result each: {found['unequal']}"
    if found["todos"] != whole["todos"]:
        yield f"another list: {found['todos']}"
    # after a message there may be nothing left to write
    if found["session"]["reason"] not in (("settled", "answered") if message else ("settled",)):
        yield f"another end: {found['session']}"
    if not message and found["messages"] != whole["messages"]:
        yield f"another conversation: {found['messages']}"
    if not message and found["session"] != whole["session"]:
        yield f"another session: {found['session']}"
    if message and found["users"] != [*heard(found["left"]), SECOND]:
        yield f"the user said something else: {found['users']}"


def heard(left: dict[str, Any]) -> list[str]:
    """Return the user's messages that survive another one: an input that no step has read is dropped."""
    return left["users"] if (left["step"] or 0) >= 0 else []


def set_up(where: str, folder: Path) -> None:
    with saver_at(where, Points(folder / "set-up")) as saver:
        saver.setup()


def crashes(
    kind: type[Run],
    where: str,
    folder: Path,
    durability: str,
    *,
    ways: Sequence[str],
    in_turn: bool,
    every: int,
    draw: int | None = None,
    seed: int = 0,
    **how: Any,
) -> dict[str, Any]:
    """Kill at every point, every nth, or random ones; resume in each way, or alternate between the ways."""
    assert in_a_process(set_up, where, folder)[0] == 0
    first = kind(where, folder, "whole", durability, **how)
    # run it here, because children share what a first run sets up
    whole = json.loads(json.dumps(first.begin()))
    assert threading.active_count() == 1
    gc.freeze()
    points = first.lines("begun")
    assert len(points) == len(set(points))
    if draw is not None:
        points = random.Random(seed).sample(points, min(draw, len(points)))
    kills = [
        kill(kind(where, folder, f"{n}-{way}", durability, **how), whole, point, message=way == "message")
        for n, point in enumerate(points[::every])
        for m, way in enumerate(ways)
        if not in_turn or n % len(ways) == m
    ]
    stuck = None
    if durability == "async" and first.exact:
        stall, point = STUCK
        stuck = kill(
            kind(where, folder, "stuck", durability, **how), whole, point, message=False, stall=stall
        )
    return {"whole": whole, "kills": kills, "stuck": stuck}


@contextmanager
def place(saver: str, url: str | None) -> Iterator[tuple[str, Path]]:
    """Yield a folder, and a database in it or in a temporary Postgres."""
    with tempfile.TemporaryDirectory(prefix="crashes-") as name:
        folder = Path(name)
        if saver.endswith("sqlite"):
            yield str(folder / "threads.db"), folder
        elif url:
            yield url, folder
        else:
            from postgres import running

            with running() as server, server.database() as own:
                yield own, folder


HEAD = (
    "saver",
    "durability",
    "kills",
    "steps lost",
    "finished calls repeated",
    "interrupted calls repeated",
    "requests repeated",
    "other outcomes",
)


def row(saver: str, durability: str, kills: Sequence[Kill]) -> str:
    numbers = (
        len(kills),
        sum(k.lost for k in kills),
        sum(len(k.finished) for k in kills),
        sum(len(k.again) - len(k.finished) for k in kills),
        sum(k.asked_again or 0 for k in kills),
        sum(len(k.faults) for k in kills),
    )
    return f"| {saver} | {durability} | " + " | ".join(map(str, numbers)) + " |"


def main() -> None:
    """Print the table, or everything as JSON for the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--saver", choices=RUNS, action="append")
    parser.add_argument("--durability", choices=DURABILITIES, action="append")
    parser.add_argument("--way", choices=("resume", "message"), action="append")
    parser.add_argument("--in-turn", action="store_true", help="alternate between the ways: half the kills")
    parser.add_argument("--every", type=int, default=1, help="kill only at every n-th point")
    parser.add_argument("--draw", type=int, help="kill at this many random points")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--form", choices=("graph", "layer"), default="graph")
    parser.add_argument("--preset", choices=JOBS, default="wakeloop")
    parser.add_argument(
        "--fsync", action="store_true", help="SQLite waits for the disk, as it does by default"
    )
    parser.add_argument("--think", type=float, default=0.0, help="seconds that the model takes for a reply")
    parser.add_argument("--postgres", help="the URL of an empty database, otherwise a server is started")
    parser.add_argument("--json", action="store_true", help="each kill, for the tests")
    given = parser.parse_args()
    if not given.json:
        print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|")
    for saver in given.saver or RUNS:
        for durability in given.durability or DURABILITIES:
            with place(saver, given.postgres) as (where, folder):
                found = crashes(
                    RUNS[saver],
                    where,
                    folder,
                    durability,
                    ways=given.way or ("resume", "message"),
                    in_turn=given.in_turn,
                    every=given.every,
                    draw=given.draw,
                    seed=given.seed,
                    form=given.form,
                    preset=given.preset,
                    fsync=given.fsync,
                    think=given.think,
                )
            if given.json:
                print(json.dumps(found, default=asdict))
                continue
            print(row(saver, durability, found["kills"]), flush=True)
            if found["stuck"]:
                print(row(saver, f"{durability}, storage stuck", [found["stuck"]]), flush=True)
            for one in found["kills"]:
                for fault in one.faults:
                    print(f"    {one.point}: {fault}")


if __name__ == "__main__":
    os.environ.setdefault("LANGSMITH_TRACING", "false")
    main()
