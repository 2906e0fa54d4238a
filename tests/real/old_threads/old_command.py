"""The command over an old database: what it shows, and how its threads go on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chat_server import Reply, Server
from old_agents import in_steps
from processes import Shell, wakeloop

__all__ = ["REPLIES", "Row", "Shell", "resumed", "served", "stood"]

Row = dict[str, Any]

SLOW_ONCE = "test -e flag || { touch flag; sleep 60; }; echo over"
PLAN = ("todo_write", {"items": ["look", "tell"]})
DONE = Reply(calls=[("todo_update", {"id": key, "status": "done"}) for key in (1, 2)])
BYE = Reply("All done.")
WROTE = ("write_file", {"path": "a.txt", "content": "written once"})

REPLIES: dict[str, tuple[list[Reply], list[Reply]]] = {
    "ended": ([Reply(calls=[PLAN]), Reply("Nothing."), Reply("Nothing more.")], [DONE, BYE]),
    "asked": ([Reply(calls=[PLAN, ("run_shell", {"command": "echo hi"}), WROTE])], [DONE, BYE]),
    "killed": (
        [Reply(calls=[PLAN]), Reply(calls=[WROTE, ("run_shell", {"command": SLOW_ONCE})])],
        [DONE, BYE],
    ),
}
SAID = {"ended": ["go on"], "asked": ["y"], "killed": ["--yes"]}


@contextmanager
def served(replies: Sequence[Reply], before: int = 0) -> Iterator[Server]:
    """A server that plays a script; `before` are the requests that it has had, by which it numbers calls."""
    server = Server(lambda number, _: replies[number - before - 1], [{"messages": []}] * before)
    yield server
    server.close()


def printed(*args: str) -> Any:
    """What a command prints as JSON, and how it ended."""
    code, out, _ = wakeloop(*args, "--json")
    said = json.loads(out)
    if isinstance(said, dict):
        said["session"].pop("spent", None)  # older ones do not count
    return {"code": code, "out": said}


def stood() -> Row:
    """What the command shows of the threads in the database of the environment."""
    shown = {thread: printed("show", thread, "--history") for thread in REPLIES}
    return {"threads": printed("threads"), "show": shown}


def resumed(thread: str, folder: Path) -> Row:
    """What going on with a thread prints, and what its server is asked."""
    with served(REPLIES[thread][1], before=10) as server:
        where = ["--base-url", server.url, "--root", str(folder)]
        printed_last = printed("resume", thread, *SAID[thread], *where)
        requests = [request["messages"] for request in server.requests[10:]]
        return {**printed_last, "requests": in_steps(requests, "wakeloop")}
