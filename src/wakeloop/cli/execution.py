"""Runs a thread until it yields: stream, signals, questions."""

import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol, Self

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, Interrupt, StateSnapshot

from wakeloop.display.screen import STREAM_MODES, Line, Screen

Graph = CompiledStateGraph[Any, Any, Any, Any]
Answers = dict[str, Any]
Ask = Callable[[Sequence[Interrupt]], Answers | None]

GRACE_SECONDS = 1.0  # seconds that a step has to end after Ctrl-C; its request or tool may take much longer
THREAD_NAME = "wakeloop-run"  # the name of a run's thread
WAKE = "wake"  # of a view that waits for parts
POLL_SECONDS = 0.1  # seconds: a signal that comes just before a thread begins to wait does not wake it
SIGTERM_SECONDS = 5.0  # the same after SIGTERM: who sends it waits longer before he kills
FINAL_SECONDS = 0.3  # seconds that are left to commands which are being ended
STOP_NOTES = {
    signal.SIGINT: "Stopping; Ctrl-C again stops at once.",
    signal.SIGTERM: f"Asked to end: coming to rest after this step, within {SIGTERM_SECONDS:.0f} seconds.",
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


@dataclass(frozen=True)
class RunQueue:
    """Parts of a stream in their order, and signals, which pass all parts that wait to be shown."""

    parts: queue.SimpleQueue[tuple[str, Any]] = field(default_factory=queue.SimpleQueue)
    signals: deque[int] = field(default_factory=deque)

    def put_signal(self, number: int) -> None:
        """Note a signal and wake who waits for parts; it may come in the midst of a get or put."""
        self.signals.append(number)
        self.parts.put((WAKE, None))

    def next_part(self, deadline: float | None) -> tuple[str, Any]:
        """Return what is next. Raises `queue.Empty` at the deadline, also while parts still come."""
        while not self.signals:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise queue.Empty
            with suppress(queue.Empty):
                mode, data = self.parts.get(timeout=POLL_SECONDS if left is None else min(left, POLL_SECONDS))
                if mode != WAKE:
                    return mode, data
        return "signal", self.signals.popleft()


def execute(
    agent: Graph,
    given: Any,
    config: RunnableConfig,
    view: View,
    ask: Ask,
    stop: threading.Event | None = None,
) -> Outcome:
    """Run a thread with an input, None or a `Command`, ask what its tools ask, until it yields.

    `ask` gets the interrupts and returns answers by id, or None where nobody can answer. Whatever the run
    raises is raised here. SIGINT and SIGTERM ask it to come to rest; no request follows them, and `stop` is
    set for tools that can end what they do (at a SIGTERM only when its time is over, or another follows).
    """
    while True:
        with view:
            stopped, abandoned = stream_run(agent, given, config, view, stop or threading.Event())
        snapshot = agent.get_state(config)
        if stopped is not None or not snapshot.interrupts:
            return Outcome(snapshot, stopped, abandoned)
        answers = ask(snapshot.interrupts)
        if answers is None:
            return Outcome(snapshot)
        given = Command(resume=answers)


def stream_run(
    agent: Graph, given: Any, config: RunnableConfig, view: View, stop: threading.Event
) -> tuple[int | None, bool]:
    """Show a run as it goes; return the signal that stopped it, and whether something is still at work."""
    arriving = RunQueue()
    halt = StopRequest(RunControl(), stop)
    worker = threading.Thread(
        target=run_graph, args=(agent, given, config, halt.control, arriving), name=THREAD_NAME, daemon=True
    )
    with queue_signals(arriving, halt.control):
        worker.start()
        try:
            while True:
                mode, data = arriving.next_part(halt.deadline)
                if mode == "end":
                    worker.join()
                    return halt.signal_after(data), False
                if mode != "signal":
                    view.feed(mode, data)
                elif (line := halt.take_signal(data)) is not None:
                    view.say(line)
                else:
                    worker.join(FINAL_SECONDS)
                    return halt.stopped, worker.is_alive()
        except queue.Empty:
            if not stop.is_set():
                stop.set()
                worker.join(FINAL_SECONDS)
            return halt.stopped, worker.is_alive()
        except BaseException:  # the view is broken: nobody sees what would follow
            halt.take_signal(signal.SIGINT)
            worker.join(FINAL_SECONDS)
            raise


def is_run_alive() -> bool:
    """Tell whether a run that was left is in the midst of a request or of a tool: it may write once more."""
    return any(thread.name == THREAD_NAME for thread in threading.enumerate())


@dataclass
class StopRequest:
    """How far a run has been told to stop."""

    control: RunControl
    stop: threading.Event
    stopped: int | None = None
    deadline: float | None = None

    def take_signal(self, number: int) -> Line | None:
        """Take a signal: the first asks for rest and says so, at the next there is nothing left to say."""
        first = self.stopped is None
        self.stopped = self.stopped or number
        self.control.request_drain()
        self.deadline = time.monotonic() + SIGTERM_SECONDS
        if number == signal.SIGINT or not first:
            self.stop.set()
            self.deadline = time.monotonic() + GRACE_SECONDS
        return Line("note", STOP_NOTES[signal.Signals(number)]) if first else None

    def signal_after(self, error: BaseException | None) -> int | None:
        """Judge what a run ended with: raise it, unless the run was being stopped or a tool stopped it."""
        if isinstance(error, KeyboardInterrupt):
            return self.stopped or signal.SIGINT
        if error is not None and self.stopped is None:
            raise error
        return self.stopped  # what broke while it was being stopped will show again


def run_graph(
    agent: Graph,
    given: Any,
    config: RunnableConfig,
    control: RunControl,
    arriving: RunQueue,
) -> None:
    """Run the graph, in a thread of its own: a signal must not have to wait for a request or a tool.

    Every step is written before the next begins, so that a process that is killed loses none.
    """
    try:
        parts = agent.stream(
            given, config, stream_mode=list(STREAM_MODES), durability="sync", control=control
        )
        for mode, data in parts:
            arriving.parts.put((mode, data))
    except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
        arriving.parts.put(("end", error))
    else:
        arriving.parts.put(("end", None))


@contextmanager
def queue_signals(arriving: RunQueue, control: RunControl) -> Iterator[None]:
    """Let signals arrive like parts of the stream, for as long as it runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def put(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        control.request_drain(signal.Signals(number).name)  # at once, before another step begins
        arriving.put_signal(number)

    with handle_signals(put):
        yield


@contextmanager
def handle_signals(put: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM call a function, and put the former handlers back."""
    before = {number: signal.signal(number, put) for number in STOP_NOTES}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
