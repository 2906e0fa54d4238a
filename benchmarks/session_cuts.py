"""Events for many sessions, under workers that are killed and connections that are cut, with counted effects.

Every event asks its thread's agent to do one thing, with a tool that records when it begins and in which
process, and then takes a while. Meanwhile workers are killed with SIGKILL and replaced, and now and then
every connection to the database is cut (`pg_terminate_backend`), as in a failover. At the end the threads are
read, and the effects are counted: one that came twice is either a call that a kill interrupted (its process
was killed during the call, or before its result was stored), or doubled. The figures are printed as JSON, and
at the end as the row and the sentence of docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from session_kills import UNSETTLED, Writer, judged

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

DONE = re.compile(r"event (\d+) is done by (\d+)")
CUT = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""

# docs/performance.md has this row and this sentence, from a run without options
PAGE = """| {kills} | {cuts of all connections} ({connections cut:,}) | {lost} | {repeated in a thread} \
| {out of order} | {doubled} | {calls cut off by a kill and run again} |
{events:,} events in {seconds} seconds, and {seconds until all was quiet:.0f} seconds later all was quiet. \
With a grace of {grace:.0f} seconds a call that a kill cut off began again after \
{a call cut off waits, median:.0f} seconds in the middle and {a call cut off waits, at most:.0f} at most; \
an event waited {an event waits, median:.0f} seconds in the middle \
and {an event waits, at most:.0f} at most."""


@contextmanager
def agent_on(url: str, log: str, takes: float) -> Any:
    """Build the agent of every thread, with its checkpoints in Postgres."""
    from wakeloop import create_todo_agent
    from wakeloop.cli.sessions.postgres import open_postgres_saver

    def note(number: int) -> str:
        """Do what the event asks for."""
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f"{number} {os.getpid()} {time.time()}\n".encode())
        os.close(file)
        time.sleep(takes)
        return f"event {number} is done by {os.getpid()}"

    with open_postgres_saver(url) as saver:
        yield create_todo_agent(Writer(), tools=[note], checkpointer=saver)


def work(url: str, log: str, takes: float, grace: float) -> None:
    """Work until the input closes."""
    from wakeloop.sessions.dbos import DbosHost

    with agent_on(url, log, takes) as agent, DbosHost(url, {"main": agent}, grace=grace):
        print("up", flush=True)
        sys.stdin.read()


class Crew:
    """Worker processes, and when which of them was killed."""

    def __init__(self, size: int, *arguments: str) -> None:
        self.command = [sys.executable, __file__, "--work", *arguments]
        self.killed: dict[int, float] = {}
        self.running = [self.begun() for _ in range(size)]
        for worker in self.running:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "up\n"

    def begun(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def kill_one(self, dice: random.Random) -> None:
        victim = self.running.pop(dice.randrange(len(self.running)))
        victim.kill()
        self.killed[victim.pid] = time.time()
        victim.wait()
        self.running.append(self.begun())

    def ended(self) -> int:
        """Return how many ended by themselves."""
        return sum(worker.poll() is not None for worker in self.running)

    def stop(self) -> None:
        for worker in self.running:
            worker.kill()
            worker.wait()


def effects(
    log: str, killed: dict[int, float], stored: dict[int, int]
) -> tuple[list[float], list[str], dict[int, float]]:
    """Sort what came twice by its cause; return when each event's effect came first.

    A call was interrupted by a kill if its process was dead before it began again, and the result in the
    thread is not that process's: each is listed with the seconds from the kill until it began again. Any
    other is doubled, and listed with what is known.
    """
    done: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for line in Path(log).read_text().splitlines():
        number, process, when = line.split()
        done[int(number)].append((float(when), int(process)))
    cut_off, doubled = list[float](), list[str]()
    for number, each in done.items():
        for (when, process), (again, other) in pairwise(sorted(each)):
            if killed.get(process, again) < again and stored.get(number) != process:
                cut_off.append(again - killed[process])
            else:
                doubled.append(f"{number}: by {process}, again by {other} after {again - when:.1f}")
    return cut_off, doubled, {number: min(each)[0] for number, each in done.items()}


def results(agent: Any, threads: Iterable[str]) -> dict[int, int]:
    """Return whose result of each event is in its thread."""
    found = {}
    for thread in threads:
        values = agent.get_state({"configurable": {"thread_id": thread}}).values
        texts = [message.text for message in values.get("messages", ()) if message.type == "tool"]
        found.update({int(n): int(process) for text in texts for n, process in DONE.findall(text)})
    return found


def run(a: argparse.Namespace) -> dict[str, Any]:
    """Send, kill and cut for the given time, wait until all is quiet; return the figures."""
    import postgres
    import psycopg
    import sqlalchemy as sa

    from wakeloop.sessions.dbos import SessionClient

    dice = random.Random(a.seed)
    with ExitStack() as stack:
        server = stack.enter_context(postgres.running())
        url = stack.enter_context(server.database())
        log = str(Path(stack.enter_context(tempfile.TemporaryDirectory()), "log"))
        agent = stack.enter_context(agent_on(url, log, a.takes))
        crew = Crew(a.workers, url, log, str(a.takes), str(a.grace))
        stack.callback(crew.stop)
        post = SessionClient(url, {"main": agent})
        stack.callback(post.close)
        db = stack.enter_context(psycopg.connect(url, autocommit=True))
        sent: dict[str, list[int]] = {f"main:{i}": [] for i in range(a.threads)}
        when: dict[int, float] = {}
        cuts = connections = number = 0
        begun = time.monotonic()
        kill_at, cut_at = (begun + dice.expovariate(1 / mean) for mean in (a.kill, a.cut))
        while (now := time.monotonic()) < begun + a.seconds:
            name = dice.choice([*sent])
            event: Any = {"kind": "human", "id": f"e{number}", "text": f"event {number}"}
            when[number] = time.time()
            for _ in range(20):  # a sender whose connection is cut sends again, because an id is used once
                with suppress(sa.exc.OperationalError):
                    post.send(name, event)
                    break
            sent[name].append(number)
            number += 1
            if now >= kill_at:
                crew.kill_one(dice)
                kill_at = now + dice.expovariate(1 / a.kill)
            if now >= cut_at:
                connections += db.execute(CUT).fetchone()[0]  # type: ignore[index]
                cuts += 1
                cut_at = now + dice.expovariate(1 / a.cut)
            time.sleep(1 / a.rate)
        sending = time.monotonic() - begun
        deadline = time.monotonic() + 300
        while db.execute(UNSETTLED).fetchone()[0] and time.monotonic() < deadline:  # type: ignore[index]
            time.sleep(0.2)
        figures = judged(agent, sent)
        errors = [status.error for status in post.list() if status.error]
        cut_off, doubled, first = effects(log, crew.killed, results(agent, sent))
        waits = [first[n] - when[n] for n in first]
        return {
            "workers": a.workers,
            "threads": a.threads,
            "events": number,
            "seconds": round(sending),
            "seconds until all was quiet": round(time.monotonic() - begun - sending, 1),
            "kills": len(crew.killed),
            "cuts of all connections": cuts,
            "connections cut": connections,
            "lost": figures["lost"] + sum(n not in first for n in when),
            "repeated in a thread": figures["repeated"],
            "out of order": figures["out of order"],
            "doubled": len(doubled),
            "how": doubled,
            "calls cut off by a kill and run again": len(cut_off),
            "runs given up": errors,
            "workers that ended of themselves": crew.ended(),
            "grace": a.grace,
            "a call cut off waits, median": middle(cut_off),
            "a call cut off waits, at most": round(max(cut_off, default=0.0), 1),
            "an event waits, median": middle(waits),
            "an event waits, at most": round(max(waits, default=0.0), 1),
        }


def middle(seconds: list[float]) -> float:
    """Return the median, to a tenth; 0 for no values."""
    return round(statistics.median(seconds), 1) if seconds else 0.0


def main() -> None:
    """Run as a worker, or run everything."""
    if len(sys.argv) > 1 and sys.argv[1] == "--work":
        work(sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="how long events are sent")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--threads", type=int, default=40)
    parser.add_argument("--rate", type=float, default=4, help="events a second")
    parser.add_argument("--takes", type=float, default=1.0, help="seconds that a tool takes")
    parser.add_argument("--kill", type=float, default=20, help="mean seconds between two kills")
    parser.add_argument("--cut", type=float, default=10, help="mean seconds between two cuts")
    parser.add_argument("--grace", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    figures = run(parser.parse_args())
    print(json.dumps(figures, indent=2))
    print(PAGE.format_map(figures))


if __name__ == "__main__":
    main()
