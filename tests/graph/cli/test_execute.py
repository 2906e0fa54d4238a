"""`execute` with a scripted model: questions, signals, failures; no process, no server."""

from __future__ import annotations

import io
import queue
import signal
import threading
import time
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.types import Command, Interrupt, interrupt

from wakeloop import create_todo_agent
from wakeloop.cli import execution
from wakeloop.cli.execution import RunQueue, execute
from wakeloop.cli.final_state import exit_code
from wakeloop.cli.questions import ask_questions
from wakeloop.display.screen import PlainView, Screen
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.thread.thread_status import session_of

CONFIG: Any = {"configurable": {"thread_id": "t"}}
GO = {"messages": [HumanMessage("go")]}


@tool
def ask_person(question: str) -> str:
    """Ask."""
    return f"they said {interrupt(question)}"


@tool
def press_ctrl_c() -> str:
    """Return a tool during which Ctrl-C is pressed."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    time.sleep(0.2)
    return "finished all the same"


@tool
def raise_ctrl_c() -> str:
    """Return a tool that raises it."""
    raise KeyboardInterrupt


def build(*script: Any, tools: Any = ()) -> tuple[Any, ScriptedModel, PlainView]:
    model = ScriptedModel(*script)
    return (
        create_todo_agent(model, tools, checkpointer=InMemorySaver()),
        model,
        PlainView(Screen(), io.StringIO()),
    )


def nobody(interrupts: Any) -> None:
    return None


def test_several_questions_are_answered_by_id() -> None:
    script = calls(("ask_person", {"question": "a?"}), ("ask_person", {"question": "b?"}))
    agent, model, view = build(script, says("thanks"), tools=[ask_person])
    outcome = execute(agent, GO, CONFIG, view, lambda asked: {one.id: one.value.upper() for one in asked})
    assert session_of(outcome.snapshot)["reason"] == "answered"
    results = [m.content for m in outcome.snapshot.values["messages"] if m.type == "tool"]
    assert results == ["they said A?", "they said B?"]
    model.assert_done()


def test_nobody_to_ask_parks_the_thread() -> None:
    agent, model, view = build(calls(("ask_person", {"question": "a?"})), tools=[ask_person])
    outcome = execute(agent, GO, CONFIG, view, nobody)
    assert session_of(outcome.snapshot)["state"] == "waiting"
    assert exit_code(session_of(outcome.snapshot)) == 4
    model.assert_done()


def test_ctrl_c_keeps_what_had_finished_and_asks_for_nothing_more() -> None:
    before = signal.getsignal(signal.SIGINT)
    agent, model, view = build(calls(("press_ctrl_c", {})), says("later"), tools=[press_ctrl_c])
    stop = threading.Event()
    outcome = execute(agent, GO, CONFIG, view, nobody, stop)
    assert outcome.stopped == signal.SIGINT
    assert not outcome.abandoned
    assert stop.is_set()
    assert len(model.requests) == 1
    assert outcome.snapshot.values["messages"][-1].content == "finished all the same"
    assert "Press Ctrl-C again to stop at once" in view.out.getvalue()  # type: ignore[attr-defined]
    assert exit_code(session_of(outcome.snapshot), outcome.stopped) == 130
    again = execute(agent, None, CONFIG, view, nobody)
    assert session_of(again.snapshot)["reason"] == "answered"
    assert signal.getsignal(signal.SIGINT) is before


def test_a_keyboard_interrupt_in_a_tool_is_ctrl_c() -> None:
    agent, model, view = build(calls(("raise_ctrl_c", {})), says("new"), tools=[raise_ctrl_c])
    outcome = execute(agent, GO, CONFIG, view, nobody)
    assert (outcome.stopped, len(model.requests)) == (signal.SIGINT, 1)
    assert execute(agent, GO, CONFIG, view, nobody).stopped is None
    model.assert_done()


def test_a_models_exception_is_raised_here() -> None:
    agent, _, view = build(RuntimeError("no"))
    with pytest.raises(RuntimeError, match="no"):
        execute(agent, GO, CONFIG, view, nobody)


def test_a_broken_view_stops_the_run() -> None:
    agent, model, _ = build(calls(("todo_write", {"items": ["a"]})), says("one"), says("two"), says("three"))

    class Broken(PlainView):
        def feed(self, mode: str, data: Any) -> None:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        execute(agent, GO, CONFIG, Broken(Screen(), io.StringIO()), nobody)
    for thread in threading.enumerate():
        if thread.name == "wakeloop-run":
            thread.join(60)
    assert len(model.requests) <= 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_answers_are_typed_only_in_a_terminal() -> None:
    asked = [Interrupt("one?", id="1"), Interrupt({"question": "two?", "command": "x\x1by"}, id="2")]
    said: list[str] = []
    terminal = Terminal("yes please\nno\n")
    ask = partial(ask_questions, say=lambda line: said.append(line.text), source=terminal)
    assert ask(asked) == {"1": "yes please", "2": "no"}
    assert "question:   command: x\\x1by" in said
    assert ask_questions(asked, lambda line: None, Terminal("only one\n")) is None
    assert ask_questions(asked, lambda line: None, io.StringIO("yes\nno\n")) is None


def test_a_parked_thread_takes_an_answer_by_command() -> None:
    agent, model, view = build(calls(("ask_person", {"question": "a?"})), says("ok"), tools=[ask_person])
    parked = execute(agent, GO, CONFIG, view, nobody)
    given = Command(resume={parked.snapshot.interrupts[0].id: "Go"})
    assert session_of(execute(agent, given, CONFIG, view, nobody).snapshot)["reason"] == "answered"
    model.assert_done()


class Slow(PlainView):
    """A view that falls behind: 2,000 chunks take it a minute or more."""

    shown = 0

    def feed(self, mode: str, data: Any) -> None:
        self.shown += 1
        time.sleep(0.05)


def flood(*presses: float) -> Any:
    """Return a tool that streams far more than is shown; Ctrl-C is pressed during it, after this many
    seconds.
    """

    @tool
    def stream_much() -> str:
        """Stream."""
        write = get_stream_writer()
        for number in range(2000):
            write({"type": "other", "number": number})
        for pause in presses:
            time.sleep(pause)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.2)
        return "streamed"

    return stream_much


@pytest.mark.parametrize(("presses", "most"), [((0.2,), 10.0), ((0.2, 0.2), 5.0)], ids=["once", "twice"])
def test_ctrl_c_ends_a_run_whose_stream_outpaces_its_view(presses: Any, most: float) -> None:
    agent, model, _ = build(calls(("stream_much", {})), says("later"), tools=[flood(*presses)])
    view, began = Slow(Screen(), io.StringIO()), time.monotonic()
    outcome = execute(agent, GO, CONFIG, view, nobody)
    assert time.monotonic() - began < most
    assert (outcome.stopped, view.shown < 200, len(model.requests)) == (signal.SIGINT, True, 1)
    told = view.out.getvalue()  # type: ignore[attr-defined]
    assert told.count("Press Ctrl-C again to stop at once") == 1


def test_one_sigterm_is_enough_for_an_endless_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "SIGTERM_SECONDS", 0.3)
    stop, ended = threading.Event(), threading.Event()

    @tool
    def hang() -> str:
        """Return a tool that ends when asked to, but slowly."""
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        stop.wait(30)
        time.sleep(1)
        ended.set()
        return "ended"

    agent, model, view = build(calls(("hang", {})), says("later"), tools=[hang])
    outcome = execute(agent, GO, CONFIG, view, nobody, stop)
    assert (outcome.stopped, outcome.abandoned, stop.is_set()) == (signal.SIGTERM, True, True)
    assert exit_code(session_of(outcome.snapshot), outcome.stopped) == 143
    assert ended.wait(30)
    assert len(model.requests) == 1


def test_signals_overtake_waiting_chunks() -> None:
    arriving = RunQueue()
    for number in range(3):
        arriving.parts.put(("custom", number))
    arriving.put_signal(signal.SIGTERM)
    assert arriving.next_part(None) == ("signal", signal.SIGTERM)
    assert [arriving.next_part(None)[1] for _ in range(3)] == [0, 1, 2]
    arriving.parts.put(("custom", 3))
    with pytest.raises(queue.Empty):
        arriving.next_part(time.monotonic())  # the deadline is checked first, whatever waits
    # the wake-up for a signal is not a chunk
    assert arriving.next_part(time.monotonic() + 10) == ("custom", 3)


def test_a_signal_that_wakes_nobody_is_still_handled() -> None:
    """One that comes between a thread's last instruction and its wait is handled when the wait ends."""
    arriving = RunQueue()
    late = threading.Timer(10, arriving.parts.put, [("custom", "only now")])
    early = threading.Timer(0.01, arriving.signals.append, [signal.SIGTERM])
    late.start()
    early.start()
    try:
        assert arriving.next_part(None) == ("signal", signal.SIGTERM)
    finally:
        late.cancel()
