"""The cost of a session host beyond DBOS: the same turns in its sessions and in plain workflows, alternating.

Two workers share one Postgres. The host takes events for its sessions. The other runs the same agent in a
workflow of one step, and workflows of as many steps as a turn has checkpoints, which store as many bytes and
do nothing else.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import psycopg
from dbos import DBOS, DBOSClient
from session_kills import UNSETTLED, Workers, agent_on

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

SCHEMA, QUEUE, CONCURRENCY, POLLING = (
    "bare",
    "bare",
    16,
    0.2,
)  # as many at once, and polled as often, as by the host
TURNS = 4  # the least counts
BUSY = f"SELECT count(*) FROM {SCHEMA}.workflow_status WHERE status NOT IN ('SUCCESS', 'ERROR')"  # noqa: S608
FAILED = f"SELECT count(*) FROM {SCHEMA}.workflow_status WHERE status = 'ERROR'"  # noqa: S608
STORED = """SELECT
    (SELECT count(*) FROM checkpoints),
    (SELECT coalesce(sum(pg_column_size(c)), 0) FROM checkpoints c)
    + (SELECT coalesce(sum(pg_column_size(b)), 0) FROM checkpoint_blobs b)
    + (SELECT coalesce(sum(pg_column_size(w)), 0) FROM checkpoint_writes w)"""


def work(url: str, log: str) -> None:
    """Work for plain DBOS, with both workflows, until the input closes."""
    DBOS(
        config={
            "name": "bare",
            "system_database_url": url,
            "dbos_system_schema": SCHEMA,
            "application_version": "1",
            "log_level": "ERROR",
        }
    )

    @DBOS.step()
    def store(size: int) -> str:
        return secrets.token_hex(size // 2)

    @DBOS.workflow()
    def bare(steps: int, size: int) -> None:
        for _ in range(steps):
            store(size)

    with agent_on(url, log, 0.0) as agent:

        @DBOS.step()
        def invoke(thread: str, text: str) -> str:
            config = {"configurable": {"thread_id": thread}}
            given = {"messages": [("user", text)]}
            return str(agent.invoke(given, config, durability="sync")["messages"][-1].text)

        @DBOS.workflow()
        def invoking(thread: str, text: str) -> str:
            return invoke(thread, text)

        DBOS.launch()
        DBOS.register_queue(QUEUE, worker_concurrency=CONCURRENCY, polling_interval_sec=POLLING)
        print("up", flush=True)
        sys.stdin.read()


def cpu(process: psutil.Process) -> float:
    """Return the CPU seconds of a process so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def server_cpu(folder: Path) -> float:
    """Return the CPU seconds of the server's processes, including those that have ended."""
    main = psutil.Process(int((folder / "data/postmaster.pid").read_text().split()[0]))
    times = main.cpu_times()
    ended = times.children_user + times.children_system
    return float(cpu(main) + ended + sum(map(cpu, main.children())))


@dataclass
class Bench:
    """A Postgres, a worker with a host and one without, and a client of each."""

    server: Any
    db: psycopg.Connection[Any]
    host: psutil.Process
    plain: psutil.Process
    post: Any
    client: DBOSClient
    steps: int = 0
    size: int = 0

    def send(self, name: str) -> None:
        """Send an event to a new session."""
        self.post.send(name, {"kind": "human", "id": name, "text": "event 1"})

    def invoke(self, name: str) -> None:
        """Request a workflow that invokes the agent."""
        self.enqueue("invoking", name, "event 1")

    def store(self, name: str) -> None:
        """Request a workflow that only stores."""
        self.enqueue("bare", self.steps, self.size)

    def enqueue(self, workflow: str, *arguments: Any) -> None:
        """Put a workflow of the plain worker into its queue."""
        self.client.enqueue({"queue_name": QUEUE, "workflow_name": f"work.<locals>.{workflow}"}, *arguments)

    def measure(self, ask: Callable[[str], None], label: str, sessions: int) -> dict[str, float]:
        """Request a turn of each session, wait for all, and return CPU ms per turn."""
        worker, query = (self.host, UNSETTLED) if ask == self.send else (self.plain, BUSY)
        used, served = cpu(worker), server_cpu(self.server.folder)
        for number in range(sessions):
            ask(f"main:{label}-{number}")
        while self.db.execute(query).fetchone() != (0,):
            time.sleep(0.1)
        spent = {"worker": cpu(worker) - used, "Postgres": server_cpu(self.server.folder) - served}
        return {part: 1000 * seconds / sessions for part, seconds in spent.items()}

    def read_size(self, sessions: int) -> None:
        """Record how many checkpoints a turn has, and their bytes."""
        [(checkpoints, stored)] = self.db.execute(STORED)
        self.steps, self.size = round(checkpoints / sessions), round(stored / checkpoints)


@contextmanager
def opened() -> Iterator[Bench]:
    """Start the server and both workers."""
    import postgres

    from wakeloop.sessions.dbos import SessionClient

    with ExitStack() as stack:
        server = stack.enter_context(postgres.running())
        url = stack.enter_context(server.database())
        log = str(Path(stack.enter_context(TemporaryDirectory()), "log"))
        agent = stack.enter_context(agent_on(url, log, 0.0))
        post = SessionClient(url, {"main": agent})
        stack.callback(post.close)
        db = stack.enter_context(psycopg.connect(url, autocommit=True))
        host, plain = Workers("--work", url, log, "0"), Workers("--work", url, log)
        plain.command[1] = __file__
        for crew in (host, plain):
            stack.callback(crew.stop)
            crew.add()
            crew.wait()
        client = DBOSClient(system_database_url=url, dbos_system_schema=SCHEMA)
        stack.callback(client.destroy)
        workers = [psutil.Process(crew.running[0].pid) for crew in (host, plain)]
        yield Bench(server, db, *workers, post, client)


def main() -> None:
    """Measure all three in turns."""
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:4])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=100, help="of each kind in each turn")
    sessions = parser.parse_args().sessions
    with opened() as bench:
        bench.measure(bench.send, "warm", sessions)
        bench.read_size(sessions)
        kinds: dict[str, Callable[[str], None]] = {
            "session host": bench.send,
            "workflow that invokes the agent": bench.invoke,
            "bare workflow": bench.store,
        }
        found: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
        for turn in range(TURNS + 1):
            for kind, ask in kinds.items():
                found[kind].append(bench.measure(ask, f"{turn}-{kind}", sessions))
        assert bench.db.execute(FAILED).fetchone() == (0,), "a workflow has failed"
        figures: dict[str, Any] = {"sessions": sessions, "steps": bench.steps, "bytes of a step": bench.size}
    for kind, rows in found.items():  # the first turn is a warm-up
        least = {part: round(min(row[part] for row in rows[1:]), 1) for part in rows[0]}
        figures[f"{kind}, CPU ms per turn"] = least
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
