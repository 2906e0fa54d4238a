"""A process that forks while its threads run agents: does an agent in the child run or hang?"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

from langchain_core.tools import StructuredTool

from wakeloop import create_todo_agent, update_todos
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.thread.inputs import ThreadInput

PATIENCE = 15.0  # seconds that a child has for a tenth of a second's work


def run_one() -> None:
    """Run a new agent, so that everything computed once is computed here."""
    from langgraph.checkpoint.memory import InMemorySaver

    model = ScriptedModel([calls(("todo_write", {"items": ["a"]})), says("later")])
    agent = create_todo_agent(model, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 6}
    agent.invoke({"messages": [("user", "go")]}, config)
    update_todos(agent, config, add=["b"])


def ended(child: int) -> bool:
    """Wait for a child, and kill it if it hangs."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def forked(work: Callable[[], Any] = run_one) -> bool:
    """Fork, and return whether an agent in the child runs to its end."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return ended(child)


def held(forks: int) -> int:
    """Fork while another thread computes what each run computes once; return how many children hung."""

    class Held(tuple[Any, ...]):
        """Events that take long to iterate over."""

        __slots__ = ()

        def __iter__(self) -> Any:
            looking.set()
            may.wait()
            return super().__iter__()

    looking, may = threading.Event(), threading.Event()
    opening = ThreadInput(new_input=False, events=Held(), has_ledger=True)
    thread = threading.Thread(target=lambda: opening.human_events)
    thread.start()
    looking.wait()
    hung = sum(not forked() for _ in range(forks))
    may.set()
    thread.join()
    return hung


class Kept(cached_property):  # type: ignore[type-arg]
    """A kind of property that a caller defines."""


class Own:
    """A caller's class."""

    it = Kept(lambda _: 1)


def theirs(forks: int) -> int:
    """Fork while another thread holds the locks of attributes of LangGraph, LangChain and a caller."""
    node = create_todo_agent(ScriptedModel([]), [run_one]).nodes["activate"]
    attributes = {
        name: found
        for kind in (Own, StructuredTool, ScriptedModel, type(node))
        for base in kind.__mro__
        for name, found in vars(base).items()
        if isinstance(found, cached_property)
    }
    assert {"it", "_injected_args_keys", "_serialized", "flat_writers"} <= attributes.keys()
    holding, may = threading.Event(), threading.Event()

    def hold() -> None:
        locks = [found.lock for found in attributes.values() if hasattr(found, "lock")]  # up to Python 3.11
        for lock in locks:
            lock.acquire()
        holding.set()
        may.wait()
        for lock in locks:
            lock.release()

    def look() -> None:
        run_one()
        assert Own().it == 1

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait()
    hung = sum(not forked(look) for _ in range(forks))
    may.set()
    thread.join()
    return hung


def busy(forks: int) -> int:
    """Fork during runs; return how many children hung."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            run_one()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    hung = 0
    for _ in range(forks):
        time.sleep(0.003)
        hung += not forked()
    over.set()
    for thread in threads:
        thread.join()
    return hung


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run_one()  # imports are done: an import's lock is Python's affair
    how, forks = {"held": held, "theirs": theirs, "busy": busy}[sys.argv[1]], int(sys.argv[2])
    print(how(forks), "hung")
