"""The agents that do the job: handwritten, the peers, and this package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from parts.hand import Graph, WhileLoop, floor, hand
from parts.job import Costless, asked, model_of, work
from wakeloop import create_todo_agent, preset

PRESET = {"parley": "wakeloop", "loki": "loki", "checklist": "lesson", "write_todos": "cubepi"}
CLOSED = ("completed", "done")
Build = Callable[[Costless, Any], Graph]


@dataclass(frozen=True)
class Agent:
    """A way to do the job: how its graph is built, in which vocabulary, and what has to be installed.

    `awaits` builds it for `ainvoke`, if that is another graph.
    """

    name: str
    build: Build
    vocabulary: str = "parley"
    needs: str = "langgraph"
    awaits: Build | None = None

    @property
    def installed(self) -> bool:
        """Return whether it can run here."""
        return find_spec(self.needs) is not None

    def graph(self, n: int, saver: Any = None, *, awaits: bool = False) -> Graph:
        """Build it for the job of n items."""
        build = self.awaits if awaits and self.awaits else self.build
        return build(model_of(n, self.vocabulary), saver)


def react(model: Costless, saver: Any) -> Graph:
    """LangGraph's agent; its dependencies are imported when it is used."""
    from parts import react

    return react.react(model, saver)


def create_agent(model: Costless, saver: Any) -> Graph:
    """Build LangChain's agent with its `TodoListMiddleware`."""
    from langchain import agents
    from langchain.agents.middleware import TodoListMiddleware

    return agents.create_agent(model, [work], middleware=[TodoListMiddleware()], checkpointer=saver)


def deepagents(model: Costless, saver: Any) -> Graph:
    """Build Deep Agents, which leave the list to the same middleware since 0.7."""
    from deepagents import create_deep_agent
    from langchain.agents.middleware import TodoListMiddleware

    return create_deep_agent(model, [work], middleware=[TodoListMiddleware()], checkpointer=saver)


def ours(dialect: str) -> Build:
    """Build this package's agent with the preset of a dialect and no limit on the list or on requests."""
    changed = {"max_items": None, "max_requests": None}
    # loki's tools exist only while it continues by itself
    settings = preset(PRESET[dialect]).model_copy(update={**changed, "auto_continue": True})
    return lambda model, saver: create_todo_agent(model, [work], settings=settings, checkpointer=saver)


WHILE = Agent("while loop", WhileLoop)
FLOOR = Agent("floor", floor, awaits=partial(floor, awaits=True))
HAND = Agent("hand", hand, awaits=partial(hand, awaits=True))
REACT = Agent("create_react_agent", react)
CREATE_AGENT = Agent("create_agent + TodoList", create_agent, "write_todos", "langchain")
DEEPAGENTS = Agent("deepagents + TodoList", deepagents, "write_todos", "deepagents")
OURS = {dialect: Agent(f"wakeloop {dialect}", ours(dialect), dialect) for dialect in PRESET}
OUR = OURS["parley"]
PEERS = (REACT, CREATE_AGENT, DEEPAGENTS)


def config(thread: str) -> dict[str, Any]:
    """Return the config of a thread, without a limit on its steps."""
    return {"configurable": {"thread_id": thread}, "recursion_limit": 100_000}


def run(graph: Graph, thread: str = "1", **options: Any) -> dict[str, Any]:
    """Do the job to its end on a thread."""
    return graph.invoke(asked(), config(thread), **options)  # type: ignore[no-any-return]


async def arun(graph: Graph, thread: str = "1", **options: Any) -> dict[str, Any]:
    """The same, awaited."""
    return await graph.ainvoke(asked(), config(thread), **options)  # type: ignore[no-any-return]


def check(agent: Agent, n: int, state: dict[str, Any]) -> None:
    """Check that the work was done: all items are closed, and the model had its last word."""
    if agent is FLOOR:
        return
    closed = sum(todo["status"] in CLOSED for todo in state["todos"])
    assert closed == n, f"{agent.name}: {closed} of {n} items are closed"
    assert state["messages"][-1].text == "All done.", agent.name
