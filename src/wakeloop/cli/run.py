"""Runs a thread until it yields: stream, signals, questions."""

import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol, Self

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, Interrupt, StateSnapshot

from wakeloop.display.screen import STREAM, Line, Screen

Graph = CompiledStateGraph[Any, Any, Any, Any]
Answers = dict[str, Any]
Ask = Callable[[Sequence[Interrupt]], Answers | None]

GRACE = 1.0  # seconds that a step has to end after Ctrl-C; its request or tool may take much longer
STOPPING = {
    signal.SIGINT: "Stopping; Ctrl-C again stops at once.",
    signal.SIGTERM: "Asked to end: coming to rest after this step.",
}


class View(Protocol):
    """What shows a run: plain lines, or a region of a terminal."""

    screen: Screen

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...
    def feed(self, mode: str, data: Any) -> None:
        """Take one part of the stream."""

    def say(self, line: Line) -> None:
        """Add a line that stays."""


@dataclass(frozen=True)
class Outcome:
    """How a run yielded: the thread as it stands, and the signal that stopped it, if one did.

    `abandoned` says that a request or a tool was still at work in this process: leave with `os._exit`.
    """

    snapshot: StateSnapshot
    stopped: int | None = None
    abandoned: bool = False


def execute(agent: Graph, given: Any, config: RunnableConfig, view: View, ask: Ask) -> Outcome:
    """Run a thread with an input, None or a `Command`, ask what its tools ask, until it yields.

    `ask` gets the interrupts and returns answers by id, or None where nobody can answer. Whatever the run
    raises is raised here. SIGINT and SIGTERM ask it to come to rest; no request follows them.
    """
    while True:
        with view:
            stopped, abandoned = streamed(agent, given, config, view)
        snapshot = agent.get_state(config)
        if stopped is not None or not snapshot.interrupts:
            return Outcome(snapshot, stopped, abandoned)
        answers = ask(snapshot.interrupts)
        if answers is None:
            return Outcome(snapshot)
        given = Command(resume=answers)


def streamed(agent: Graph, given: Any, config: RunnableConfig, view: View) -> tuple[int | None, bool]:
    """Show a run as it goes; return the signal that stopped it, and whether something is still at work."""
    arriving: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
    control = RunControl()
    stopped: int | None = None
    deadline: float | None = None
    worker = threading.Thread(
        target=played, args=(agent, given, config, control, arriving), name="wakeloop-run", daemon=True
    )
    with signals(arriving):
        worker.start()
        while True:
            try:
                left = None if deadline is None else max(deadline - time.monotonic(), 0)
                mode, data = arriving.get(timeout=left)
            except queue.Empty:
                return stopped, True
            if mode == "signal":
                if stopped is not None:
                    return data, True
                stopped = data
                control.request_drain(signal.Signals(data).name)
                view.say(Line("note", STOPPING[signal.Signals(data)]))
                if data == signal.SIGINT:
                    deadline = time.monotonic() + GRACE
            elif mode == "end":
                worker.join()
                if data is None or isinstance(data, GraphDrained):
                    return stopped, False
                if isinstance(data, KeyboardInterrupt):
                    return signal.SIGINT, False
                if stopped is not None:
                    return stopped, False  # what broke while it was being stopped will show again
                raise data
            else:
                view.feed(mode, data)


def played(
    agent: Graph,
    given: Any,
    config: RunnableConfig,
    control: RunControl,
    arriving: "queue.SimpleQueue[tuple[str, Any]]",
) -> None:
    """Run the graph, in a thread of its own: a signal must not have to wait for a request or a tool.

    Every step is written before the next begins, so that a process that is killed loses none.
    """
    try:
        parts = agent.stream(given, config, stream_mode=list(STREAM), durability="sync", control=control)
        for mode, data in parts:
            arriving.put((mode, data))
    except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
        arriving.put(("end", error))
    else:
        arriving.put(("end", None))


@contextmanager
def signals(arriving: "queue.SimpleQueue[tuple[str, Any]]") -> Iterator[None]:
    """Let signals arrive like parts of the stream, for as long as it runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def put(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        arriving.put(("signal", number))  # may be called in the midst of a get or put

    before = {number: signal.signal(number, put) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
