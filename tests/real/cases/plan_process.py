"""A plan shown in one process and decided in another: `python plan_process.py FOLDER DOOR [DECISION]`.

The door is `sync` or `async`; with `laid` before it, it is that of a `create_agent` agent with the
middleware.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from wakeloop import create_todo_agent, session_of
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, awalk, calls, says, walk, wire_faults

CONFIG: Any = {"configurable": {"thread_id": "1"}}
GIVEN = {"messages": [("user", "go")], "todos": [{"content": "a", "status": "pending"}]}
ROUND = calls(
    ("todo_update", {"id": 1, "status": "done"}), ("todo_write", {"items": ["b"]}), ("look", {"path": "x"})
)
REST = [calls(("todo_update", {"id": 2, "status": "done"})), says("bye")]


def made(door: str, model: Any, look: Any, verify: Any, saver: Any) -> Any:
    """Return the graph, or an agent that uses the same rules as middleware."""
    if not door.startswith("laid"):
        settings = {"approve_plan": "changes"}
        return create_todo_agent(model, [look], verify=verify, checkpointer=saver, settings=settings)
    layer = WakeLoopMiddleware(settings={"preset": "wakeloop", "approve_plan": "changes"}, verify=verify)
    return create_agent(model, [look], middleware=[layer], checkpointer=saver)


def main(folder: Path, door: str, decision: Any) -> None:
    """Run one half and print the state of the thread."""

    def note(text: str) -> None:
        with (folder / f"{door}.log").open("a") as log:
            log.write(f"{text}\n")

    def look(path: str) -> str:
        """Look at a path."""
        note(f"look {path}")
        return f"saw {path}"

    def verify(todo: Any, state: Any) -> None:
        note(f"verify {todo['id']}")

    async def verify_later(todo: Any, state: Any) -> None:
        note(f"verify {todo['id']}")

    model = ScriptedModel([ROUND] if decision is None else REST)
    given = GIVEN if decision is None else Command(resume={"decisions": [decision]})
    path = str(folder / f"{door}.db")
    if door.endswith("async"):

        async def run() -> tuple[list[str], Any]:
            async with AsyncSqliteSaver.from_conn_string(path) as saver:
                agent = made(door, model, look, verify_later, saver)
                return await awalk(agent, given, CONFIG), await agent.aget_state(CONFIG)

        walked, snapshot = asyncio.run(run())
    else:
        with SqliteSaver.from_conn_string(path) as saver:
            agent = made(door, model, look, verify, saver)
            walked, snapshot = walk(agent, given, CONFIG), agent.get_state(CONFIG)
    model.assert_done()
    assert wire_faults(model.requests) == []
    told = [one.value["action_requests"][0]["args"] for one in snapshot.interrupts]
    ended = {"walk": walked, "reason": session_of(snapshot)["reason"], "asked": told}
    results = [m.text for m in snapshot.values["messages"] if m.type == "tool"]
    print(json.dumps({**ended, "todos": snapshot.values["todos"], "results": results}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]) if len(sys.argv) > 3 else None)
