"""Many rounds on one thread in one process: memory and CPU per round, in blocks.

python benchmarks/endurance.py [ROUNDS] default: 20000

A round is one reply with a todo call and a tool call, and their results; ten rounds open ten items and close
them. There are four ways: one single run without a saver, whose hook trims the history; the same with the
whole history kept while the hook shortens only the request (langchain-core goes through every request twice);
activation after activation on SQLite; and a tenth of that on a saver in memory, which keeps everything. Each
block prints the CPU of a round and the memory of the process. A second pass of a quarter of the rounds prints
what the package's own lines hold, as `tracemalloc` counts it.
"""

import gc
import resource
import sqlite3
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic import PrivateAttr

import wakeloop
from wakeloop import create_todo_agent, preset
from wakeloop.testing import calls, says

OURS = tracemalloc.Filter(inclusive=True, filename_pattern=str(Path(wakeloop.__file__).parent / "*"))
BLOCKS = 5
ROUNDS = 10  # per activation
KEPT = 20  # messages that a trimmed history keeps
THREAD: Any = {"configurable": {"thread_id": "endurance"}, "recursion_limit": 1_000_000}


class Worker(BaseChatModel):
    """Plans ten items and closes one per round, forever or until it is stopped."""

    rounds: int
    _asked: Iterator[int] = PrivateAttr(default_factory=count)

    @property
    def _llm_type(self) -> str:
        return "worker"

    def bind_tools(self, tools: Any, **_: Any) -> "Worker":
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        asked = next(self._asked) % (self.rounds + 1)
        return ChatResult(generations=[ChatGeneration(message=self._reply(asked))])

    def _reply(self, asked: int) -> AIMessage:
        if asked == self.rounds:
            return says("That is all.")
        number, look = asked % ROUNDS + 1, ("look", {"path": f"file {asked}"})
        todos = [
            {"content": f"item {i}", "status": "completed" if i < number else "pending"}
            for i in range(1, ROUNDS + 1)
        ]
        last = asked == self.rounds - 1
        for todo in todos:
            todo["status"] = "completed" if last else todo["status"]
        return calls(("write_todos", {"todos": todos}), look)


def look(path: str) -> str:
    """Look at a file."""
    return f"{path}: " + "x" * 100


def trim(state: Any) -> dict[str, Any]:
    """Keep the last messages, starting where a request may."""
    messages = list(state["messages"])
    if len(messages) <= 2 * KEPT:
        return {}
    start = next(i for i in range(len(messages) - KEPT, len(messages)) if messages[i].type == "ai")
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *messages[:1], *messages[start:]]}


def shorten(state: Any) -> dict[str, Any]:
    """Let the model see only the last messages; the history stays whole."""
    messages = state["messages"]
    if len(messages) <= 2 * KEPT:
        return {}
    start = next(i for i in range(len(messages) - KEPT, len(messages)) if messages[i].type == "ai")
    return {"llm_input_messages": [messages[0], *messages[start:]]}


def settings() -> Any:
    """Return settings for writing whole lists without reminders."""
    return preset("cubepi").model_copy(update={"nag_after": 0, "in_progress": "any"})


def one_run(rounds: int, *, hook: Any, at: Callable[[int], None]) -> None:
    """Run one activation of this many rounds, without a saver."""
    seen = count(1)

    def watched(path: str) -> str:
        """Look at a file."""
        at(next(seen))
        return look(path)

    watched.__name__ = "look"
    agent = create_todo_agent(Worker(rounds=rounds), [watched], settings=settings(), pre_model_hook=hook)
    agent.invoke({"messages": [("user", "go")]}, THREAD)


def activations(rounds: int, saver: Any, at: Callable[[int], None]) -> None:
    """Run activation after activation on one thread."""
    agent = create_todo_agent(
        Worker(rounds=ROUNDS), [look], settings=settings(), checkpointer=saver, pre_model_hook=trim
    )
    for done in range(ROUNDS, rounds + 1, ROUNDS):
        agent.invoke({"messages": [("user", f"go {done}")], "todos": []}, THREAD)
        at(done)


class Blocks:
    """Takes figures at the end of each block."""

    def __init__(self, rounds: int, *, traced: bool) -> None:
        self.size, self.traced = rounds // BLOCKS, traced
        self.cpu: list[str] = []
        self.memory: list[str] = []
        self.most = ""
        self.spent = time.process_time()

    def __call__(self, done: int) -> None:
        """Take them when a block of rounds is done."""
        if done % self.size:
            return
        self.cpu.append(f"{(time.process_time() - self.spent) / self.size * 1000:.2f}")
        gc.collect()
        if self.traced:
            files = tracemalloc.take_snapshot().filter_traces([OURS]).statistics("filename")
            self.memory.append(f"{sum(file.size for file in files) / 1000:.0f}")
            largest = (
                f"{Path(file.traceback[0].filename).name} {file.size / 1000:.0f}" for file in files[:3]
            )
            self.most = ", ".join(largest)
        else:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.memory.append(f"{pages * resource.getpagesize() / 1e6:.0f}")
        self.spent = time.process_time()


def ways(folder: Path) -> Iterator[tuple[str, int, Callable[[int, Blocks], None]]]:
    """Return the four ways: a name, the share of the rounds, how to run them."""
    yield "one run, no saver, trimmed", 1, lambda rounds, at: one_run(rounds, hook=trim, at=at)
    yield "one run, no saver, whole history", 1, lambda rounds, at: one_run(rounds, hook=shorten, at=at)

    def over_sqlite(rounds: int, at: Blocks) -> None:
        name = folder / f"{time.monotonic_ns()}.db"
        with closing(sqlite3.connect(name, check_same_thread=False)) as connection:
            connection.execute("PRAGMA synchronous=OFF")
            activations(rounds, SqliteSaver(connection), at)

    yield "activations, SQLite, trimmed", 1, over_sqlite
    yield "activations, in memory, trimmed", 10, lambda rounds, at: activations(rounds, InMemorySaver(), at)


def measured(number: int, rounds: int) -> str:
    """Measure CPU and memory of one way, block by block."""
    with tempfile.TemporaryDirectory() as folder:
        name, part, run = list(ways(Path(folder)))[number]
        rounds //= part
        quick = Blocks(rounds, traced=False)
        run(rounds, quick)
        tracemalloc.start()
        traced = Blocks(rounds // 4, traced=True)
        run(rounds // 4, traced)
    return f"""{name}: {rounds} rounds in {BLOCKS} blocks
  CPU ms per round: {" ".join(quick.cpu)}
  MB of the process: {" ".join(quick.memory)}
  kB of own lines, {rounds // 4} rounds: {" ".join(traced.memory)} ({traced.most})"""


def main(rounds: int) -> None:
    """Print the figures of every way; each has its own process."""
    for number in range(4):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as own:
            print(own.submit(measured, number, rounds).result(), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 20_000)
