"""Execute a thread: stream, signals, questions, view."""

import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import RunControl
from langgraph.types import Interrupt, StateSnapshot

from wakeloop.cli.final_state import to_json_line
from wakeloop.cli.questions import build_input, find_questions, suppress_echo
from wakeloop.cli.spec_builder import RunSpec, settings_from_spec
from wakeloop.cli.streams import OutputFormat, at_a_terminal
from wakeloop.dialects import get_dialect
from wakeloop.display.formatting import format_elapsed
from wakeloop.display.live_view import LiveView, supports_live_view
from wakeloop.display.screen import STREAM_MODES, Line, PlainView, Screen
from wakeloop.loop.waits import build_clock_event, find_next_wait, read_wait_kind
from wakeloop.thread.edits import Graph
from wakeloop.thread.steering import find_next_input
from wakeloop.thread.thread_status import is_unfinished, read_session

Answers = dict[str, Any]
Ask = Callable[[Sequence[Interrupt]], Answers | None]
Wait = Callable[[StateSnapshot, Callable[[], object]], Any]
View = LiveView | PlainView

GRACE_SECONDS = 1.0  # for the step to end after Ctrl-C
THREAD_NAME = "wakeloop-run"  # of the operating system thread of a run
WAKE = "wake"  # a queue entry that only wakes the reader
POLL_SECONDS = 0.1  # a signal just before the wait starts does not end it
SIGTERM_SECONDS = 5.0  # for the step after SIGTERM; senders wait longer before SIGKILL
FINAL_SECONDS = 0.3  # for commands that are being stopped
STOP_NOTES = {
    signal.SIGINT: "Stopping. Press Ctrl-C again to stop at once.",
    signal.SIGTERM: f"SIGTERM: stopping after this step, within {SIGTERM_SECONDS:.0f} seconds.",
}


@dataclass(frozen=True)
class Outcome:
    """How a run ended: the state of the thread, and the signal that stopped the run, if any.

    If `abandoned`, a request or a tool is still running in this process, so exit with `os._exit`.
    """

    snapshot: StateSnapshot
    stopped: int | None = None
    abandoned: bool = False


@dataclass(frozen=True)
class RunQueue:
    """Queue of the parts of a stream, in order, and of signals, which overtake them."""

    parts: queue.SimpleQueue[tuple[str, Any]] = field(default_factory=queue.SimpleQueue)
    signals: deque[int] = field(default_factory=deque)

    def put_signal(self, number: int) -> None:
        """Add a signal and wake the reader. Safe in a signal handler, even during a get or put."""
        self.signals.append(number)
        self.parts.put((WAKE, None))

    def next_part(self, deadline: float | None) -> tuple[str, Any]:
        """Return the next part or signal. Raises `queue.Empty` at the deadline, even if more arrive."""
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
    wait: Wait = lambda *_: None,
) -> Outcome:
    """Run a thread with an input, None or a `Command`, and ask its questions, until it ends.

    `ask` gets the interrupts and returns answers by id, or None if nobody can answer. Errors of the run are
    raised here. `wait` gets the state after a run, and returns the input to continue with, or None. SIGINT
    and SIGTERM let it finish its step and send no more requests. `stop` makes tools stop: at once on SIGINT;
    on SIGTERM after its time is up, or when a second signal arrives.
    """
    while True:
        with view:
            stopped, abandoned = stream_run(agent, given, config, view, stop or threading.Event())
        snapshot = agent.get_state(config)
        questions = find_questions(snapshot)
        if stopped is not None:
            return Outcome(snapshot, stopped, abandoned)
        speaks = partial(find_next_input, agent, snapshot)
        if questions:
            answers = ask(questions)
            given = None if answers is None else build_input(answers)
        else:
            given = None if speaks() else wait(snapshot, speaks)
            if given is None and speaks():  # a person has said something that no request took
                given = {"messages": []}
        if given is None:
            return Outcome(snapshot)


def stream_run(
    agent: Graph, given: Any, config: RunnableConfig, view: View, stop: threading.Event
) -> tuple[int | None, bool]:
    """Show a run while it runs; return the signal that stopped it, and whether a step is still running."""
    arriving = RunQueue()
    halt = StopRequest(RunControl(), stop)
    worker = threading.Thread(
        target=run_graph, args=(agent, given, config, halt.control, arriving), name=THREAD_NAME, daemon=True
    )

    def put(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        halt.control.request_drain(signal.Signals(number).name)  # at once, before another step starts
        arriving.put_signal(number)

    with handle_signals(put):
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
        except BaseException:  # the view failed, so nobody would see the rest
            halt.take_signal(signal.SIGINT)
            worker.join(FINAL_SECONDS)
            raise


def is_run_alive() -> bool:
    """Whether an abandoned run is still in a request or a tool, and may write again."""
    return any(thread.name == THREAD_NAME for thread in threading.enumerate())


@dataclass
class StopRequest:
    """How urgently a run was asked to stop."""

    control: RunControl
    stop: threading.Event
    stopped: int | None = None
    deadline: float | None = None

    def take_signal(self, number: int) -> Line | None:
        """Handle a signal; return the line to print for the first one, None for the next."""
        first = self.stopped is None
        self.stopped = self.stopped or number
        self.control.request_drain()
        self.deadline = time.monotonic() + SIGTERM_SECONDS
        if number == signal.SIGINT or not first:
            self.stop.set()
            self.deadline = time.monotonic() + GRACE_SECONDS
        return Line("note", STOP_NOTES[signal.Signals(number)]) if first else None

    def signal_after(self, error: BaseException | None) -> int | None:
        """Return the signal that ended a run; raise its error, unless the run was being stopped."""
        if isinstance(error, KeyboardInterrupt):
            return self.stopped or signal.SIGINT
        if error is not None and self.stopped is None:
            raise error
        return self.stopped  # an error while stopping will appear again when resumed


def run_graph(
    agent: Graph, given: Any, config: RunnableConfig, control: RunControl, arriving: RunQueue
) -> None:
    """Run the graph and put its stream into the queue.

    It runs in its own thread, because a signal must not wait for a request or a tool. Each step is stored
    before the next starts, so that a killed process loses none.
    """
    try:
        parts = agent.stream(
            given, config, stream_mode=list(STREAM_MODES), durability="sync", control=control
        )
        for mode, data in parts:
            arriving.parts.put((mode, data))
    except BaseException as error:  # noqa: BLE001 - raised again by the reader of the queue
        arriving.parts.put(("end", error))
    else:
        arriving.parts.put(("end", None))


@contextmanager
def handle_signals(
    put: Callable[[int, FrameType | None], None], numbers: Iterable[int] = tuple(STOP_NOTES)
) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM call a function, and restore the old handlers afterwards.

    Only the main thread can: elsewhere nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, put) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# -- choose the view that shows a run --------------------------------------------------------------------


class QuietView(PlainView):
    """Prints errors, questions, hints, every ending except success, and what is left of the list."""

    def feed(self, mode: str, data: Any) -> None:
        """Take one part of the stream."""
        self.screen.feed(mode, data)

    def say(self, line: Line) -> None:
        """Print a line if a person must read it."""
        if line.kind in ("error", "question", "way", "end"):
            super().say(line)


class NoEchoLive(LiveView):
    """A live region that typed keys do not tear apart; they stay for the next prompt."""

    def __enter__(self) -> Self:
        self.typed = ExitStack()
        self.typed.enter_context(suppress_echo(sys.stdin))
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.typed.close()


def choose_view(run: RunSpec, before: StateSnapshot) -> View:
    """Return a live region for a terminal, else plain lines; machine output moves them to stderr."""
    screen = Screen(
        title=run.thread,
        todo_tools=get_dialect(settings_from_spec(run.spec).dialect).tool_names,
        todos=list(before.values.get("todos") or ()),
    )
    if is_unfinished(before):
        session = read_session(before)
        screen.wakes, screen.budget, screen.spent = session["wakes"], session["budget"], session["spent"]
    if run.output.shows_progress:
        return (
            NoEchoLive(screen, sys.stdout)
            if supports_live_view(sys.stdout)
            else PlainView(screen, sys.stdout)
        )
    if run.output.format is OutputFormat.STREAM_JSON:
        screen.listener = lambda event: print(to_json_line(event), file=run.output.data, flush=True)
    return (QuietView if run.output.quiet else PlainView)(screen, sys.stderr)


# -- the countdown of a run that a limit has refused -----------------------------------------------------


TICK_SECONDS = 0.2


def count_down(snapshot: StateSnapshot, speaks: Callable[[], object], longest: float) -> Any:
    """Wait at a terminal until a limit is over, and return the input to continue with.

    None if the thread waits for something else or too long, or the person ends the wait: by Ctrl-C, or
    because the person `speaks`.
    """
    values = snapshot.values or {}
    first = find_next_wait(values.get("waiting_on") or ())
    if first is None or read_wait_kind(first) != "limit" or snapshot.tasks:
        return None
    if first["until"] - time.time() > longest or not (at_a_terminal() and sys.stdin.isatty()):
        return None
    try:
        while (left := first["until"] - time.time()) > 0:
            if speaks():
                return None
            show(f"The provider limits requests: the next one in {format_elapsed(left)}. Ctrl-C to stop.")
            time.sleep(min(left, TICK_SECONDS))
    except KeyboardInterrupt:
        return None
    finally:
        show("")
    return {"todo_inbox": [build_clock_event([first], time.time())]}


def show(line: str) -> None:
    """Write a line in the place of the one before it."""
    sys.stderr.write(f"\r\x1b[K{line}")
    sys.stderr.flush()
