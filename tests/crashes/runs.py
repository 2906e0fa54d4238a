"""One thread, killed in one process and resumed in another."""

import json
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from job import agent_of, told, users
from langchain_core.messages import BaseMessage, ToolMessage
from points import STALLED, Points, listed, saver_at

from wakeloop.testing import wire_faults

FIRST, SECOND = "Do the three things.", "And now?"
NOTHING = (None, -2)  # no thread, or the empty checkpoint that `exit` puts under what it is about to store
IN_TURN = {  # what LangGraph does at the same time, one after the other: so that each kill is exact
    "writes of __start__ 1, before": "checkpoint -1, stored",
    "checkpoint 0, before": "writes of __start__ 1, stored",
    "step 1: activate begins": "checkpoint 0, stored",
    "checkpoint 1, before": "writes of activate 1, stored",
    "checkpoint 7, before": "writes of finalization_guard 1, stored",
    "checkpoint 15, before": "writes of finalization_guard 2, stored",
    "checkpoint 19, before": "writes of finalization_guard 3, stored",
    "tool x, before": "writes of validate_todos 2, stored",
    "tool y, before": "writes of run_tools edit-x-1, stored",
}


def in_a_process(body: Callable[..., Any], *args: Any) -> tuple[int, Any]:
    """Run it in a child of its own; return how the child ended and what the body returned."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.write(into, json.dumps(body(*args)).encode())
            status = 0
        except BaseException:  # noqa: BLE001 - a child ends here, whatever happened
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), json.loads(said) if said else None


@dataclass(frozen=True)
class Run:
    """A thread by name, and what its processes leave beside it in the folder."""

    where: str
    folder: Path
    name: str
    durability: Any
    fsync: bool = False
    think: float = 0.0

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": self.name}}

    def lines(self, of: str) -> list[str]:
        file = self.folder / f"{self.name}.{of}"
        return file.read_text().splitlines() if file.exists() else []

    @contextmanager
    def agent(self, part: str, **how: Any) -> Iterator[tuple[Any, ...]]:
        points = Points(self.folder / f"{self.name}.{part}", **how)
        with saver_at(self.where, points, fsync=self.fsync) as saver:
            yield *agent_of(points, self.folder / f"{self.name}.effects", saver, self.think), points

    def begin(self, die: str | None = None, stall: str | None = None) -> dict[str, Any]:
        """Run from the first message to the end, or to the point."""
        turns = IN_TURN if self.durability != "exit" else {"tool y, before": "tool x, after"}
        if stall:
            turns = {**turns, str(die): STALLED}
        with self.agent("begun", die=die, stall=stall, turns=turns) as (agent, model, points):
            given = {"messages": [("user", FIRST)]}
            for event in agent.stream(given, self.config, stream_mode="debug", durability=self.durability):
                if event["type"] == "task":
                    task = event["payload"]
                    call = f" {task['input']['id']}" if task["name"] == "run_tools" else ""
                    points.at(f"step {event['step']}: {task['name']}{call} begins")
            return self.found(agent, model)

    def resume(self, message: str | None) -> dict[str, Any]:
        """See what a killed run has left, and go on: with nothing new, or with a message."""
        with self.agent("resumed") as (agent, model, _):
            left = self.left(agent)
            given: Any = None
            if message or left["step"] in NOTHING:  # who was never heard has to say it again
                given = {"messages": [("user", message or FIRST)]}
            agent.invoke(given, self.config, durability="sync")
            return {**self.found(agent, model), "left": left}

    def left(self, agent: Any) -> dict[str, Any]:
        """What is stored: the last step, the calls and the results, those of half a step too."""
        stored = agent.checkpointer.get_tuple(self.config)
        step = None if stored is None else stored.metadata["step"]
        if stored is None or step in NOTHING:
            return {"step": step, "users": [], "calls": [], "results": []}
        messages: list[BaseMessage] = agent.get_state(self.config).values.get("messages", [])
        pending = [part for _, _, value in stored.pending_writes or () for part in listed(value)]
        return {
            "step": step,
            "users": users(messages),
            "calls": [call["id"] for m in messages for call in getattr(m, "tool_calls", ())],
            "results": [m.tool_call_id for m in [*messages, *pending] if isinstance(m, ToolMessage)],
        }

    def found(self, agent: Any, model: Any) -> dict[str, Any]:
        """What it has come to in the end."""
        values = agent.get_state(self.config).values
        ids = [m.id for m in values["messages"]]
        return {
            "messages": [told(m) for m in values["messages"]],
            "todos": values["todos"],
            "session": values["todo_session"],
            "twice": len(ids) - len(set(ids)),
            "users": users(values["messages"]),
            "faults": wire_faults(model.requests),
            "requests": len(model.requests),
        }
