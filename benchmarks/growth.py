"""How a run grows with its job, in function calls: each axis doubled three times, and an exponent fitted.

python benchmarks/growth.py [AXIS …] --share 0.1 for a tenth of the sizes

It counts the calls of the package's own Python functions and, separately, all calls of the thread. An
exponent of 1 is proportional: a run of twice the length makes twice the calls. If size does not matter, it is
near 0.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import math
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from cProfile import Profile
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from parts.agents import OURS, arun, config, run
from parts.job import Calls, Costless, model_of, work
from parts.places import new_file, sqlite

import wakeloop
from wakeloop import create_todo_agent, preset
from wakeloop.display import TodoPanel, thread_report

PACKAGE = str(Path(wakeloop.__file__).parent)
UNBOUNDED = {"max_items": None, "max_requests": None, "max_idle_rounds": 0}
OUR = OURS["parley"]
Measured = Iterator[Callable[[], object]]


class Talker(Costless):
    """Plays a script, and then repeats one reply."""

    says: str = "All done."

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        reply = self.reply(messages)
        if not reply.tool_calls:
            reply = AIMessage(self.says)
        return ChatResult(generations=[ChatGeneration(message=reply)])


def agent(model: Any, saver: Any = None, tools: Sequence[Any] = (work,)) -> Any:
    """Return the package's agent without limits."""
    settings = preset("wakeloop").model_copy(update=UNBOUNDED)
    return create_todo_agent(model, [*tools], settings=settings, checkpointer=saver)


def one_call_each(rounds: int, step: int) -> Calls | None:
    """Return this many rounds of one call, each a new one."""
    return [("work", {"item": step})] if step < rounds else None


def all_at_once(calls: int, step: int) -> Calls | None:
    """Return one round of this many calls."""
    return None if step else [("work", {"item": item}) for item in range(calls)]


# -- axes: the measured part, after preparation ------------------------------------------------------------


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
    yield lambda: asyncio.run(arun(graph))  # all in one thread, because a profile counts no other


@contextmanager
def characters(n: int) -> Measured:
    """A request, a result and a reply of n characters each."""

    def read(item: int) -> str:
        """Return a long text."""
        return "x" * n

    model = Talker(script=lambda step: None if step else [("read", {"item": 1})], says="y" * n)
    graph = agent(model, tools=[read])
    yield lambda: graph.invoke({"messages": [HumanMessage("z" * n)]}, config("1"))


@contextmanager
def threads_in_a_database(n: int) -> Measured:
    """`wakeloop threads` on a database with n threads."""
    from wakeloop.cli.show import list_threads
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
    """Return a tool that asks an agent."""

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


@contextmanager
def panel(n: int) -> Measured:
    """One redraw of a notebook's panel, after one of n items has changed."""
    todos = make_items(n)
    with notebook():
        shown = TodoPanel(OUR.graph(n), config("1"))
        shown.feed("values", {"todos": todos})
        changed = [{**todos[0], "status": "completed"}, *todos[1:]]
        yield lambda: shown.feed("values", {"todos": changed})


@contextmanager
def panel_of_tokens(n: int) -> Measured:
    """One redraw of the same panel while a reply streams in and the list stays."""
    with notebook():
        shown = TodoPanel(OUR.graph(n), config("1"), clock=itertools.count().__next__)
        shown.feed("values", {"todos": make_items(n)})
        yield lambda: shown.feed("messages", (AIMessageChunk("a word"), {}))


def make_items(n: int) -> list[dict[str, Any]]:
    """Return a list of n open items."""
    return [{"id": i, "content": f"item {i}", "status": "pending"} for i in range(1, n + 1)]


@contextmanager
def notebook() -> Iterator[None]:
    """Stand in for IPython in a kernel, as far as a panel sees it."""
    module: Any = ModuleType("IPython.display")
    module.display = lambda *_, **__: SimpleNamespace(update=lambda *_, **__: None)
    module.get_ipython = lambda: SimpleNamespace(kernel=object())
    with patch.dict(sys.modules, {"IPython": module, "IPython.display": module}):
        yield


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
    "items of a panel, one has changed": (panel, 1_600),
    "items of a panel, a token": (panel_of_tokens, 1_600),
}


def count(axis: Callable[[int], Any], size: int) -> tuple[int, int]:
    """Return the number of the package's own calls, and of all."""
    profile = Profile()
    with axis(size) as measured:
        profile.runcall(measured)
    stats = profile.getstats()
    own = sum(
        e.callcount for e in stats if not isinstance(e.code, str) and e.code.co_filename.startswith(PACKAGE)
    )
    return own, sum(entry.callcount for entry in stats)


def exponent(sizes: Sequence[int], counts: Sequence[float]) -> float:
    """Return the slope of the straight line through the logarithms."""
    x, y = [math.log(size) for size in sizes], [math.log(count) for count in counts]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


# -- the report in a browser: bytes, and milliseconds of a real clock ------------------------------------

OPENED = """() => {
  const [paint] = performance.getEntriesByName("first-contentful-paint");
  const [opened] = performance.getEntriesByType("navigation");
  return paint && opened.loadEventEnd ? [opened.loadEventEnd, paint.startTime] : null;
}"""  # both since the page was requested
BROWSER = "report in a browser"
OFTEN = 4  # the least counts, and sizes take turns


def open_in_browser(sizes: Sequence[int]) -> Iterator[str]:
    """Yield a row for the bytes of a report, its load event and its first paint."""
    sys.path.append(str(Path(__file__).parents[1] / "tests/real/display"))
    from chromium import PROGRAM, WITHOUT, chromium

    if PROGRAM is None:
        yield WITHOUT
        return
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        files = [Path(folder, f"{size}.html") for size in sizes]
        for size, file in zip(sizes, files, strict=True):
            with report(size) as rendered:
                file.write_text(str(rendered()), encoding="utf-8")
        times: list[list[tuple[float, float]]] = [[] for _ in sizes]
        for _, (file, taken) in itertools.product(range(OFTEN), zip(files, times, strict=True)):
            with closing(browser.new_page()) as tab:
                tab.goto(file.as_uri())
                taken.append(tab.wait_for_function(OPENED).json_value())
        figures = {
            "bytes of a report": [file.stat().st_size for file in files],
            "ms to its load event": [min(load for load, _ in taken) for taken in times],
            "ms to its first paint": [min(paint for _, paint in taken) for taken in times],
        }
    for name, each in figures.items():
        ends = f"{each[0]:,.0f} → {each[-1]:,.0f}"
        yield f"| {name} | {sizes[0]:,} → {sizes[-1]:,} | {ends} | {exponent(sizes, each):.2f} | |"


def main() -> None:
    """Print a row for each axis."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "axes", nargs="*", metavar="AXIS", help=f"{'; '.join([*AXES, BROWSER])}; without: all"
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the sizes (1)")
    options = parser.parse_args()
    print("| axis | sizes | the package's calls | exponent | of all calls |\n|---|--:|--:|--:|--:|")
    for name in options.axes or [*AXES, BROWSER]:
        axis, largest = AXES.get(name, AXES["rounds of a report"])
        smallest = max(1, round(largest * options.share / 8))
        sizes = [smallest * part for part in (1, 2, 4, 8)]
        if name == BROWSER:
            print(*open_in_browser(sizes), sep="\n", flush=True)
            continue
        count(axis, sizes[0])  # for everything created only once
        counted = [count(axis, size) for size in sizes]
        own, every = ([pair[i] for pair in counted] for i in (0, 1))
        ends = f"{own[0]:,} → {own[-1]:,}"
        fits = f"{exponent(sizes, own):.2f} | {exponent(sizes, every):.2f}"
        print(f"| {name} | {sizes[0]:,} → {sizes[-1]:,} | {ends} | {fits} |", flush=True)


if __name__ == "__main__":
    main()
