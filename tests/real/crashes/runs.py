"""One thread, killed in one process and resumed in another."""

import asyncio
import json
import os
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from job import agent_of, told, users
from langchain_core.messages import BaseMessage, ToolMessage
from points import STALLED, Points, asaver_at, listed, saver_at

from wakeloop.testing import wire_faults

FIRST, SECOND = "Do the three things.", "And now?"
NOTHING = (None, -2)  # no thread, or the empty checkpoint that `exit` puts under what it is about to store
IN_TURN = {  # what LangGraph does concurrently, put in an order so that each kill is exact
    "writes of __start__ 1, before": "checkpoint -1, stored",
    "checkpoint 0, before": "writes of __start__ 1, stored",
    "step 1: activate begins": "checkpoint 0, stored",
    "checkpoint 1, before": "writes of activate 1, stored",
    "checkpoint 7, before": "writes of finalization_guard 1, stored",
    "checkpoint 10, before": "writes of finalization_guard 2, stored",
    "checkpoint 19, before": "writes of finalization_guard 3, stored",
    "tool x, before": "writes of validate_todos 2, stored",
    "tool y, before": "writes of run_tools edit-x-1, stored",
}


def in_a_process(body: Callable[..., Any], *args: Any) -> tuple[int, Any]:
    """Run a function in a child process, and return how the child ended and its result."""
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
    """A thread, and the files that its processes write next to it."""

    where: str
    folder: Path
    name: str
    durability: Any
    fsync: bool = False
    think: float = 0.0
    form: str = "graph"
    preset: str = "wakeloop"

    @property
    def exact(self) -> bool:
        """Return whether parallel steps are put in an order, so that every kill leaves the same state."""
        return (self.form, self.preset) == ("graph", "wakeloop")

    @property
    def job(self) -> dict[str, str]:
        return {"form": self.form, "name": self.preset}

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": self.name}}

    @property
    def effects(self) -> Path:
        return self.folder / f"{self.name}.effects"

    def lines(self, of: str) -> list[str]:
        file = self.folder / f"{self.name}.{of}"
        return file.read_text().splitlines() if file.exists() else []

    @contextmanager
    def agent(self, part: str, **how: Any) -> Iterator[tuple[Any, ...]]:
        points = Points(self.folder / f"{self.name}.{part}", **how)
        with saver_at(self.where, points, fsync=self.fsync) as saver:
            yield *agent_of(points, self.effects, saver, self.think, looped=False, **self.job), points

    def begin(self, die: str | None = None, stall: str | None = None) -> dict[str, Any]:
        """Run from the first message to the end, or to the point."""
        with self.agent("begun", **self.kill(die, stall)) as (agent, model, points):
            for event in agent.stream(
                said(FIRST), self.config, stream_mode="debug", durability=self.durability
            ):
                if point := begins(event):
                    points.at(point)
            return found(agent.get_state(self.config).values, model)

    def resume(self, message: str | None) -> dict[str, Any]:
        """Look at what a killed run left, and resume with nothing new or with a message."""
        with self.agent("resumed") as (agent, model, _):
            left = left_in(agent.checkpointer.get_tuple(self.config), lambda: agent.get_state(self.config))
            agent.invoke(next_input(left, message), self.config, durability="sync")
            return {**found(agent.get_state(self.config).values, model), "left": left}

    def kill(self, die: str | None, stall: str | None) -> dict[str, Any]:
        """Decide where to die, where to wait, and the order of points."""
        if not self.exact:
            return {"die": die, "stall": stall, "turns": {str(die): STALLED} if stall else {}}
        turns = IN_TURN if self.durability != "exit" else {"tool y, before": "tool x, after"}
        return {"die": die, "stall": stall, "turns": {**turns, str(die): STALLED} if stall else turns}


class LoopedRun(Run):
    """The same with an asynchronous model, tools and saver: `astream`, then `ainvoke`."""

    @asynccontextmanager
    async def aagent(self, part: str, **how: Any) -> AsyncIterator[tuple[Any, ...]]:
        points = Points(self.folder / f"{self.name}.{part}", **how)
        async with asaver_at(self.where, points, fsync=self.fsync) as saver:
            yield *agent_of(points, self.effects, saver, self.think, looped=True, **self.job), points

    def begin(self, die: str | None = None, stall: str | None = None) -> dict[str, Any]:
        return asyncio.run(self._begin(die, stall))

    def resume(self, message: str | None) -> dict[str, Any]:
        return asyncio.run(self._resume(message))

    async def _begin(self, die: str | None, stall: str | None) -> dict[str, Any]:
        async with self.aagent("begun", **self.kill(die, stall)) as (agent, model, points):
            how = {"stream_mode": "debug", "durability": self.durability}
            async for event in agent.astream(said(FIRST), self.config, **how):
                if point := begins(event):
                    await points.aat(point)
            return found((await agent.aget_state(self.config)).values, model)

    async def _resume(self, message: str | None) -> dict[str, Any]:
        async with self.aagent("resumed") as (agent, model, _):
            stored, state = (
                await agent.checkpointer.aget_tuple(self.config),
                await agent.aget_state(self.config),
            )
            left = left_in(stored, lambda: state)
            await agent.ainvoke(next_input(left, message), self.config, durability="sync")
            return {**found((await agent.aget_state(self.config)).values, model), "left": left}


def said(message: str) -> dict[str, Any]:
    return {"messages": [("user", message)]}


def next_input(left: Mapping[str, Any], message: str | None) -> dict[str, Any] | None:
    """Return the input that resumes a thread: a message that was never read has to be sent again."""
    return said(message or FIRST) if message or left["step"] in NOTHING else None


def begins(event: Mapping[str, Any]) -> str | None:
    """Return the point at which a node starts, if the event says so."""
    if event["type"] != "task":
        return None
    task = event["payload"]
    call = f" {task['input']['id']}" if task["name"] == "run_tools" else ""
    return f"step {event['step']}: {task['name']}{call} begins"


def left_in(stored: Any, state: Callable[[], Any]) -> dict[str, Any]:
    """Return the stored state: the last step, its calls, and the results, including those of half a step."""
    step = None if stored is None else stored.metadata["step"]
    if stored is None or step in NOTHING:
        return {"step": step, "users": [], "calls": [], "results": []}
    messages: list[BaseMessage] = state().values.get("messages", [])
    pending = [part for _, _, value in stored.pending_writes or () for part in listed(value)]
    return {
        "step": step,
        "users": users(messages),
        "calls": [call["id"] for m in messages for call in getattr(m, "tool_calls", ())],
        "results": [m.tool_call_id for m in [*messages, *pending] if isinstance(m, ToolMessage)],
    }


def without_time(session: Mapping[str, Any]) -> dict[str, Any]:
    """Return a session without the seconds spent; everything else must be the same."""
    return {**session, "spent": {**session["spent"], "seconds": None}} if "spent" in session else {**session}


def found(values: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """Return the final outcome."""
    ids = [m.id for m in values["messages"]]
    made = [call["id"] for m in values["messages"] for call in getattr(m, "tool_calls", ())]
    told_of = [m.tool_call_id for m in values["messages"] if isinstance(m, ToolMessage)]
    return {
        "messages": [told(m) for m in values["messages"]],
        "todos": values["todos"],
        "session": without_time(values["todo_session"]),
        "twice": len(ids) - len(set(ids)),
        "unequal": sorted((Counter(made) - Counter(told_of)) + (Counter(told_of) - Counter(made))),
        "users": users(values["messages"]),
        "faults": wire_faults(model.requests),
        "requests": len(model.requests),
    }
