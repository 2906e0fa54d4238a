"""Minutes of chaos over SQLite and Postgres, counted by a file that nothing of the package writes.

A tool appends a unique number to a file, with fsync. Four agents ask each other in a circle while workers
are killed with SIGKILL, connections are cut (`pg_terminate_backend`, on Postgres) and no file may grow for
seconds, as on a full disk (on SQLite). The faults are drawn by a seed, which is printed. At the end the file
is compared with what was sent: a number is lost, or doubled although its call had finished, or cut off by a
kill and run again. Exit code 1 if one was lost or doubled, or an event was not settled.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from session_cuts import CUT, Crew, effects, results
from session_kills import Writer, judged

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

ASKED = 1_000_000  # is added to the number of an event that an agent passes on to the next one
ASK_EVERY = 5
THREADS = [f"main:{number}" for number in range(4)]
FULL = "full"  # the file that tells a worker to have a full disk
FULL_SECONDS = 3.0


class Asker(Writer):
    """A writer that also asks the next agent of the circle about every fifth event."""

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        made = super()._generate(messages, *args, **kwargs)
        calls = list(made.generations[0].message.tool_calls)  # type: ignore[attr-defined]
        for number in [call["args"]["number"] for call in calls]:
            if number % ASK_EVERY == 0 and number < ASKED:
                peer = THREADS[(number // ASK_EVERY) % len(THREADS)]
                arguments = {"agent": peer, "message": f"event {number + ASKED}"}
                calls.append({"name": "talk_to_agent", "args": arguments, "id": f"ask-{number}"})
        reply = AIMessage("" if calls else "noted", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=reply)])


@contextmanager
def agent_on(url: str, log: str, host: Any = None) -> Iterator[Any]:
    """The agent of every thread."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    from wakeloop import create_todo_agent
    from wakeloop.cli.sessions.postgres import open_postgres_saver
    from wakeloop.sessions import session_tools
    from wakeloop.sessions.dbos.database import is_postgres
    from wakeloop.thread.strict_saver import strict_saver

    def note(number: int) -> str:
        """Do what the event asks for."""
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f"{number} {os.getpid()} {time.time()}\n".encode())
        os.fsync(file)
        os.close(file)
        time.sleep(0.2)
        return f"event {number} is done by {os.getpid()}"

    tools = [note, *session_tools(lambda: host[0], ["talk_to_agent"])]
    with ExitStack() as stack:
        saver: Any
        if is_postgres(url):
            saver = stack.enter_context(open_postgres_saver(url))
        else:
            connection = sqlite3.connect(f"{log}-threads.db", check_same_thread=False, timeout=30)
            saver = strict_saver(SqliteSaver, stack.enter_context(closing(connection)))
            saver.setup()
        # without wakes the last text is the reply that is owed
        yield create_todo_agent(Asker(), tools, checkpointer=saver, settings={"auto_continue": False})


def work(url: str, log: str) -> None:
    """A worker: runs until its input closes, and has a full disk when it is told so."""
    from wakeloop.sessions.dbos import DbosHost

    def obey() -> None:
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
        while True:
            time.sleep(0.1)
            with suppress(FileNotFoundError):
                Path(f"{log}-{FULL}").unlink()
                resource.setrlimit(resource.RLIMIT_FSIZE, (Path(log).stat().st_size + 4096, unlimited[1]))
                time.sleep(FULL_SECONDS)
                resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)

    threading.Thread(target=obey, daemon=True).start()
    host: list[Any] = []
    with agent_on(url, log, host) as agent, DbosHost(url, {"main": agent}, grace=3) as running:
        host.append(running)
        print("up", flush=True)
        sys.stdin.read()


class Chaos(Crew):
    """The workers of this file."""

    def begun(self) -> subprocess.Popen[str]:
        command = [sys.executable, __file__, *self.command[2:]]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def inject_fault(crew: Chaos, log: str, url: str, dice: random.Random, counts: dict[str, int]) -> None:
    """Draw a fault and let it happen."""
    import psycopg

    other = "cut" if url.startswith("postgresql") else FULL
    fault = dice.choice(["kill", other, other])
    counts[fault] = counts.get(fault, 0) + 1
    if fault == "kill":
        crew.kill_one(dice)
    elif fault == FULL:
        Path(f"{log}-{FULL}").touch()
    else:
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(CUT)


def passed_on(agent: Any) -> set[int]:
    """Return the numbers that an agent was told to have passed on."""
    found = set()
    for thread in THREADS:
        values: Mapping[str, Any] = agent.get_state({"configurable": {"thread_id": thread}}).values
        for message in values.get("messages", ()):
            if message.type == "tool" and message.text.startswith("Asked "):
                found.add(int(message.tool_call_id.removeprefix("ask-")) + ASKED)
    return found


def run(url: str, folder: str, workers: int, seconds: float, seed: int) -> dict[str, Any]:
    """Send events under faults, wait until all is quiet, and count."""
    from wakeloop.sessions.dbos import SessionClient

    dice, log, counts = random.Random(seed), str(Path(folder, "log")), dict[str, int]()
    Path(log).touch()
    with ExitStack() as stack:
        agent = stack.enter_context(agent_on(url, log))
        crew = Chaos(workers, url, log)
        stack.callback(crew.stop)
        post = stack.enter_context(closing(SessionClient(url, {"main": agent})))
        sent: dict[str, list[int]] = {thread: [] for thread in THREADS}
        began, number, fault_at = time.monotonic(), 0, time.monotonic() + 3
        while (now := time.monotonic()) < began + seconds:
            thread = dice.choice(THREADS)
            sent[thread].append(number)
            post.send(thread, {"kind": "human", "id": f"e{number}", "text": f"event {number}"})
            number += 1
            if now >= fault_at:
                inject_fault(crew, log, url, dice, counts)
                fault_at = now + dice.uniform(2, 8)
            time.sleep(0.25)
        settled = post.wait(timeout=240)
        expected = set(range(number)) | passed_on(agent)
        done = {int(line.split()[0]) for line in Path(log).read_text().splitlines()}
        cut_off, doubled, _ = effects(log, crew.killed, results(agent, THREADS))
        events = {thread: [one for one in numbers if one < ASKED] for thread, numbers in sent.items()}
        return {
            "seed": seed,
            "events": number,
            "passed on": len(expected) - number,
            "faults": counts,
            "all settled": settled,
            "lost": sorted(expected - done),
            "doubled": doubled,
            "not in a thread": judged(agent, events)["lost"],
            "cut off by a kill and run again": len(cut_off),
            "done without a question": sorted(done - expected),
            "runs given up": [one.error for one in post.list() if one.error],
            "seconds": round(time.monotonic() - began),
        }


def main() -> None:
    """Run as worker, or as the whole."""
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="how long events are sent, on each")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--database", choices=["sqlite", "postgres"], action="append")
    options = parser.parse_args()
    import postgres

    bad = False
    for kind in options.database or ["sqlite", "postgres"]:
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            url, workers = f"sqlite:///{folder}/sessions.db", 1  # SQLite allows one host
            if kind == "postgres":
                url, workers = stack.enter_context(stack.enter_context(postgres.running()).database()), 4
            figures = run(url, folder, workers, options.seconds, options.seed)
        print(json.dumps({"database": kind, **figures}, indent=2), flush=True)
        bad |= bool(figures["lost"] or figures["doubled"] or not figures["all settled"])
    sys.exit(bad)


if __name__ == "__main__":
    main()
