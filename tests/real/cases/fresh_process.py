"""A run in two processes: `python fresh_process.py FOLDER begin|end` prints its state."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.prebuilt import InjectedState
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from rig import KEPT, SECOND, Rig

from wakeloop import aupdate_todos, update_todos
from wakeloop.testing import calls, malformed_call, says


class Answer(BaseModel):
    """The run's answer."""

    number: int


@tool
def ask(question: str) -> str:
    """Ask the person."""
    return str(interrupt({"question": question}))


@tool(response_format="content_and_artifact")
def measure() -> tuple[str, dict[str, list[int]]]:
    """Return a string and an artifact."""
    return "measured", {"values": [1, 2]}


@tool
def count(todos: Annotated[list[Any], InjectedState("todos")]) -> str:
    """Count the list."""
    return str(len(todos))


def refused(todo: Any, state: Any) -> str | None:
    """A verifier that refuses the second item forever."""
    return "not good enough" if todo["id"] == 2 else None


BEGIN = [
    calls(("todo_write", {"items": ["a", "b"]}), ("count", {})),
    calls(*(("todo_update", {"id": i, "status": "done"}) for i in (1, 2))),
    *(calls(("measure", {}), malformed_call("measure", "{")) for _ in range(6)),
    says("stop"),
    calls(("ask", {"question": "Which?"}, "q"), ("measure", {})),
]
END = [
    says("half", finish_reason="length"),
    says("whole"),
    *(calls(("todo_update", {"id": 2, "status": "done"})) for _ in range(3)),
    says("Done."),
    AIMessage('{"number": 42}'),
    calls(("todo_update", {"id": 3, "status": "done"})),  # after an edit by hand and a second message
    says("Second answer."),
    AIMessage('{"number": 7}'),
]


def describe_thread(rig: Rig) -> dict[str, Any]:
    """Return the state of the thread, without ids."""
    values = rig.state
    kept = {
        key: values[key]
        for key in ("todos", "todo_goal", "todo_settings", "structured_response")
        if key in values
    }
    ledger = {
        k: v
        for k, v in values["todo_ledger"].items()
        if k not in ("injected", "shown", "told", "tail", "todo_calls", "faults", "began", "asked_at")  # ids
    }
    messages = [
        [m.type, m.content, m.additional_kwargs.get("wakeloop", {}).get("kind")] for m in rig.messages
    ]
    return {**kept, "session": rig.session, "ledger": ledger, "messages": messages}


def build(rig: Rig, replies: list[Any]) -> None:
    rig.build(replies, tools=[ask, measure, count], verify=refused, response_format=Answer)


def begin(rig: Rig) -> dict[str, Any]:
    """Run until the question."""
    build(rig, BEGIN)
    given = {
        "messages": [("user", "go")],
        "todo_settings": {"max_wake_cycles": 7},
        "todo_goal": "all of it",
    }
    rig.run(given)
    return describe_thread(rig)


def end(rig: Rig) -> dict[str, Any]:
    """Give the answer, an edit by hand, and a second message."""
    build(rig, END)
    rig.run(Command(resume="this one"))
    if rig.runner is None:
        update_todos(rig.agent, rig.config, add=["c"])
    else:
        rig.wait(aupdate_todos(rig.agent, rig.config, add=["c"]))
    rig.run(SECOND)
    return describe_thread(rig)


def main() -> None:
    """Run one half through every door and print the state of the threads."""
    folder, half = Path(sys.argv[1]), sys.argv[2]
    stands = {}
    for door, kind in KEPT:
        if kind == "memory" and half == "end":
            continue  # it ended with its process
        rig = Rig(door, kind, folder / f"{door}.db")
        stands[f"{door}-{kind}"] = begin(rig) if half == "begin" else end(rig)
        rig.model.assert_done()
        if kind == "memory":
            end(rig)
            rig.model.assert_done()
        rig.check()
        rig.shut()
    print(json.dumps(stands))


if __name__ == "__main__":
    main()
