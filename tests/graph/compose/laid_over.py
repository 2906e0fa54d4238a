"""Agents of `create_agent` with the middleware, for several tests."""

from collections.abc import Iterator
from typing import Any

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says

THREAD: Any = {"configurable": {"thread_id": "thread"}}
GO: Any = {"messages": [("user", "go")]}


def look(path: str) -> str:
    """Look at a path."""
    return f"saw {path}"


def plan(*items: str) -> Any:
    """Return a call that writes a list: `a` is open, `a!` completed."""
    todos = [{"content": i.strip("!"), "status": "completed" if "!" in i else "pending"} for i in items]
    return "write_todos", {"todos": todos}


def looks(path: Any) -> Any:
    return "look", {"path": str(path)}


def settled() -> list[Any]:
    """Return a script: one item, a stop, a wake, the item done: four requests."""
    return [calls(plan("a")), says("stop"), calls(plan("a!")), says("bye")]


def busy() -> Iterator[Any]:
    """Return a script: one item, and then a new look and a stop, forever."""
    yield calls(plan("a"))
    number = 0
    while True:
        number += 1
        yield calls(looks(number))
        yield says(f"stop {number}")


def laid(model: ScriptedModel, *beside: Any, settings: Any = "langchain", **options: Any) -> Any:
    """Return an agent with the middleware first, and others after it."""
    layer = WakeLoopMiddleware(settings=settings)
    return over(model, layer, *beside, **options)


def over(model: ScriptedModel, *middleware: Any, **options: Any) -> Any:
    """Return an agent with this list of middleware."""
    options = {"tools": [look], "checkpointer": InMemorySaver(), **options}
    return create_agent(model, middleware=list(middleware), **options)


def kinds(agent: Any) -> list[str]:
    """Return the roles of a thread's conversation."""
    return [message.type for message in agent.get_state(THREAD).values["messages"]]


def ended(agent: Any) -> Any:
    """Return how a thread's last run ended, and after how many requests."""
    session = agent.get_state(THREAD).values["todo_session"]
    return session["state"], session["reason"], session["spent"]["requests"]
