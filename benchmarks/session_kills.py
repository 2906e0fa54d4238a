"""Events for many sessions, and workers that are killed while they handle them.

Every event asks its thread's agent to record the event, with a tool that appends a line to a file. At the end
each thread's messages are read: an event is lost if it is in none, repeated if it is there twice, out of
order if it comes before one that was sent earlier. With `--bare` the same workers take the same events from a
plain table, without the host, to show what the host prevents.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

UNSETTLED = "SELECT count(*) FROM wakeloop_events WHERE event IS NOT NULL"
EVENT = re.compile(r"event (\d+)")


class Writer(BaseChatModel):
    """Answers only from the messages: records each event that is not recorded yet, then says so."""

    latency: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "writer"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Writer:
        return self

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        time.sleep(self.latency)
        asked = [m for m in messages if m.type == "human"]
        noted = {c["args"].get("number") for m in messages if m.type == "ai" for c in m.tool_calls}
        new = [n for m in asked for n in map(int, EVENT.findall(m.text)) if n not in noted]
        calls = [{"name": "note", "args": {"number": n}, "id": f"note-{n}"} for n in dict.fromkeys(new)]
        reply = AIMessage("" if calls else f"noted {len(noted)}", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=reply)])


@contextmanager
def agent_on(url: str, log: str, latency: float) -> Iterator[Any]:
    """Build the agent of every thread, with its checkpoints in Postgres."""
    from wakeloop import create_todo_agent
    from wakeloop.cli.sessions.postgres import open_postgres_saver

    def note(number: int) -> str:
        """Write an event down."""
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f"{number}\n".encode())
        os.close(file)
        return f"event {number} is written down"

    with open_postgres_saver(url) as saver:
        yield create_todo_agent(Writer(latency=latency), tools=[note], checkpointer=saver)


def work(url: str, log: str, latency: float) -> None:
    """Work until the input closes."""
    from wakeloop.sessions.dbos import DbosHost

    with agent_on(url, log, latency) as agent, DbosHost(url, {"main": agent}):
        print("up", flush=True)
        sys.stdin.read()


def work_bare(url: str, log: str, latency: float) -> None:
    """Work without the host: take the oldest event that is left, of whatever thread, and invoke."""
    import psycopg

    from wakeloop import ConcurrentRunError

    with agent_on(url, log, latency) as agent, psycopg.connect(url, autocommit=True) as db:
        print("up", flush=True)
        while True:
            row = db.execute(
                "DELETE FROM bare WHERE seq = (SELECT min(seq) FROM bare) RETURNING thread, text"
            ).fetchone()
            if row is None:
                time.sleep(0.05)
                continue
            config = {"configurable": {"thread_id": row[0]}}
            try:
                agent.invoke({"messages": [("user", row[1])]}, config, durability="sync")
            except ConcurrentRunError:  # it was reported: the turn is not in the thread
                with Path(f"{log}-told").open("a") as told:
                    told.write(f"{row[1]}\n")


class Workers:
    """Worker processes, one of which is killed and replaced now and then."""

    def __init__(self, *arguments: str) -> None:
        self.command = [sys.executable, __file__, *arguments]
        self.running: list[subprocess.Popen[str]] = []

    def add(self) -> None:
        worker = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.running.append(worker)

    def wait(self) -> None:
        for worker in self.running:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "up\n"

    def kill_one(self, dice: random.Random) -> None:
        victim = self.running.pop(dice.randrange(len(self.running)))
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        self.add()

    def stop(self) -> None:
        for worker in self.running:
            worker.kill()
            worker.wait()


def judged(agent: Any, sent: dict[str, list[int]]) -> Counter[str]:
    """Compare what was sent with what the threads hold."""
    figures: Counter[str] = Counter()
    for name, numbers in sent.items():
        values = agent.get_state({"configurable": {"thread_id": name}}).values
        people = [m.text for m in values.get("messages", ()) if m.type == "human"]
        seen = [int(n) for text in people for n in EVENT.findall(text)]
        figures["lost"] += len(set(numbers) - set(seen))
        figures["repeated"] += len(seen) - len(set(seen))
        figures["out of order"] += sum(a > b for a, b in pairwise(seen))
    return figures


def run(
    threads: int, events: int, workers: int, kills: int, latency: float, seed: int, *, bare: bool
) -> dict[str, Any]:
    """Send, kill, wait until all is quiet; return the figures."""
    import postgres

    from wakeloop.sessions.dbos import SessionClient

    dice = random.Random(seed)
    with ExitStack() as stack:
        server = stack.enter_context(postgres.running())
        url = stack.enter_context(server.database())
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        log = str(Path(folder, "log"))
        agent = stack.enter_context(agent_on(url, log, latency))
        names = [f"main:{i}" for i in range(threads)]
        sent: dict[str, list[int]] = {name: [] for name in names}
        post = SessionClient(url, {"main": agent})
        stack.callback(post.close)
        import psycopg

        db = stack.enter_context(psycopg.connect(url, autocommit=True))
        db.execute("CREATE TABLE bare (seq bigserial PRIMARY KEY, thread text, text text)")
        crew = Workers("--work-bare" if bare else "--work", url, log, str(latency))
        stack.callback(crew.stop)
        for _ in range(workers):
            crew.add()
        crew.wait()
        begun = time.monotonic()
        due = sorted(dice.sample(range(events), kills))
        for number in range(events):
            name = dice.choice(names)
            sent[name].append(number)
            if bare:
                db.execute("INSERT INTO bare (thread, text) VALUES (%s, %s)", [name, f"event {number}"])
            else:
                post.send(name, {"kind": "human", "id": f"e{number}", "text": f"event {number}"})
            if due and number >= due[0]:
                due.pop(0)
                crew.kill_one(dice)
        sending = time.monotonic() - begun

        def left() -> int:
            query = "SELECT count(*) FROM bare" if bare else UNSETTLED
            return int(db.execute(query).fetchone()[0])  # type: ignore[index]

        while left():
            time.sleep(0.2)
        if bare:
            time.sleep(3)  # the last events taken may still be in work
        seconds = time.monotonic() - begun
        figures = judged(agent, sent)
        told = Path(f"{log}-told")
        figures["ConcurrentRunError"] = len(told.read_text().splitlines()) if told.exists() else 0
        effects = Counter(Path(log).read_text().split())
        figures["tool calls run twice"] = sum(n - 1 for n in effects.values())
    return {
        "threads": threads,
        "events": events,
        "workers": workers,
        "kills": kills,
        "host": "none" if bare else "DBOS on Postgres",
        **{
            key: figures[key]
            for key in ("lost", "repeated", "out of order", "ConcurrentRunError", "tool calls run twice")
        },
        "seconds to send": round(sending, 1),
        "seconds in all": round(seconds, 1),
    }


def main() -> None:
    """Run as a worker, or run everything."""
    if len(sys.argv) > 1 and sys.argv[1] in ("--work", "--work-bare"):
        role = work if sys.argv[1] == "--work" else work_bare
        role(sys.argv[2], sys.argv[3], float(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=50)
    parser.add_argument("--events", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds that the model takes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bare", action="store_true", help="without the host")
    a = parser.parse_args()
    print(json.dumps(run(a.threads, a.events, a.workers, a.kills, a.latency, a.seed, bare=a.bare), indent=2))


if __name__ == "__main__":
    main()
