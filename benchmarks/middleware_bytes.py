"""The cost of a job under `create_agent`, with LangChain's list and with ours: CPU, and bytes on SQLite.

The job of the other benchmarks: plan N items, then for each a tool call and an update of the list.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from parts.agents import run
from parts.job import model_of, work
from parts.places import nowhere, sqlite

from wakeloop import preset
from wakeloop.middleware import ChangesState, WakeLoopMiddleware

UNBOUND = {"max_items": None}
WAYS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "TodoListMiddleware": (TodoListMiddleware, "write_todos", {}),
    **{
        f"ours, `{vocabulary}`{', ChangesState' if state else ''}": (
            lambda name=name: WakeLoopMiddleware(settings=preset(name).model_copy(update=UNBOUND)),
            vocabulary,
            state,
        )
        for name, vocabulary in (("langchain", "write_todos"), ("wakeloop", "parley"))
        for state in ({}, {"state_schema": ChangesState})
    },
}


def measured(way: str, n: int) -> str:
    """Do the job once without a saver and once on SQLite; return a row of the table."""
    make, vocabulary, options = WAYS[way]
    seconds = []
    for place in (nowhere, sqlite):
        with place() as kept:
            agent = create_agent(
                model_of(n, vocabulary), [work], middleware=[make()], checkpointer=kept.saver, **options
            )
            begun = time.process_time()
            state = run(agent)
            seconds.append(time.process_time() - begun)
            assert sum(todo["status"] == "completed" for todo in state["todos"]) == n
            size = kept.bytes
    return f"| {way} | {seconds[0]:.2f} s | {seconds[1]:.2f} s | {(size or 0) / 1e6:.1f} MB |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("items", nargs="?", type=int, default=100, help="items of the list (100)")
    items = parser.parse_args().items
    print("| | CPU, no saver | CPU, SQLite | the thread |", "|---|--:|--:|--:|", sep="\n")
    for way in WAYS:
        measured(way, 2)  # imports at first use are not counted
    for way in WAYS:
        print(measured(way, items), flush=True)


if __name__ == "__main__":
    main()
