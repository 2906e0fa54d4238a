"""A run in two processes: `python fresh_process.py DB begin|end` prints what it came to as JSON."""

import json
import sqlite3
import sys
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.prebuilt import InjectedState
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from wakeloop import create_todo_agent, session_of, update_todos
from wakeloop.testing import ScriptedModel, calls, malformed, says

THREAD: Any = {"configurable": {"thread_id": "thread"}}


class Answer(BaseModel):
    """What the run came to."""

    number: int


@tool
def ask(question: str) -> str:
    """Ask the person."""
    return str(interrupt({"question": question}))


@tool(response_format="content_and_artifact")
def measure() -> tuple[str, dict[str, list[int]]]:
    """Return a text and an artifact."""
    return "measured", {"values": [1, 2]}


@tool
def count(todos: Annotated[list[Any], InjectedState("todos")]) -> str:
    """Count the list."""
    return str(len(todos))


def refused(todo: Any, state: Any) -> str | None:
    """A verifier that refuses the second item for ever."""
    return "not good enough" if todo["id"] == 2 else None


BEGIN = [
    calls(("todo_write", {"items": ["a", "b"]}), ("count", {})),
    calls(*(("todo_update", {"id": i, "status": "done"}) for i in (1, 2))),
    *(calls(("measure", {}), malformed("measure", "{")) for _ in range(6)),
    says("stop"),
    calls(("ask", {"question": "Which?"}, "q"), ("measure", {})),
]
END = [
    says("half", finish_reason="length"),
    says("whole"),
    *(calls(("todo_update", {"id": 2, "status": "done"})) for _ in range(3)),
    says("Done."),
    AIMessage('{"number": 42}'),
]


def main() -> None:
    """Run one half and print how the thread stands."""
    db, half = sys.argv[1:]
    model = ScriptedModel(BEGIN if half == "begin" else END)
    connection = sqlite3.connect(db, check_same_thread=False)
    saver = SqliteSaver(connection)
    agent = create_todo_agent(
        model, [ask, measure, count], verify=refused, response_format=Answer, checkpointer=saver
    )
    given: Any = {
        "messages": [("user", "go")],
        "todo_settings": {"max_wake_cycles": 7},
        "todo_goal": "all of it",
    }
    agent.invoke(given if half == "begin" else Command(resume="this one"), THREAD)
    model.assert_done()
    if half == "end":
        update_todos(agent, THREAD, add=["c"])
    snapshot = agent.get_state(THREAD)
    values = snapshot.values
    told = {
        key: values[key]
        for key in ("todos", "todo_goal", "todo_settings", "structured_response")
        if key in values
    }
    ledger = {
        k: v
        for k, v in values["todo_ledger"].items()
        if k not in ("injected", "shown", "tail", "todo_calls", "faults", "began", "asked_at")  # ids
    }
    messages = [
        [m.type, m.content, m.additional_kwargs.get("wakeloop", {}).get("kind")] for m in values["messages"]
    ]
    print(json.dumps({**told, "session": session_of(snapshot), "ledger": ledger, "messages": messages}))
    connection.close()


if __name__ == "__main__":
    main()
