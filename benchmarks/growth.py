"""How a run grows with its job, in function calls: each axis doubled three times, and an exponent fitted.

    python benchmarks/growth.py [AXIS …]             --share 0.1 for a tenth of the sizes

Counted are the calls of the package's own Python functions and, apart from them, all calls of the thread.
1 is in proportion: a run of twice the length makes twice the calls. What size does not matter for is near 0.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from cProfile import Profile
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from parts.agents import OURS, arun, config, run
from parts.job import Calls, Costless, model_of, work
from parts.places import new_file, sqlite

import wakeloop
from wakeloop import create_todo_agent, preset
from wakeloop.display import thread_report

PACKAGE = str(Path(wakeloop.__file__).parent)
UNBOUNDED = {"max_items": None, "max_requests": None, "max_idle_rounds": 0}
OUR = OURS["parley"]
Measured = Iterator[Callable[[], object]]


class Talker(Costless):
    """Plays a script, and then says a text."""

    says: str = "All done."

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        reply = self.reply(messages)
        if not reply.tool_calls:
            reply = AIMessage(self.says)
        return ChatResult(generations=[ChatGeneration(message=reply)])


def agent(model: Any, saver: Any = None, tools: Sequence[Any] = (work,)) -> Any:
    """The package's agent without bounds."""
    settings = preset("wakeloop").model_copy(update=UNBOUNDED)
    return create_todo_agent(model, [*tools], settings=settings, checkpointer=saver)


def one_call_each(rounds: int, step: int) -> Calls | None:
    """So many rounds of one call, each another one."""
    return [("work", {"item": step})] if step < rounds else None


def all_at_once(calls: int, step: int) -> Calls | None:
    """One round of so many calls."""
    return None if step else [("work", {"item": item}) for item in range(calls)]


# -- axes: what is measured, once it is prepared ---------------------------------------------------------


@contextmanager
def items(n: int) -> Measured:
    """The job of n items."""
    yield partial(run, OUR.graph(n))


@contextmanager
def items_on_sqlite(n: int) -> Measured:
    """The same on SQLite."""
    with sqlite() as kept:
        yield partial(run, OUR.graph(n, kept.saver))


@contextmanager
def items_awaited(n: int) -> Measured:
    """The same, awaited."""
    graph = OUR.graph(n)
    yield lambda: asyncio.run(arun(graph))


@contextmanager
def items_in_middleware(n: int) -> Measured:
    """The same in an agent of LangChain's."""
    from langchain.agents import create_agent

    from wakeloop.middleware import WakeLoopMiddleware

    settings = preset("wakeloop").model_copy(update=UNBOUNDED)
    layer = WakeLoopMiddleware(settings=settings)
    yield partial(run, create_agent(model_of(n), [work], middleware=[layer]))


@contextmanager
def rounds(n: int) -> Measured:
    """Rounds of one call, without a list."""
    yield partial(run, agent(Costless(script=partial(one_call_each, n))))


@contextmanager
def calls_in_a_reply(n: int) -> Measured:
    """One reply with n calls."""
    graph = agent(Costless(script=partial(all_at_once, n)))
    yield lambda: asyncio.run(arun(graph))  # all in one thread: a profile counts no other


@contextmanager
def characters(n: int) -> Measured:
    """A request, a result and a reply of n characters each."""

    def read(item: int) -> str:
        """Read much."""
        return "x" * n

    model = Talker(script=lambda step: None if step else [("read", {"item": 1})], says="y" * n)
    graph = agent(model, tools=[read])
    yield lambda: graph.invoke({"messages": [HumanMessage("z" * n)]}, config("1"))


@contextmanager
def threads_in_a_database(n: int) -> Measured:
    """`wakeloop threads` on a database with n threads."""
    from wakeloop.cli.list_threads import list_threads
    from wakeloop.cli.store import DatabaseFile, open_to_write

    with new_file() as file:
        database = DatabaseFile(file, named=True)
        with open_to_write(database) as store:
            run(OUR.graph(2, store.saver), "thread")
        with closing(sqlite3.connect(file)) as connection, connection:
            for table in ("checkpoints", "writes"):
                copy_thread(connection, table, n)
        yield lambda: [*list_threads(database, everything=False, json=True)]


def copy_thread(connection: sqlite3.Connection, table: str, n: int) -> None:
    """Copy the rows of the only thread n times."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    copied = ", ".join("'thread-' || number" if name == "thread_id" else name for name in columns)
    more = "SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < ?"
    rows = f"SELECT {copied} FROM {table}, numbers WHERE thread_id = 'thread'"  # noqa: S608 - names of our own tables
    connection.execute(f"WITH RECURSIVE numbers(number) AS ({more}) INSERT INTO {table} {rows}", (n,))


@contextmanager
def events(n: int) -> Measured:
    """An input of n events."""
    graph = agent(Talker(script=lambda _: None))
    inbox = [{"kind": "peer_message", "id": str(i), "sender": "peer", "text": f"event {i}"} for i in range(n)]
    yield lambda: graph.invoke({"todo_inbox": inbox}, config("1"))


@contextmanager
def history_at_resume(n: int) -> Measured:
    """One more message to a stored thread of n rounds, in a new process."""
    saver = InMemorySaver()
    run(agent(Costless(script=partial(one_call_each, n)), saver))
    later = agent(Talker(script=lambda _: None), saver)
    yield lambda: later.invoke({"messages": [HumanMessage("And now?")]}, config("1"))


@contextmanager
def nested_agents(n: int) -> Measured:
    """Agents whose tool is the next one, n deep."""
    graph = agent(Costless(script=partial(one_call_each, 1)))
    for _ in range(n):
        graph = agent(Costless(script=partial(one_call_each, 1)), tools=[tool_that_asks(graph)])
    yield partial(run, graph)


def tool_that_asks(graph: Any) -> Any:
    """A tool that asks an agent."""

    def work(item: int) -> str:
        """Do one piece of the work."""
        return str(run(graph, f"inner {item}")["messages"][-1].text)

    return work


@contextmanager
def report(n: int) -> Measured:
    """The page about a thread of n rounds."""
    graph = agent(Costless(script=partial(one_call_each, n)), InMemorySaver())
    run(graph)
    yield lambda: thread_report(graph, config("1"))


AXES: dict[str, tuple[Callable[[int], Any], int]] = {
    "items": (items, 12_800),
    "items, SQLite": (items_on_sqlite, 3_200),
    "items, awaited": (items_awaited, 3_200),
    "items, middleware": (items_in_middleware, 3_200),
    "rounds": (rounds, 3_200),
    "calls in a reply": (calls_in_a_reply, 4_000),
    "characters of a message": (characters, 1_000_000),
    "threads in a database": (threads_in_a_database, 20_000),
    "events in an input": (events, 3_200),
    "rounds before a resume": (history_at_resume, 3_200),
    "nested agents": (nested_agents, 32),
    "rounds of a report": (report, 2_000),
}


def count(axis: Callable[[int], Any], size: int) -> tuple[int, int]:
    """The package's own calls, and all."""
    profile = Profile()
    with axis(size) as measured:
        profile.runcall(measured)
    stats = profile.getstats()
    own = sum(
        e.callcount for e in stats if not isinstance(e.code, str) and e.code.co_filename.startswith(PACKAGE)
    )
    return own, sum(entry.callcount for entry in stats)


def exponent(sizes: Sequence[int], counts: Sequence[int]) -> float:
    """The slope of the straight line through the logarithms."""
    x, y = [math.log(size) for size in sizes], [math.log(count) for count in counts]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


def main() -> None:
    """Print a row for each axis."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("axes", nargs="*", metavar="AXIS", help=f"{'; '.join(AXES)}; without: all")
    parser.add_argument("--share", type=float, default=1.0, help="of the sizes (1)")
    options = parser.parse_args()
    print("| axis | sizes | the package's calls | exponent | of all calls |\n|---|--:|--:|--:|--:|")
    for name in options.axes or AXES:
        axis, largest = AXES[name]
        smallest = max(1, round(largest * options.share / 8))
        sizes = [smallest * part for part in (1, 2, 4, 8)]
        count(axis, sizes[0])  # what is made once
        counted = [count(axis, size) for size in sizes]
        own, every = ([pair[i] for pair in counted] for i in (0, 1))
        ends = f"{own[0]:,} → {own[-1]:,}"
        fits = f"{exponent(sizes, own):.2f} | {exponent(sizes, every):.2f}"
        print(f"| {name} | {sizes[0]:,} → {sizes[-1]:,} | {ends} | {fits} |", flush=True)


if __name__ == "__main__":
    main()
