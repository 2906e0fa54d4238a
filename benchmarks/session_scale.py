"""The cost of a session: asleep, awake, and while nobody says anything."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import psycopg
from session_kills import Workers, agent_on

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

TABLES = "SELECT relname, pg_total_relation_size(relid) FROM pg_stat_user_tables"


def sizes(db: psycopg.Connection[Any]) -> dict[str, int]:
    """Return the bytes of every table with its indexes."""
    db.execute("VACUUM ANALYZE")
    return {name: int(size) for name, size in db.execute(TABLES)}  # type: ignore[call-overload,unused-ignore]


def cpu(worker: subprocess.Popen[str]) -> float:
    """Return the CPU seconds of a worker so far."""
    times = psutil.Process(worker.pid).cpu_times()
    return float(times.user + times.system)


def server_cpu(folder: Path) -> float:
    """Return the CPU seconds of all living processes of the server."""
    total = 0.0
    for process in psutil.process_iter(["cmdline", "name"]):
        if process.info["name"] == "postgres" or (process.info["cmdline"] or [""])[0].startswith("postgres"):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def transactions(db: psycopg.Connection[Any]) -> int:
    """Return the transactions of this database so far."""
    row = db.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()").fetchone()
    assert row is not None
    return int(row[0])


def main() -> None:
    """Measure one worker on a temporary Postgres."""
    import postgres

    from wakeloop.sessions.dbos import SessionClient

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--idle", type=float, default=20.0, help="seconds in which nothing happens")
    a = parser.parse_args()
    with ExitStack() as stack:
        server = stack.enter_context(postgres.running())
        url = stack.enter_context(server.database())
        log = str(Path(stack.enter_context(tempfile.TemporaryDirectory()), "log"))
        agent = stack.enter_context(agent_on(url, log, 0.0))
        post = SessionClient(url, {"main": agent})
        stack.callback(post.close)
        db = stack.enter_context(psycopg.connect(url, autocommit=True))
        crew = Workers("--work", url, log, "0")
        stack.callback(crew.stop)
        crew.add()
        crew.wait()
        [worker] = crew.running
        before, used, served, begun = sizes(db), cpu(worker), server_cpu(server.folder), time.monotonic()
        for number in range(a.sessions):
            post.send(f"main:{number}", {"kind": "human", "id": f"e{number}", "text": f"event {number}"})
        sending = time.monotonic() - begun
        while db.execute("SELECT 1 FROM wakeloop_events WHERE event IS NOT NULL LIMIT 1").fetchone():
            time.sleep(0.2)
        seconds, busy = time.monotonic() - begun, cpu(worker) - used
        busy_server = server_cpu(server.folder) - served
        after = sizes(db)
        time.sleep(3)
        used, served, count, begun = (
            cpu(worker),
            server_cpu(server.folder),
            transactions(db),
            time.monotonic(),
        )
        time.sleep(a.idle)
        quiet = time.monotonic() - begun
        figures = {
            "sessions": a.sessions,
            "bytes of a sleeping session": {
                name: round((size - before.get(name, 0)) / a.sessions)
                for name, size in sorted(after.items())
                if size - before.get(name, 0) >= a.sessions
            },
            "events sent a second": round(a.sessions / sending),
            "turns a second (2 model steps, 1 tool call each)": round(a.sessions / seconds, 1),
            "worker CPU ms per turn": round(1000 * busy / a.sessions, 1),
            "Postgres CPU ms per turn": round(1000 * busy_server / a.sessions, 1),
            "turns a second a core": round(a.sessions / busy, 1),
            "an idle worker": {
                "CPU ms a second": round(1000 * (cpu(worker) - used) / quiet, 1),
                "Postgres CPU ms a second": round(1000 * (server_cpu(server.folder) - served) / quiet, 1),
                "transactions a second": round((transactions(db) - count) / quiet, 1),
            },
        }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
