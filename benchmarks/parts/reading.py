"""The cost of `get_state` between two snapshots of a long conversation.

Both read the conversation of the same job, each as its own agent writes it: a call and its result cost twice
as much as two short messages. Garbage is collected before each read; otherwise reading thousands of objects
would sometimes include a sweep over everything that the process holds.
"""

from __future__ import annotations

import gc
import statistics
import time
from typing import Any

from parts.agents import HAND, OUR, config, run
from parts.clock import spent
from parts.hand import WhileLoop
from parts.job import asked, model_of
from parts.places import Kept, sqlite

FROM = {"full": 2000, "quick": 400, "tiny": 12}  # messages of the first point
UNTIL = {"full": 4200, "quick": 800, "tiny": 20}  # of the last point, more than two snapshots later
POINTS = {"full": 45, "quick": 9, "tiny": 2}
READS = {"full": 7, "quick": 3, "tiny": 1}


def points(kept: Kept, first: int, last: int, count: int) -> list[str]:
    """Return checkpoints of a run between two numbers of messages, evenly spread; the newest is one of them.

    A model step adds two messages and two checkpoints.
    """
    rows = kept.saver.conn.execute("SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id").fetchall()
    ids = [key for (key,) in rows][first - last :]
    return [ids[i * (len(ids) - 1) // (count - 1)] for i in range(count)]


def by_hand(kept: Kept, done: dict[str, Any], messages: int) -> Any:
    """Return the handwritten agent with a thread of this many messages of the finished job, and its config.

    A plain channel is stored whole in every checkpoint, so its past makes no difference.
    """
    graph, name = HAND.graph(1, kept.saver), str(messages)
    update = {"messages": done["messages"][:messages], "todos": done["todos"]}
    graph.update_state(config(name), update, as_node="run_tools")
    return graph, config(name)


def read(graph: Any, config: Any) -> tuple[float, int]:
    """Return CPU ms of a `get_state`, and the messages that it gave."""
    gc.collect()
    start = time.process_time()
    state = graph.get_state(config)
    return spent(start), len(state.values["messages"])


def measure(size: str) -> list[dict[str, Any]]:
    """Read ours at points of a run, each next to a handwritten thread with as many messages."""
    last = UNTIL[size]
    told = []
    done = WhileLoop(model_of(last // 4)).invoke(asked())
    with sqlite() as ours, sqlite() as other:
        graph = OUR.graph(last // 4, ours.saver)
        run(graph)
        graph = OUR.graph(last // 4, ours.saver)
        for point in points(ours, FROM[size], last, POINTS[size]):
            at: dict[str, Any] = {"configurable": {"thread_id": "1", "checkpoint_id": point}}
            _, count = read(graph, at)
            hand, there = by_hand(other, done, count)
            read(hand, there)
            pairs = [(read(graph, at)[0], read(hand, there)[0]) for _ in range(READS[size])]
            told.append(
                {
                    "messages": count,
                    "ours": statistics.median(a for a, _ in pairs),
                    "hand": statistics.median(b for _, b in pairs),
                    "ratio": statistics.median(a / b for a, b in pairs),
                }
            )
    return told


def tables(rows: list[dict[str, Any]]) -> str:
    """Return the cheapest, the median and the worst point."""
    ordered = sorted(rows, key=lambda row: row["ratio"])
    told = {"best": ordered[0], "median": ordered[len(ordered) // 2], "worst": ordered[-1]}
    lines = ["| point | messages | ours, ms | hand, ms | of hand |", "|---|--:|--:|--:|--:|"]
    lines += [
        f"| {name} | {row['messages']} | {row['ours']:.1f} | {row['hand']:.1f} | {row['ratio']:.2f} |"
        for name, row in told.items()
    ]
    return "\n".join(lines)
