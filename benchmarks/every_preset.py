"""Requests, walks, wire and stored bytes, CPU per step of every preset, to compare two checkouts.

`PYTHONPATH=OTHER/src python benchmarks/every_preset.py > before.json`, then here `--against before.json`. Two
jobs: one item is written and the same text comes forever; thirty items with a call and an update each.
"""

import argparse
import gc
import json
import sqlite3
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.messages import convert_to_openai_messages
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver

from wakeloop import create_todo_agent, preset
from wakeloop.testing import ScriptedModel, calls, says, walk

NAMES = ("wakeloop", "agentparley", "loki", "lesson", "cubepi", "cubepi-strict")
TEXTS = [f"item {number}" for number in range(30)]
STOPS_AT = 4  # of every ten items, where text comes instead of a call
STORED = (
    "SELECT (SELECT SUM(LENGTH(checkpoint) + LENGTH(metadata)) FROM checkpoints)"
    " + (SELECT SUM(LENGTH(value)) FROM writes)"
)
THREAD: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 1000}


@tool
def look(path: str) -> str:
    """Look at a file."""
    return f"seen {path}"


def whole(dialect: str, texts: list[str], closed: int) -> list[Any]:
    """Return the one call that replaces the list, with this many items closed."""
    status = [
        "completed" if n < closed else "in_progress" if n == closed else "pending" for n in range(len(texts))
    ]
    if dialect == "checklist":
        rows = [
            {"id": str(n), "text": t, "status": s}
            for n, (t, s) in enumerate(zip(texts, status, strict=True), 1)
        ]
        return [("todo", {"items": rows})]
    return [
        ("write_todos", {"todos": [{"content": t, "status": s} for t, s in zip(texts, status, strict=True)]})
    ]


def plan(dialect: str, texts: list[str]) -> list[Any]:
    """Return the calls that write the list."""
    if dialect == "parley":
        return [("todo_write", {"items": texts})]
    if dialect == "loki":
        return [("todo__init", {"goal": "g"}), *(("todo__add", {"task": text}) for text in texts)]
    return whole(dialect, texts, 0)


def close(dialect: str, texts: list[str], number: int) -> list[Any]:
    """Return the call that closes one item."""
    if dialect == "parley":
        return [("todo_update", {"id": number + 1, "status": "done"})]
    if dialect == "loki":
        return [("todo__done", {"id": number + 1})]
    return whole(dialect, texts, number + 1)


def work(dialect: str) -> list[Any]:
    """Yield the replies of the long job, which stops early three times."""
    replies: list[Any] = [calls(*plan(dialect, TEXTS))]
    for number in range(len(TEXTS)):
        replies += [calls(("look", {"path": str(number)})), calls(*close(dialect, TEXTS, number))]
        replies += [says("So far.")] if number % 10 == STOPS_AT else []
    return [*replies, *[says("bye")] * 60]


def measured(name: str, times: int) -> dict[str, Any]:
    """Return all figures of one preset; bytes and CPU are the least of several runs."""
    settings = preset(name).model_copy(update={"auto_continue": True})
    model = ScriptedModel([calls(*plan(settings.dialect, ["a"])), *[says("x")] * 60])
    nodes = walk(create_todo_agent(model, [look], settings=settings), "go", THREAD)
    long, stored, spent = model, [], []
    for _ in range(times):
        with TemporaryDirectory() as folder:
            connection = sqlite3.connect(Path(folder) / "threads.db", check_same_thread=False)
            long = ScriptedModel(work(settings.dialect))
            agent = create_todo_agent(long, [look], settings=settings, checkpointer=SqliteSaver(connection))
            gc.collect()
            began = time.process_time()
            agent.invoke({"messages": [("user", "go")]}, THREAD)
            spent.append((time.process_time() - began) * 1000 / len(long.requests))
            stored.append(connection.execute(STORED).fetchone()[0])
            connection.close()
    sent = (json.dumps(convert_to_openai_messages(list(request)), default=str) for request in long.requests)
    return {
        "requests": len(model.requests),
        "walk": nodes,
        "long": len(long.requests),
        "wire": sum(map(len, sent)),
        "stored": min(stored),
        "ms per step": round(min(spent), 3),
    }


def main() -> None:
    """Print the figures, or a table next to those of another checkout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--against", type=Path)
    asked = parser.parse_args()
    figures = {name: measured(name, asked.times) for name in NAMES}
    if asked.against is None:
        print(json.dumps(figures))
        return
    for name, before in json.loads(asked.against.read_text()).items():
        now = figures[name]
        ratios = [f"{key} {now[key] / before[key]:.3f}" for key in ("wire", "stored", "ms per step")]
        same = "the same walk" if now["walk"] == before["walk"] else "ANOTHER WALK"
        print(f"{name}: {before['requests']} -> {now['requests']} requests, {same}, {', '.join(ratios)}")


if __name__ == "__main__":
    main()
