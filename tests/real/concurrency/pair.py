"""Two processes on one thread: `python pair.py [TRIALS]` counts lost and reported turns.

As `pair.py worker SAVER WHERE DURABILITY NAME` it is one of the two: it runs a turn for each line of its
input, `THREAD START LATENCY` (when, and how long each reply takes, in seconds), and prints how it ended. A
latency of `-` stops before each reply until another line comes.
"""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from wakeloop import ConcurrentRunError, create_todo_agent
from wakeloop.testing import ScriptedModel, calls, says

REPLIES = 3
BUSY = 30.0  # seconds that one writer waits for the other


@contextmanager
def saver_at(kind: str, where: str) -> Iterator[Any]:
    """Open a saver for one process."""
    if kind == "sqlite":
        with closing(sqlite3.connect(where, check_same_thread=False, timeout=BUSY)) as connection:
            yield SqliteSaver(connection)
    else:
        with PostgresSaver.from_conn_string(where) as saver:
            saver.setup()
            yield saver


# -- one of the two -----------------------------------------------------------------------------------------


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def turn(saver: Any, name: str, durability: str, thread: str, start: float, latency: str) -> None:
    """Run one turn of three requests on a thread, and return how it ended."""

    def reply(message: Any) -> Any:
        def after_a_while(_: Any) -> Any:
            if latency == "-":
                say(stopped=True)
                sys.stdin.readline()
            else:
                time.sleep(float(latency))
            return message

        return after_a_while

    looking = [calls(("todo_list", {}))] * (REPLIES - 1)
    model = ScriptedModel([reply(message) for message in (*looking, says(f"answer of {name}"))])
    agent = create_todo_agent(model, checkpointer=saver)
    config: Any = {"configurable": {"thread_id": thread}}
    time.sleep(max(start - time.time(), 0))
    given: Any = {"messages": [("user", f"from {name}")]}
    try:
        agent.invoke(given, config, durability=durability)  # type: ignore[call-overload]
    except ConcurrentRunError as error:
        say(ended="told", own=error.own, other=error.other)
    else:
        say(ended="quiet")


def work(kind: str, where: str, durability: str, name: str) -> None:
    """Run turns on request."""
    with saver_at(kind, where) as saver:
        say(ready=True)
        for line in iter(sys.stdin.readline, ""):
            thread, start, latency = line.split()
            turn(saver, name, durability, thread, float(start), latency)


# -- both of them -------------------------------------------------------------------------------------------


class Worker:
    """One of the two processes, as its parent sees it."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "worker", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.hear() == {"ready": True}

    def tell(self, line: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        with self.process as process:
            assert process.stdin is not None
            process.stdin.close()


class Pair:
    """Two processes over one database, and a reader of what they leave."""

    def __init__(self, kind: str, where: str, durability: str) -> None:
        self.kind, self.where = kind, where
        if kind == "sqlite":
            with closing(sqlite3.connect(where)) as connection:
                SqliteSaver(connection).setup()
        self.workers = {name: Worker(kind, where, durability, name) for name in ("first", "second")}

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()

    def judged(self, thread: str, ends: dict[str, dict[str, Any]]) -> dict[str, str]:
        """Return what became of each turn: kept, reported (one of the runs raised), or silently lost."""
        with saver_at(self.kind, self.where) as saver:
            agent = create_todo_agent(ScriptedModel([]), checkpointer=saver)
            messages = agent.get_state({"configurable": {"thread_id": thread}}).values.get("messages", ())
        texts = {str(message.content) for message in messages}
        told = any(end["ended"] == "told" for end in ends.values())
        return {
            name: "kept"
            if {f"from {name}", f"answer of {name}"} <= texts and end["ended"] == "quiet"
            else "told"
            if told
            else "lost"
            for name, end in ends.items()
        }

    def at_once(self, thread: str, offset: float, latency: float) -> dict[str, str]:
        """Let the second run start `offset` seconds after the first."""
        start = time.time() + 0.02
        for i, worker in enumerate(self.workers.values()):
            worker.tell(f"{thread} {start + i * offset} {latency}")
        return self.judged(thread, {name: worker.hear() for name, worker in self.workers.items()})

    def crossed(self, thread: str, before: int, within: int) -> dict[str, str]:
        """Stop the first before reply `before`, the second before reply `within`; the first ends first.

        With `within` past the last reply, the second run ends before the first continues.
        """
        first, second = self.workers.values()
        ends: dict[str, dict[str, Any]] = {}

        def play(name: str, worker: Worker, until: int) -> None:
            while (heard := worker.hear()) == {"stopped": True}:
                seen[name] += 1
                if seen[name] == until:
                    return
                worker.tell()
            ends[name] = heard

        seen: Counter[str] = Counter()
        first.tell(f"{thread} 0 -")
        play("first", first, before)
        second.tell(f"{thread} 0 -")
        play("second", second, within)
        for name, worker in (("first", first), ("second", second)):
            if name not in ends:
                worker.tell()
                play(name, worker, 0)
        return self.judged(thread, dict(sorted(ends.items())))


def measure(trials: int) -> None:
    """Count turns over many offsets, and print a table."""
    import postgres

    print("| saver | durability | pairs | runs | kept | reported | lost silently |")
    print("|---|---|---|---|---|---|---|")
    latency = 0.02
    with tempfile.TemporaryDirectory() as folder, postgres.running() as server:
        for kind in ("sqlite", "postgres"):
            for durability in ("sync", "async", "exit"):
                with server.database() as url:
                    where = url if kind == "postgres" else str(Path(folder) / f"{durability}.db")
                    pair = Pair(kind, where, durability)
                    count: Counter[str] = Counter()
                    for i in range(trials):
                        offset = i / trials * 2 * REPLIES * latency  # from simultaneous to well apart
                        fates = pair.at_once(f"t{i}", offset, latency)
                        count.update(fates.values())
                    pair.close()
                row = [kind, durability, trials, 2 * trials, count["kept"], count["told"], count["lost"]]
                print(f"| {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        work(*sys.argv[2:])
    else:
        sys.path.insert(0, os.fspath(Path(__file__).parents[2]))
        measure(int(sys.argv[1]) if sys.argv[1:] else 200)
