"""A process whose threads run agents and that forks: each child runs an agent of its own, or hangs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from typing import Any

from wakeloop import create_todo_agent, update_todos
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.thread.opening import Opening

PATIENCE = 15.0  # seconds that a child has for what takes a tenth


def run_one() -> None:
    """A run of an agent made anew: whatever is computed once is computed here."""
    from langgraph.checkpoint.memory import InMemorySaver

    model = ScriptedModel([calls(("todo_write", {"items": ["a"]})), says("later")])
    agent = create_todo_agent(model, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 6}
    agent.invoke({"messages": [("user", "go")]}, config)
    update_todos(agent, config, add=["b"])


def ended(child: int) -> bool:
    """Wait for a child; one that hangs is ended."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def forked() -> bool:
    """Fork; tell whether the child, which runs an agent, ends."""
    child = os.fork()
    if child == 0:
        run_one()
        os._exit(0)
    return ended(child)


def held(forks: int) -> int:
    """Fork while another thread computes what each run computes once; return how many children hung."""

    class Held(tuple[Any, ...]):
        """Events that are looked through for as long as it takes."""

        __slots__ = ()

        def __iter__(self) -> Any:
            looking.set()
            may.wait()
            return super().__iter__()

    looking, may = threading.Event(), threading.Event()
    opening = Opening(new_input=False, events=Held(), known=True)
    thread = threading.Thread(target=lambda: opening.people)
    thread.start()
    looking.wait()
    hung = sum(not forked() for _ in range(forks))
    may.set()
    thread.join()
    return hung


def busy(forks: int) -> int:
    """Fork in the midst of runs; return how many children hung."""
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
    how, forks = {"held": held, "busy": busy}[sys.argv[1]], int(sys.argv[2])
    print(how(forks), "hung")
