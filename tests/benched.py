"""Runs of the bench's weak model, and a loop without a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import ToolException

from wakeloop import LoopSettings, answer_of, create_todo_agent
from wakeloop.bench.families import FAMILIES
from wakeloop.bench.task import Check, Task, is_complete, share_of
from wakeloop.testing.knobs import Knobs
from wakeloop.testing.weak_model import WeakModel

GO_ON = "Go on if anything is left."


@dataclass
class Run:
    """The result of a run."""

    model: WeakModel
    checks: list[Check]
    reason: str = ""
    todos: Any = ()
    messages: Sequence[BaseMessage] = ()

    @property
    def facts(self) -> tuple[bool, int, str]:
        """Return whether the job is done, the number of requests, and the ending."""
        return is_complete(self.checks), len(self.model.requests), self.reason

    @property
    def share(self) -> float:
        return share_of(self.checks)


def task_of(family: str, parts: int, seed: int = 0) -> Task:
    return FAMILIES[family].make(seed, parts)


def ours(
    folder: Path,
    knobs: Knobs | None = None,
    *,
    parts: int = 5,
    family: str = "make-files",
    seed: int = 0,
    settings: str | LoopSettings = "wakeloop",
    verify: Any = None,
) -> Run:
    """Run this package's agent."""
    task = task_of(family, parts, seed)
    task.lay_out(folder)
    model = WeakModel(task, seed, knobs)
    agent = create_todo_agent(model, task.tools(folder), settings=settings, verify=verify)
    state = agent.invoke({"messages": [("user", task.prompt)]}, {"recursion_limit": 2_000})
    checks = task.checks(folder, answer_of(state))
    return Run(model, checks, state["todo_session"]["reason"], state["todos"], state["messages"])


def plain(
    folder: Path, knobs: Knobs | None = None, *, parts: int = 5, family: str = "make-files", asks: int = 0
) -> Run:
    """Run a loop without a list that is asked this often to continue."""
    task = task_of(family, parts)
    task.lay_out(folder)
    model = WeakModel(task, 0, knobs)
    tools = {tool.name: tool for tool in task.tools(folder)}
    bound = model.bind_tools(list(tools.values()))
    messages: list[BaseMessage] = [HumanMessage(task.prompt)]
    for _ in range(asks + 1):
        while (reply := bound.invoke(messages)).tool_calls:
            messages += [reply, *(answered(tools, call) for call in reply.tool_calls)]
        messages += [reply, HumanMessage(GO_ON)]
    said = next(m for m in reversed(messages) if isinstance(m, AIMessage))
    return Run(model, task.checks(folder, str(said.text)))


def answered(tools: dict[str, Any], call: Any) -> ToolMessage:
    try:
        return ToolMessage(tools[call["name"]].invoke(call["args"]), tool_call_id=call["id"])
    except ToolException as error:
        return ToolMessage(str(error), tool_call_id=call["id"], status="error")
