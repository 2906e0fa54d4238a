"""Minutes of chaos on SQLite and Postgres, counted in files that the package itself does not write.

Agents get numbered events: to act, to ask the next agent of their circle, to plan, to wait, to pay (which a
person allows or forbids), to start a subagent. Meanwhile faults strike, drawn from a seed that is printed:
`FAULTS` has one record for each. A tool appends the number to a file when it begins and when it ends, with
fsync. The model is a separate server, whose answers depend only on the request; it records which results it
was shown and whether each request was legal.

At the end the file is compared with the events. A number may be lost; or doubled although its call had
finished; or interrupted, because its process was killed or stopped, and run again. The seed decides what
happens and when, but not the order of threads and processes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from chaos_model import TICK, TICKS, WORK, append

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

MODEL_SERVER = Path(__file__).with_name("chaos_model.py")
REAL_TIME = time.time  # a fault changes a worker's clock
GRACE = 10.0
CIRCLES = [f"main:{number}" for number in range(8)]  # two circles of four agents
GOAL, HELD, CLOCK, CROWD = "keeper", "main:held", "main:clock", "main:crowd"
THREADS = [*CIRCLES, GOAL, HELD, CLOCK, CROWD]
CROWD_SIZE = 2_001
VERBS = {"note": 8, "ask": 4, "plan": 2, "pay": 2, "wait": 1, "spawn": 1, "panic": 1, "steer": 2}
WAITS = 0.4  # how often something else must happen first when the goal is checked
PADDING = " and it was a long story" * 40  # so that old results are cleared from requests


def may_pay(number: int) -> bool:
    """Return the person's answer."""
    return number % 3 > 0


# -- a worker --------------------------------------------------------------------------------------------


class Panic(BaseException):
    """An exception of a Rust extension."""


def make_tools(log: str) -> list[Any]:
    """Return the tools that record numbers."""
    from wakeloop.tools import wait_for_work

    def act(number: int) -> str:
        append(log, f"begin {number} {os.getpid()} {REAL_TIME()}")
        time.sleep(0.3)
        append(log, f"end {number} {os.getpid()} {REAL_TIME()}")
        return f"event {number} is done by {os.getpid()}{PADDING}"

    def note(number: int) -> str:
        """Do what an event asks for."""
        return act(number)

    def pay(number: int) -> str:
        """Pay; a person has to allow it."""
        return act(number)

    def panic(number: int) -> str:
        """Act, and fail worse than with an exception."""
        raise Panic(act(number))

    return [note, pay, panic, wait_for_work]


@contextmanager
def open_agents(url: str, log: str, address: str, host: Any = None) -> Iterator[dict[str, Any]]:
    """Yield the agents by name, with their threads in the database."""
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.sqlite import SqliteSaver

    from wakeloop import create_todo_agent, wait
    from wakeloop.cli.sessions.postgres import open_postgres_saver
    from wakeloop.sessions import session_tools
    from wakeloop.sessions.dbos.database import is_postgres
    from wakeloop.thread.strict_saver import strict_saver

    coin = random.Random()
    tools = [*make_tools(log), *session_tools(host, ["talk_to_agent", "spawn_subagent"])]
    model: Any = ChatOpenAI(
        model="m", base_url=address, api_key="none", max_retries=0, streaming=True, timeout=60
    )
    with ExitStack() as stack:
        saver: Any
        if is_postgres(url):
            saver = stack.enter_context(open_postgres_saver(url))
        else:
            connection = sqlite3.connect(f"{log}-threads.db", check_same_thread=False, timeout=30)
            saver = strict_saver(SqliteSaver, stack.enter_context(closing(connection)))
            saver.setup()
        settings = {"max_context": 24_000, "max_wake_cycles": 200, "max_requests": 5_000}
        shared: dict[str, Any] = {"checkpointer": saver, "settings": settings, "interrupt_on": {"pay": True}}
        yield {
            "main": create_todo_agent(model, tools, **shared),
            GOAL: create_todo_agent(
                model,
                tools,
                **shared,
                done_when=lambda _: wait("a second look", 1) if coin.random() < WAITS else None,
            ),
        }


def work(url: str, log: str, address: str) -> None:
    """Work until the input closes, and follow the orders in its lines."""
    offset = [0.0]
    time.time = lambda: REAL_TIME() + offset[0]  # before the package is imported
    from wakeloop.sessions.dbos import DbosHost

    host = DbosHost(url, grace=GRACE)
    with open_agents(url, log, address, host) as agents, closing(host.start(agents)):
        for line in sys.stdin:
            order, _, value = line.strip().partition(" ")
            if order == "clock":
                offset[0] = float(value)
            elif order == "fork":
                append(f"{log}-shown", f"fork {fork_and_run()}")
            elif order == "full":
                limits = resource.getrlimit(resource.RLIMIT_FSIZE)
                resource.setrlimit(resource.RLIMIT_FSIZE, (Path(log).stat().st_size + 8192, limits[1]))
                time.sleep(float(value))
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def fork_and_run() -> str:
    """Fork this process under load, and print whether an agent in the child ran to its end."""
    child = os.fork()
    if child == 0:
        from wakeloop import create_todo_agent
        from wakeloop.testing import ScriptedModel

        create_todo_agent(ScriptedModel(["Done."])).invoke({"messages": [("user", "go")]})
        os._exit(0)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return "ran" if status == 0 else f"ended with {status}"
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


# -- faults ----------------------------------------------------------------------------------------------


@dataclass
class Stage:
    """What the faults act on: processes and their pauses, the database, the sent events."""

    kind: str
    url: str
    log: str
    address: str
    post: Any = None
    agents: Mapping[str, Any] = field(default_factory=dict)
    workers: list[subprocess.Popen[str]] = field(default_factory=list)
    server: Any = None
    pauses: dict[int, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    sent: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: {name: [] for name in THREADS})
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    errors: dict[str, str | None] = field(default_factory=dict)  # of every session, at the end
    given_up: dict[str, int] = field(default_factory=dict)  # the numbers of subagents that failed
    number: int = 0

    def begin_worker(self) -> None:
        """Start a worker, without waiting for it."""
        command = [sys.executable, __file__, "--work", self.url, self.log, self.address]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "text": True}
        errors = Path(f"{self.log}-errors").open("a")  # noqa: SIM115 - the child keeps it
        self.workers.append(subprocess.Popen(command, stderr=errors, **pipes))
        errors.close()

    def begin_server(self) -> None:
        """Start the model's server."""
        port = self.address.split(":")[2].partition("/")[0]
        self.server = subprocess.Popen([sys.executable, MODEL_SERVER, port, self.log])

    def tell(self, worker: subprocess.Popen[str], line: str) -> None:
        """Give a worker an order."""
        with suppress(BrokenPipeError):
            assert worker.stdin is not None
            worker.stdin.write(f"{line}\n")
            worker.stdin.flush()

    def send(self, thread: str, verb: str, peer: str = "") -> int:
        """Send the next numbered event."""
        number, self.number = self.number, self.number + 1
        words = f"event {number}: {verb} {peer}".strip()
        if verb == "steer":
            self.post.steer(thread, f"event {number}: note")
        else:
            kind = "human" if thread == GOAL else "cron"  # a person's words would answer an open question
            self.post.send(thread, {"kind": kind, "id": f"e{number}", "text": words})
        self.sent[thread].append((number, verb))
        return number

    def attend(self) -> None:
        """Act as the person: answer whatever waits for one, and resume what failed."""
        for thread in THREADS:
            with suppress(Exception):  # the database may be away
                status = self.post.status(thread)
                for question in self.agents[find_name(thread)].get_state(config_of(thread)).interrupts:
                    number = int(re.findall(r"'number': (\d+)", str(question.value))[0])
                    answer = {"kind": "human", "text": "yes" if may_pay(number) else "no"}
                    self.post.send(thread, {**answer, "correlation_id": question.id, "id": f"a{question.id}"})
                if status.error:
                    self.counts["runs given up, then sent on by a kick"] += 1
                    self.post.send(thread, {"kind": "kick"})

    def stop(self) -> None:
        """End every process."""
        for process in [*self.workers, self.server]:
            process.kill()
            process.wait()


def config_of(thread: str) -> Any:
    """Return the config of a thread."""
    return {"configurable": {"thread_id": thread}}


def find_name(thread: str) -> str:
    """Return the name of a thread's agent."""
    return thread.partition(":")[0]


def kill(stage: Stage, dice: random.Random) -> None:
    """Kill a worker and replace it."""
    victim = stage.workers.pop(dice.randrange(len(stage.workers)))
    victim.kill()
    stage.pauses[victim.pid].append((REAL_TIME(), float("inf")))
    victim.wait()
    stage.begin_worker()


def stop_for_a_while(stage: Stage, dice: random.Random) -> None:
    """Stop a worker for longer than the grace period; another one may take its threads meanwhile."""
    worker, began = dice.choice(stage.workers), REAL_TIME()
    worker.send_signal(signal.SIGSTOP)
    time.sleep(GRACE + 8)
    worker.send_signal(signal.SIGCONT)
    stage.pauses[worker.pid].append((began, REAL_TIME()))


def cut(stage: Stage, _: random.Random) -> None:
    """Cut every connection to the database."""
    run_sql(stage, CUT)


CUT = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""


def run_sql(stage: Stage, *statements: str) -> None:
    """Run statements on a new connection."""
    import psycopg

    options = "-c default_transaction_read_only=off"
    with psycopg.connect(stage.url, autocommit=True, options=options) as db:
        for statement in statements:
            db.execute(statement)  # type: ignore[call-overload,unused-ignore]


def make_read_only(stage: Stage, dice: random.Random) -> None:
    """Cut every connection, and let the database refuse writes for a few seconds, as a standby does."""
    name = re.findall(r"/(\w+)\?", stage.url)[0]
    run_sql(stage, f"ALTER DATABASE {name} SET default_transaction_read_only = on", CUT)
    time.sleep(dice.uniform(2, 6))
    run_sql(stage, f"ALTER DATABASE {name} SET default_transaction_read_only = off", CUT)


def fill_disk(stage: Stage, dice: random.Random) -> None:
    """Let no file of a worker grow for a few seconds."""
    stage.tell(dice.choice(stage.workers), f"full {dice.uniform(2, 5):.1f}")


def fill_postgres_disk(stage: Stage, dice: random.Random) -> None:
    """Let no file of Postgres grow for a few seconds: it panics, ends every connection, and recovers."""
    import psycopg

    with psycopg.connect(stage.url) as db:
        processes = [pid for (pid,) in db.execute("SELECT pid FROM pg_stat_activity")]
    owner = Path(f"/proc/{processes[0]}").stat()  # only the owner may limit them
    who: Any = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    for limit in ("8192", "unlimited"):
        for pid in processes:
            command = ["prlimit", f"--pid={pid}", f"--fsize={limit}:"]  # it may have ended
            subprocess.run(command, check=False, stderr=subprocess.DEVNULL, **who)
        time.sleep(dice.uniform(2, 5))


def move_clock(stage: Stage, dice: random.Random) -> None:
    """Set a worker's clock wrong for a few seconds, and then right."""
    worker = dice.choice(stage.workers)
    stage.tell(worker, f"clock {dice.choice([-86_400, -90, 90, 86_400])}")
    time.sleep(dice.uniform(3, 8))
    stage.tell(worker, "clock 0")


def fork(stage: Stage, dice: random.Random) -> None:
    """Let a worker fork while its threads run agents, and run one in the child."""
    stage.tell(dice.choice(stage.workers), "fork")


def end_server(stage: Stage, dice: random.Random) -> None:
    """Kill the model's server, which is back after a few seconds."""
    stage.server.kill()
    stage.server.wait()
    time.sleep(dice.uniform(1, 4))
    stage.begin_server()


def refuse(stage: Stage, dice: random.Random) -> None:
    """Let the model's server answer 429, with a time after which to ask again."""
    Path(f"{stage.log}-mode").write_text(f"refuse {REAL_TIME() + dice.uniform(1, 3)}")


def break_streams(stage: Stage, dice: random.Random) -> None:
    """Let the model's server send half of each stream."""
    Path(f"{stage.log}-mode").write_text(f"half {REAL_TIME() + dice.uniform(1, 4)}")


def hold(stage: Stage, _: random.Random) -> None:
    """Put a thread on hold, send it what must not move it, and release it."""
    from wakeloop import hold_thread, release_thread

    agent, config = stage.agents["main"], config_of(HELD)
    stage.send(HELD, "note")
    if not stage.post.wait(HELD, timeout=60) or not hold_thread(agent, config):
        return
    number = stage.send(HELD, "note")
    time.sleep(4)
    if any(line.split()[1] == str(number) for line in Path(stage.log).read_text().splitlines()):
        stage.findings.append(f"event {number} moved a thread that is on hold")
    release_thread(agent, config)
    stage.post.send(HELD, {"kind": "kick"})


def crowd(stage: Stage, _: random.Random) -> None:
    """Send one session 2,001 events at once."""
    if stage.counts["crowd"] == 1:  # once is enough
        for number in range(CROWD_SIZE):
            stage.post.send(
                CROWD, {"kind": "cron", "id": f"c{number}", "text": f"number {number} of a crowd"}
            )


@dataclass(frozen=True)
class Fault:
    """A fault: what it does, how often it is drawn, and where it can be."""

    strike: Callable[[Stage, random.Random], None]
    weight: int
    where: tuple[str, ...] = ("sqlite", "postgres")


FAULTS = (
    Fault(kill, 4),
    Fault(stop_for_a_while, 1),
    Fault(cut, 6, ("postgres",)),
    Fault(make_read_only, 3, ("postgres",)),
    Fault(fill_disk, 6, ("sqlite",)),
    Fault(fill_postgres_disk, 2, ("postgres",)),
    Fault(move_clock, 3),
    Fault(fork, 2),
    Fault(end_server, 3),
    Fault(refuse, 3),
    Fault(break_streams, 3),
    Fault(hold, 2),
    Fault(crowd, 1),
)


def inject_faults(stage: Stage, dice: random.Random, over: threading.Event, pause: float) -> None:
    """Draw faults and let them happen, one after another, until the time is over."""
    possible = [fault for fault in FAULTS if stage.kind in fault.where]
    while not over.wait(dice.uniform(0.5, 1.5) * pause):
        (fault,) = dice.choices(possible, [fault.weight for fault in possible])
        name = fault.strike.__name__
        stage.counts[name] += 1
        print(f"{time.strftime('%H:%M:%S')} {stage.kind}: {name}", file=sys.stderr, flush=True)
        try:
            fault.strike(stage, random.Random(dice.random()))
        except Exception as error:  # noqa: BLE001 - the fault hit its own connection
            stage.counts[f"{name}, which hit this program itself"] += 1
            print(f"{name}: {error!r}", file=sys.stderr, flush=True)


# -- counting --------------------------------------------------------------------------------------------


def judge_effects(stage: Stage, expected: set[int]) -> dict[str, Any]:
    """Compare the file with the expected effects."""
    begun: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for line in Path(stage.log).read_text().splitlines():
        word, number, process, when = line.split()
        if word == "begin":
            begun[int(number)].append((float(when), int(process)))
    shown: dict[int, float] = {}
    others: Counter[str] = Counter()
    for line in Path(f"{stage.log}-shown").read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == "shown":
            number, _, when = rest.split()
            shown.setdefault(int(number), float(when))
        else:
            others[line] += 1
    cut_off, doubled = list[str](), list[str]()
    for number, times in begun.items():
        for (first, one), (again, other) in pairwise(sorted(times)):
            what = f"{number}: by {one}, after {again - first:.1f} s by {other}"
            finished = shown.get(number, again) < again
            (cut_off if not finished and is_excused(stage, one, other, first, again) else doubled).append(
                what
            )
    return {
        "effects": sum(map(len, begun.values())),
        "lost": sorted(expected - begun.keys()),
        "doubled": doubled,
        "cut off by a kill or a stop, and run again": cut_off,
        "done without being asked": sorted(begun.keys() - expected - {*stage.given_up.values()}),
        "subagents that failed, and said so": sorted(stage.given_up),
        "requests that are not legal": [line for line in others if line.startswith("illegal")],
        "forks": {line: count for line, count in others.items() if line.startswith("fork")},
    }


def is_excused(stage: Stage, one: int, other: int, first: float, again: float) -> bool:
    """Return whether a killed or stopped process explains that a call began twice."""
    if one == other:
        return False
    pauses = [(began, ended) for process in (one, other) for began, ended in stage.pauses.get(process, ())]
    return any(began <= again and ended >= first for began, ended in pauses)


def judge_thread(stage: Stage, thread: str, expected: set[int]) -> Iterator[str]:
    """Yield how a thread does not match its events, and add what it was asked to do to `expected`."""
    values = stage.agents[find_name(thread)].get_state(config_of(thread)).values
    messages, events = values.get("messages", ()), stage.sent[thread]
    people = "\n".join(message.text for message in messages if message.type == "human")
    seen = Counter(int(number) for number, *_ in WORK.findall(people))
    yield from (
        f"event {number} is {seen[number]} times in {thread}" for number, _ in events if seen[number] != 1
    )
    expected.update(number for number, verb in events if verb != "pay" or may_pay(number))
    if thread == CLOCK:
        expected.update(TICKS + tick for tick in range(len(TICK.findall(people))))
    for message in messages:
        if message.type == "tool" and message.text.startswith(("Asked ", "Started ")):
            number = int(message.tool_call_id.rpartition("-")[2])
            handle = message.text.removeprefix("Started ").rstrip(".")
            if stage.errors.get(handle):
                stage.given_up[handle] = number
            else:
                expected.add(number)
    planned = sorted(f"part {number}" for number, verb in events if verb == "plan")
    todos = [(todo["content"], todo["status"]) for todo in values.get("todos") or ()]
    if sorted(todos) != [(part, "completed") for part in planned]:
        yield f"the list of {thread} is {todos}"
    crowd = re.findall(r"number (\d+) of a crowd", people)
    if thread == CROWD and stage.counts["crowd"] and sorted(map(int, crowd)) != [*range(CROWD_SIZE)]:
        yield f"{len(set(crowd))} of {CROWD_SIZE} events of the crowd, {len(crowd)} times"


def keep_journal(stage: Stage, folder: Path) -> None:
    """Record what the threads say and how each event fared, for diagnosis."""
    with (folder / "threads").open("w") as file:
        for thread in THREADS:
            if thread not in stage.errors:
                continue
            snapshot = stage.agents[find_name(thread)].get_state(config_of(thread))
            file.write(f"# {thread}: {stage.post.status(thread)}\n{stage.sent[thread]}\n")
            for message in snapshot.values.get("messages", ()):
                calls = [f"{call['name']}{call['args']}" for call in getattr(message, "tool_calls", ())]
                file.write(f"{message.type} {message.text[:300]!r} {calls or ''}\n")
    if stage.kind == "postgres":
        import psycopg

        with psycopg.connect(stage.url) as db, (folder / "events").open("w") as file:
            for row in db.execute("SELECT * FROM wakeloop_events ORDER BY seq"):
                file.write(f"{row}\n")


# -- the whole run ---------------------------------------------------------------------------------------


def send_events(stage: Stage, dice: random.Random, until: float, pause: float) -> None:
    """Send events of all kinds for the given time, and act as the person now and then."""
    attended = 0.0
    while time.monotonic() < until:
        thread = dice.choice([*CIRCLES, *CIRCLES, GOAL])
        (verb,) = dice.choices([*VERBS], [*VERBS.values()])
        place = CIRCLES.index(thread) if thread in CIRCLES else 0
        peer = CIRCLES[place // 4 * 4 + (place + 1) % 4]
        stage.send(thread, "note" if thread == GOAL else verb, peer if verb == "ask" else "")
        if time.monotonic() > attended + 5:
            stage.attend()
            attended = time.monotonic()
        time.sleep(dice.uniform(0.5, 1.5) * pause)


def settle(stage: Stage, patience: float) -> bool:
    """Repair everything, then wait until no event waits and nobody is asked."""
    Path(f"{stage.log}-mode").unlink(missing_ok=True)
    for worker in stage.workers:
        stage.tell(worker, "clock 0")
    for schedule in stage.post.schedules():
        stage.post.cancel(schedule.id)
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        stage.attend()
        quiet = stage.post.wait(timeout=10)
        found = stage.post.list()
        for status in found:
            if status.on in ("work", "limit", "condition"):  # with a clock that was a day ahead
                stage.post.send(status.thread, {"kind": "kick"})
        waiting = [one for one in found if (one.error and one.thread in THREADS) or one.asks or one.sent]
        if quiet and not waiting and all(status.state != "waiting" for status in found):
            return True
    return False


def run(kind: str, url: str, folder: str, options: argparse.Namespace) -> dict[str, Any]:
    """Send events under faults, wait until all is quiet, and count."""
    from wakeloop.sessions.dbos import SessionClient

    events, faults = random.Random(options.seed), random.Random(options.seed + 1)
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    stage = Stage(kind, url, str(Path(folder, "log")), address)
    for name in (stage.log, f"{stage.log}-shown"):
        Path(name).touch()
    with ExitStack() as stack:
        stage.agents = stack.enter_context(open_agents(url, stage.log, address))
        stage.post = stack.enter_context(closing(SessionClient(url, stage.agents)))
        stage.begin_server()
        stack.callback(stage.stop)
        for _ in range(1 if kind == "sqlite" else options.workers):  # SQLite allows one host
            stage.begin_worker()
        stage.post.schedule(CLOCK, "* * * * *", "tick")
        for thread in THREADS[:-1]:  # the crowd is too long for a request: its model would forget its calls
            stage.send(thread, "note")
        stage.post.wait(timeout=300)
        over, began = threading.Event(), time.monotonic()
        injector = threading.Thread(target=inject_faults, args=(stage, faults, over, options.fault_every))
        injector.start()
        try:
            send_events(stage, events, began + options.minutes * 60, options.event_every)
        finally:
            over.set()
            injector.join()
        sent_for = time.monotonic() - began
        settled = settle(stage, options.patience)
        sessions = stage.post.list()
        stage.errors = {status.thread: status.error for status in sessions}
        if options.keep:
            keep_journal(stage, Path(folder))
        expected: set[int] = set()
        unfit = [fault for thread in THREADS for fault in judge_thread(stage, thread, expected)]
        return {
            "database": kind,
            "seed": options.seed,
            "minutes": round(sent_for / 60, 1),
            "minutes until all was quiet": round((time.monotonic() - began - sent_for) / 60, 1),
            "events": stage.number + (CROWD_SIZE if stage.counts["crowd"] else 0),
            "all settled": settled,
            **judge_effects(stage, expected),
            "threads that do not fit their events": unfit,
            "on hold, and moved": stage.findings,
            "faults": dict(sorted(stage.counts.items())),
            "sessions that wait": [
                f"{one.thread}: {one.state}, {one.reason}, {one.on}, {one.queued}, {one.sent}, {one.error}"
                for one in sessions
                if one.state in ("waiting", "running", "failed", "damaged")
                or one.error
                or one.queued
                or one.sent
            ],
        }


BAD = (
    *("lost", "doubled", "done without being asked", "requests that are not legal", "on hold, and moved"),
    "threads that do not fit their events",
)


def main() -> None:
    """Run as a worker, or run everything."""
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1, help="how long events are sent, on each database")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--workers", type=int, default=4, help="on Postgres")
    parser.add_argument("--database", choices=["sqlite", "postgres"], action="append", help="default: both")
    parser.add_argument("--event-every", type=float, default=1.5, help="seconds between two events")
    parser.add_argument("--fault-every", type=float, default=10, help="seconds between two faults")
    parser.add_argument("--patience", type=float, default=600, help="seconds until all must be quiet")
    parser.add_argument("--keep", help="a folder for the files of the run")
    options = parser.parse_args()
    import postgres

    bad = False
    print(f"seed {options.seed}", flush=True)
    for kind in options.database or ["sqlite", "postgres"]:
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            if options.keep:
                folder = str(Path(options.keep, kind))
                Path(folder).mkdir(parents=True)
            url = f"sqlite:///{folder}/sessions.db"
            if kind == "postgres":
                url = stack.enter_context(stack.enter_context(postgres.running()).database())
            figures = run(kind, url, folder, options)
        print(json.dumps(figures, indent=2), flush=True)
        bad |= not figures["all settled"] or any(figures[name] for name in BAD)
    sys.exit(bad)


if __name__ == "__main__":
    main()
