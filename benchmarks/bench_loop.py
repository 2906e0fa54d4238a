"""The loop against a hand-written graph and a plain while loop.

One job for all: plan N items, then for each a tool call and an update of the list, with a model that costs
nothing. Variants take turns inside one run, CPU time is counted, and what is reported are ratios.
"""

from __future__ import annotations

import argparse
import itertools
import operator
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from wakeloop import create_todo_agent, preset

GO = "Do the work."
Run = Callable[[], int]


def work(item: int) -> str:
    """Do one piece of the work."""
    return f"result {item}"


def replies(n: int) -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """The job as text and calls, reply by reply."""
    yield "", [("todo_write", {"items": [f"item {i}" for i in range(1, n + 1)]})]
    for i in range(1, n + 1):
        yield "", [("work", {"item": i})]
        yield "", [("todo_update", {"id": i, "status": "done"})]
    yield "All done.", []


class Costless(BaseChatModel):
    """Plays the job from its start whenever a request holds nothing but a person's message."""

    n: int
    script: Any = None

    @property
    def _llm_type(self) -> str:
        return "costless"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Costless:
        return self

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        if not any(message.type == "ai" for message in messages[:3]):
            self.script = enumerate(replies(self.n))
        step, (text, made) = next(self.script)
        message = AIMessage(
            text, tool_calls=[{"name": name, "args": args, "id": f"{step}"} for name, args in made]
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def apply(todos: list[dict[str, Any]], call: Any) -> tuple[list[dict[str, Any]], str]:
    """The list of the hand-written variants: as little as does the job."""
    args = call["args"]
    if call["name"] == "todo_write":
        todos = [{"id": i, "content": text, "status": "pending"} for i, text in enumerate(args["items"], 1)]
        return todos, f"Stored {len(todos)} items."
    if call["name"] == "todo_update":
        todos = [{**todo, "status": "completed"} if todo["id"] == args["id"] else todo for todo in todos]
        return todos, f"[{args['id']}] done."
    return todos, work(**args)


def while_loop(n: int) -> Run:
    """No graph and no state beyond a list of messages."""
    model = Costless(n=n)

    def run() -> int:
        messages: list[Any] = [HumanMessage(GO)]
        todos: list[dict[str, Any]] = []
        while True:
            reply = model.invoke(messages)
            messages.append(reply)
            if not reply.tool_calls:
                return sum(todo["status"] == "completed" for todo in todos)
            for call in reply.tool_calls:
                todos, text = apply(todos, call)
                messages.append(ToolMessage(text, tool_call_id=call["id"]))

    return run


class Hand(TypedDict):
    """What a hand-written agent keeps."""

    messages: Annotated[list[AnyMessage], add_messages]
    todos: list[dict[str, Any]]


THREADS = itertools.count()


def thread() -> dict[str, Any]:
    """A thread of its own for each run."""
    return {"configurable": {"thread_id": str(next(THREADS))}}


def two_nodes(n: int, saver: SqliteSaver | None = None) -> Run:
    """A model node, a tools node, and a fork between them."""
    model = Costless(n=n)

    def call_model(state: Hand) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def run_tools(state: Hand) -> dict[str, Any]:
        todos, results = state.get("todos", []), []
        for call in state["messages"][-1].tool_calls:
            todos, text = apply(todos, call)
            results.append(ToolMessage(text, tool_call_id=call["id"]))
        return {"messages": results, "todos": todos}

    builder = StateGraph(Hand)
    builder.add_node("call_model", call_model)
    builder.add_node("run_tools", run_tools)
    builder.add_edge(START, "call_model")
    builder.add_conditional_edges(
        "call_model",
        lambda state: "run_tools" if state["messages"][-1].tool_calls else END,
        ["run_tools", END],
    )
    builder.add_edge("run_tools", "call_model")
    return partial(finish, builder.compile(checkpointer=saver))


def ours(n: int, saver: SqliteSaver | None = None) -> Run:
    """This package, with its default preset."""
    settings = preset("wakeloop").model_copy(update={"max_items": None})
    agent = create_todo_agent(Costless(n=n), tools=[work], settings=settings, checkpointer=saver)
    return partial(finish, agent)


def finish(graph: Any, /) -> int:
    """Run a graph to its end and count the closed items."""
    result = graph.invoke({"messages": [HumanMessage(GO)]}, {**thread(), "recursion_limit": 100_000})
    return sum(todo["status"] == "completed" for todo in result["todos"])


@dataclass(frozen=True)
class Variant:
    """One way to do the job, the one that it is compared with, and the database it writes."""

    name: str
    run: Run
    base: str
    database: Path | None = None


def database(file: Path, stack: ExitStack) -> SqliteSaver:
    """A database of its own, opened as the command line opens it."""
    connection = stack.enter_context(closing(sqlite3.connect(file, check_same_thread=False)))
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    saver = SqliteSaver(connection)
    saver.setup()
    return saver


def variants(n: int, folder: Path, stack: ExitStack) -> list[Variant]:
    """All that is compared."""
    hand, our = folder / "hand.db", folder / "ours.db"
    return [
        Variant("while loop", while_loop(n), "two nodes by hand"),
        Variant("two nodes by hand", two_nodes(n), "two nodes by hand"),
        Variant("wakeloop", ours(n), "two nodes by hand"),
        Variant("two nodes, SQLite", two_nodes(n, database(hand, stack)), "two nodes, SQLite", hand),
        Variant("wakeloop, SQLite", ours(n, database(our, stack)), "two nodes, SQLite", our),
    ]


def megabytes(file: Path) -> float:
    """What a database takes, with what still stands in its log."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.stat().st_size / 1e6


def measure(n: int, repeat: int) -> None:
    """Print a row for each variant: CPU ms a model step, and the ratio to the hand-written graph."""
    steps = 2 * n + 2
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        compared = variants(n, Path(folder), stack)
        for variant in compared:  # once for warmth, and to see that all do the same work
            assert variant.run() == n
        times: dict[str, list[float]] = {variant.name: [] for variant in compared}
        for _ in range(repeat):
            for variant in compared:
                start = time.process_time()
                variant.run()
                times[variant.name].append((time.process_time() - start) * 1000 / steps)
        sizes = {v.name: megabytes(v.database) / (repeat + 1) for v in compared if v.database}

    print(f"\n{n} items, {steps} model steps, median of {repeat}\n")
    print(f"{'':20}{'ms a step':>10}{'ratio':>8}{'MB a run':>10}")
    for variant in compared:
        taken = times[variant.name]
        ratio = statistics.median(map(operator.truediv, taken, times[variant.base]))
        size = f"{sizes[variant.name]:10.2f}" if variant.name in sizes else ""
        print(f"{variant.name:20}{statistics.median(taken):10.2f}{ratio:8.2f}{size}")


def main() -> None:
    """Read the sizes and measure each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[10, 100], help="numbers of items (10 100)")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each variant (5)")
    options = parser.parse_args()
    for n in options.sizes:
        measure(n, options.repeat)


if __name__ == "__main__":
    main()
