"""A process that is killed: `python killed.py DB WHERE`, WHERE being tool, model or parked."""

import os
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import interrupt

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel, calls

THREAD = {"configurable": {"thread_id": "thread"}}


def log_of(db: Path) -> Path:
    """Return the file where the tools record that they ran."""
    return db.with_suffix(".log")


def die(*_: object) -> NoReturn:
    """End this process as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still here")


def tools_over(db: Path, *, deadly: bool) -> list[Any]:
    """Return the agent's tools; the deadly one waits until its sibling's result is stored."""

    def note(text: str) -> None:
        with log_of(db).open("a") as log:
            log.write(f"{text}\n")

    @tool
    def edit(what: str) -> str:
        """Change something, once."""
        note(f"edit {what}")
        return f"edited {what}"

    @tool
    def risky() -> str:
        """Do something that may not end well."""
        if deadly:
            stored = sqlite3.connect(db)
            while not stored.execute(
                "SELECT 1 FROM writes WHERE CAST(value AS TEXT) LIKE '%edited%'"
            ).fetchone():
                time.sleep(0.02)
            die()
        note("risky")
        return "survived"

    @tool
    def ask(question: str) -> str:
        """Ask the person."""
        return str(interrupt(question))

    return [edit, risky, ask]


SCRIPTS: dict[str, list[Any]] = {
    "tool": [calls(("edit", {"what": "x"}, "e"), ("risky", {}, "r"))],
    "model": [calls(("edit", {"what": "x"}, "e")), die],
    "parked": [
        calls(
            ("ask", {"question": "?"}, "q"),
            ("edit", {"what": "x"}, "e"),
            ("todo_write", {"items": ["b"]}, "w"),
        )
    ],
}


def main() -> None:
    """Run until killed."""
    db, where = Path(sys.argv[1]), sys.argv[2]
    model = ScriptedModel([calls(("todo_write", {"items": ["a"]})), *SCRIPTS[where]])
    saver = SqliteSaver(sqlite3.connect(db, check_same_thread=False))
    agent = create_todo_agent(model, tools_over(db, deadly=True), checkpointer=saver)
    agent.invoke({"messages": [("user", "go")]}, THREAD, durability="sync")  # type: ignore[call-overload]
    die()


if __name__ == "__main__":
    main()
