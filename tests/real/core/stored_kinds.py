"""One thread of every stored kind, as version 0.1.0 writes it: `python tests/real/core/stored_kinds.py`.

Later versions read `kept/threads.sql.gz`. Rewrite it only as long as nothing has been released.
"""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from wakeloop import create_todo_agent, preset, session_of
from wakeloop.presets import PRESETS
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.tools import ask_user

KEPT = Path(__file__).with_name("kept") / "threads.sql.gz"
ITEMS = ["measure", "cut"]
Calls = list[tuple[str, dict[str, Any]]]


STOPS: list[bool] = []  # filled only in the process that is asked to stop


def look(path: str) -> str:
    """Look at a file, unless the process is asked to stop meanwhile."""
    if path == "stop" and STOPS:
        raise KeyboardInterrupt
    return f"seen {path} " + "grain " * 400


def write_list(dialect: str, closed: int) -> Calls:
    """Return a reply that writes the list with this many items closed, or closes the next one."""
    if dialect == "parley":
        if closed:
            return [("todo_update", {"id": closed, "status": "done"})]
        return [("todo_write", {"items": ITEMS})]
    if dialect == "loki":
        if closed:
            return [("todo__done", {"id": closed})]
        return [("todo__init", {"goal": "a shelf"}), *(("todo__add", {"task": text}) for text in ITEMS)]
    status = ["completed" if n < closed else "in_progress" if n == closed else "pending" for n in range(2)]
    pairs = list(enumerate(zip(ITEMS, status, strict=True), 1))
    if dialect == "checklist":
        return [("todo", {"items": [{"id": str(n), "text": text, "status": s} for n, (text, s) in pairs]})]
    return [("write_todos", {"todos": [{"content": text, "status": s} for _, (text, s) in pairs]})]


@dataclass(frozen=True)
class Kind:
    """A kind of thread: its preset, what its model did, how its run reads, and what continues it."""

    script: Callable[[str], list[Any]]
    state: str
    reason: str | None
    preset: str = "wakeloop"
    settings: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    begin: Any = field(default_factory=lambda: {"messages": [("user", "Build a shelf.")]})
    given: Any = field(default_factory=lambda: {"messages": [("user", "Continue.")]})

    def build(self, script: list[Any], saver: Any) -> Any:
        """Return the agent of this kind on a script."""
        settings = preset(self.preset).model_copy(update=self.settings)
        return create_todo_agent(
            ScriptedModel(script), [look, ask_user], settings=settings, checkpointer=saver, **self.options
        )

    def rest(self) -> list[Any]:
        """Return the replies that finish the job, whatever is left of it."""
        dialect = preset(self.preset).dialect
        return [calls(*write_list(dialect, 2)), *[says("The shelf is ready.")] * 3]


def half_done(dialect: str) -> list[Any]:
    """The model plans, closes one item, and stops."""
    looked = calls(("look", {"path": "wood"}))
    return [calls(*write_list(dialect, 0)), looked, calls(*write_list(dialect, 1)), says("All done.")]


def then(*replies: Any) -> Callable[[str], list[Any]]:
    """The model plans, closes one item, and then makes these replies."""
    return lambda dialect: [calls(*write_list(dialect, 0)), calls(*write_list(dialect, 1)), *replies]


LOOKS = [calls(("look", {"path": f"board {n}"})) for n in range(8)]
OFF = {"max_wake_cycles": 0, "earn_wakes": 0, "guard_retries": 0, "auto_continue": True}
ASKS = calls(("ask_user", {"question": "Oak or pine?"}))
KINDS: dict[str, Kind] = {
    **{name: Kind(half_done, "idle", "disabled", name, OFF) for name in PRESETS},
    "interrupt": Kind(
        then(calls(("look", {"path": "wood"}))),
        "waiting",
        "interrupted",
        options={"interrupt_on": {"look": True}},
        given=Command(resume={"decisions": [{"type": "approve"}]}),
    ),
    "question": Kind(then(ASKS), "waiting", "interrupted", given=Command(resume="Oak.")),
    "session": Kind(
        half_done,
        "idle",
        "disabled",
        settings=OFF,
        begin={
            "todo_inbox": [{"id": "e1", "kind": "peer_message", "sender": "ada", "text": "Build a shelf."}]
        },
        given={"todo_inbox": [{"id": "e2", "kind": "peer_message", "sender": "ada", "text": "Continue."}]},
    ),
    "cleared": Kind(
        then(*LOOKS, says("All done.")), "idle", "disabled", settings={**OFF, "max_context": 2000}
    ),
    "waiting": Kind(then(says("Oak or pine?"), says("I wait.")), "waiting", "waiting"),
    "broken off": Kind(
        then(calls(("look", {"path": "wood"}), ("look", {"path": "stop"}))), "running", None, given=None
    ),
}


def config(name: str) -> dict[str, Any]:
    """The thread of a kind."""
    return {"configurable": {"thread_id": name}}


def write_threads() -> None:
    """Write one thread of each kind, as SQL."""
    STOPS.append(True)
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as database:
        saver = SqliteSaver(database)
        for name, kind in KINDS.items():
            agent = kind.build(kind.script(preset(kind.preset).dialect), saver)
            with suppress(KeyboardInterrupt):
                agent.invoke(kind.begin, config(name))
            session = session_of(agent.get_state(config(name)))
            assert (session["state"], session["reason"]) == (kind.state, kind.reason), (name, session)
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_bytes(gzip.compress("\n".join(database.iterdump()).encode(), mtime=0))


if __name__ == "__main__":
    write_threads()
