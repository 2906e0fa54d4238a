"""One job on one thread: build, hold, run, report."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any, NoReturn

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot

from wakeloop.cli.agent import graph_of, settings_of
from wakeloop.cli.ask import asking
from wakeloop.cli.failures import INTERRUPTED, code_of, sentence_of
from wakeloop.cli.recipe import Recipe
from wakeloop.cli.report import again, as_json, as_object, exit_code, last_lines, standing, tokens, unfinished
from wakeloop.cli.run import Graph, Outcome, View, execute
from wakeloop.cli.store import Place, writing
from wakeloop.dialects import dialect_named
from wakeloop.display.clean import one_line
from wakeloop.display.live import Live, fits
from wakeloop.display.plain import Plain
from wakeloop.display.screen import Line, Screen


@dataclass(frozen=True)
class Job:
    """What a command wants of a thread.

    `request` is the thread's first; `ask` puts each shell command to the person, `stop` ends them.
    """

    place: Place
    recipe: Recipe
    thread: str
    request: str
    as_json: bool = False
    ask: bool = True
    stop: Event = field(default_factory=Event)

    @property
    def config(self) -> RunnableConfig:
        """Where the graph finds the thread."""
        return {"configurable": {"thread_id": self.thread}}


def played(job: Job, given: Mapping[str, Any] | str | None) -> int:
    """Run a job and report; returns the exit code.

    `given` is an input; or, to resume, a message or None: what these mean depends on how the thread stands.
    """
    # built before anything is written: what cannot be built leaves no trace
    graph = graph_of(job.recipe, ask=job.ask, stop=job.stop)
    with writing(job.place) as store, store.held(job.thread):
        agent = graph.compile(checkpointer=store.saver, name="wakeloop")
        before = agent.get_state(job.config)
        store.remember(job.thread, job.recipe, job.request)
        view = view_of(job, before)
        for line in greeting(job, given, before):
            view.say(line)
        try:
            outcome = carried_on(job, agent, given, before, view)
        except KeyboardInterrupt:
            outcome = Outcome(agent.get_state(job.config), INTERRUPTED - 128)
        except Exception as error:  # noqa: BLE001 - whatever it is, the person gets a sentence
            return failed(job, agent, error, view)
        return ended(job, outcome, view)


def carried_on(job: Job, agent: Graph, given: Any, before: StateSnapshot, view: View) -> Outcome:
    """Give the thread its input and run it; a question that waits is asked first."""
    ask = asking(view.say)
    if given is None and before.interrupts:
        answers = ask(before.interrupts)
        if answers is None:
            return Outcome(before)
        return execute(agent, Command(resume=answers), job.config, view, ask, job.stop)
    if not isinstance(given, Mapping):
        given = resumed(given, before, job.request)
    return execute(agent, given, job.config, view, ask, job.stop)


def resumed(message: str | None, before: StateSnapshot, request: str) -> Any:
    """What a resume sends: an answer, a message, nothing to an unfinished run, or an empty kick."""
    if message is not None and before.interrupts:
        return Command(resume={before.interrupts[0].id: message})
    if message is not None:
        return {"messages": [HumanMessage(message)]}
    if unfinished(before):
        return None
    if not before.values and request:  # it died before its first step was stored
        return {"messages": [HumanMessage(request)]}
    return {"messages": []}


def view_of(job: Job, before: StateSnapshot) -> View:
    """A live region in a terminal, plain lines elsewhere; with JSON on stdout the lines go to stderr."""
    screen = Screen(
        title=one_line(f"{job.thread}  {job.recipe.title}", 60),
        todo_tools=dialect_named(settings_of(job.recipe).dialect).names,
        todos=list(before.values.get("todos") or ()),
        wakes=standing(before)["wakes"] if unfinished(before) else 0,
    )
    if job.as_json:
        return Plain(screen, sys.stderr)
    return Live(screen, sys.stdout) if fits(sys.stdout) else Plain(screen, sys.stdout)


def greeting(job: Job, given: Mapping[str, Any] | str | None, before: StateSnapshot) -> list[Line]:
    """Which thread this is, and what becomes of what it was in the midst of."""
    which = "Continuing thread" if before.values else "Thread"
    lines = [Line("note", f"{which} {job.thread} ({one_line(job.recipe.title)})")]
    if before.interrupts and isinstance(given, Mapping):
        lines.append(
            Line("note", "It waited for an answer; the message takes its place, and nothing runs again.")
        )
    elif unfinished(before) and not before.interrupts and given is not None:
        lines.append(
            Line("note", "Its last run had not finished; the message begins anew, and nothing runs again.")
        )
    return lines


# -- the end ---------------------------------------------------------------------------------------------


def ended(job: Job, outcome: Outcome, view: View) -> int:
    """Say how it ended; where a request or a tool is still at work, leave the process at once."""
    snapshot = outcome.snapshot
    for line in last_lines(
        snapshot, job.thread, job.place, view.screen.summary, whole=isinstance(view, Live)
    ):
        view.say(line)
    if job.as_json:
        put_out(job, snapshot, view, None)
    code = exit_code(standing(snapshot), outcome.stopped)
    if outcome.abandoned:
        leave(code)
    return code


def failed(job: Job, agent: Graph, error: Exception, view: View) -> int:
    """Say what went wrong, in a sentence, and how to go on."""
    if isinstance(error, BrokenPipeError):
        raise error
    sentence = sentence_of(error)
    print(f"wakeloop: {sentence}", file=sys.stderr)  # noqa: T201
    print(f"To try again: {again(job.thread, job.place)}", file=sys.stderr)  # noqa: T201
    if job.as_json:
        put_out(job, agent.get_state(job.config), view, sentence)
    return code_of(error)


def put_out(job: Job, snapshot: StateSnapshot, view: View, error: str | None) -> None:
    """Write the final state on stdout, as one JSON object."""
    screen = view.screen
    usage = tokens(screen.read, screen.written)
    print(as_json(as_object(job.thread, snapshot, usage=usage, error=error)), flush=True)  # noqa: T201


def leave(code: int) -> NoReturn:
    """End the process without waiting for its threads; every step that ended is in the database."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
