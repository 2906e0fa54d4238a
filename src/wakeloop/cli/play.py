"""Plays a job: build, hold the thread, run, report."""

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph
from langgraph.types import Command, StateSnapshot

from wakeloop.cli.agent import graph_of
from wakeloop.cli.ask import asking
from wakeloop.cli.budgets import newer, to_raise, what_it_has
from wakeloop.cli.failures import FAILED, SETTLED, code_of, sentence_of, usage
from wakeloop.cli.job import Job
from wakeloop.cli.manner import Output
from wakeloop.cli.outside import Outside, unasked
from wakeloop.cli.reader import reader
from wakeloop.cli.report import again, as_json, as_object, exit_code, last_lines, tokens
from wakeloop.cli.run import Graph, Outcome, View, at_work, execute
from wakeloop.cli.start import at_a_terminal
from wakeloop.cli.store import Store, reading, writing
from wakeloop.cli.views import view_of
from wakeloop.demo.job import unwritten
from wakeloop.display.clean import one_line
from wakeloop.display.live import Live
from wakeloop.display.plain import Plain
from wakeloop.display.screen import Line
from wakeloop.display.width import tell
from wakeloop.display.words import ending
from wakeloop.errors import InputError
from wakeloop.loop.ledger import notes_of
from wakeloop.settings import canonical
from wakeloop.thread.standing import counted, unfinished

SWITCHED_ON = (
    "auto_continue is switched on; loki leaves it off unless a level of configuration says otherwise."
)


def play(job: Job) -> int:
    """Run a job and report; returns the exit code."""
    if job.resumes and job.message is None and (code := left_alone(job)) is not None:
        return code
    with Outside(job.stop) as outside:
        # built before anything is written: what cannot be built leaves no trace
        graph = graph_of(job.recipe, outside, ask=job.ask, stop=job.stop)
        return held(job, graph, outside)


def left_alone(job: Job) -> int | None:
    """Say that nothing is left to go on with, and leave the thread as it is; None where there is."""
    with reading(job.place) as store:
        before = reader(store.saver).get_state(config_of(job))
        if store.is_held(job.thread) or not at_rest(before):
            return None
    session, view = counted(before), view_of(job, before)
    view.say(Line("end", ending(session)))
    way = f"With a message it goes on: {again(job.thread, job.place, 'your message')}"
    view.say(Line("way", f"{nothing_left(session)} {way}"))
    put_out(job, before, view, None)
    return exit_code(session)


def held(job: Job, graph: StateGraph[Any, Any, Any, Any], outside: Outside) -> int:
    """Hold the thread, run it, and report."""
    with writing(job.place) as store, store.held(job.thread) as hold, hold.running():
        agent = graph.compile(checkpointer=store.saver, name="wakeloop")
        before = agent.get_state(config_of(job))
        refuse_unheard(job, before)
        new = store.find(job.thread) is None
        store.remember(job.thread, job.recipe, job.request)
        view = view_of(job, before)
        try:
            for line in greeting(job, before):
                view.say(line)
            outcome = carried_on(job, agent, before, view)
        except KeyboardInterrupt:
            outcome = Outcome(agent.get_state(config_of(job)), signal.SIGINT)
        except Exception as error:  # noqa: BLE001 - whatever it is, the person gets a sentence
            return failed(job, agent, error, view, store if new else None)
        return ended(job, agent, outcome, view, outside)


def config_of(job: Job) -> RunnableConfig:
    """Where the graph finds the thread."""
    return {"configurable": {"thread_id": job.thread}}


def carried_on(job: Job, agent: Graph, before: StateSnapshot, view: View) -> Outcome:
    """Give the thread its input and run it; a question that waits is asked first."""
    ask = asking(view.say)
    given = input_of(job, before)
    if given is None and before.interrupts:
        answers = ask(before.interrupts)
        if answers is None:
            return Outcome(before)
        given = Command(resume=answers)
    return execute(agent, given, config_of(job), view, ask, job.stop)


def input_of(job: Job, before: StateSnapshot) -> Any:
    """What the graph is given: a message, an answer, nothing to an unfinished run, or an empty kick."""
    if job.message is not None:
        if job.resumes and before.interrupts:
            return Command(resume={before.interrupts[0].id: job.message})
        listed = {} if job.todos is None else {"todos": list(job.todos)}
        return {"messages": [HumanMessage(job.message)], **listed, **own_of(job, before)}
    if unfinished(before):
        return None
    if not before.values and job.request:  # it died before its first step was stored
        return {"messages": [HumanMessage(job.request)]}
    return {"messages": [], **own_of(job, before)}


def at_rest(before: StateSnapshot) -> bool:
    """Tell whether an empty kick would find nothing to do: it would only begin all counts anew."""
    values = before.values
    if not values or unfinished(before) or values.get("todo_inbox"):
        return False
    messages = values.get("messages") or []
    if messages and getattr(messages[-1], "id", None) != notes_of(values).get("tail"):
        return False  # nobody has answered it
    return bool(values.get("waiting_on")) or not (counted(before)["open"] or values.get("owed_replies"))


def nothing_left(session: Mapping[str, Any]) -> str:
    """Why there is nothing to go on with."""
    waits = session["state"] == "waiting"
    why = "what it waits for has not come" if waits else "nothing is open"
    return f"There is nothing to go on with: the last run has ended, and {why}."


def own_of(job: Job, before: StateSnapshot) -> dict[str, Any]:
    """The thread's own values as an input, where what is typed now takes the place of one."""
    own = newer(job.typed, before.values.get("todo_settings") or {})
    return {"todo_settings": own} if own else {}


def refuse_unheard(job: Job, before: StateSnapshot) -> None:
    """Refuse a setting that a run which is gone on with would not hear."""
    goes_on = unfinished(before) and (job.message is None or (job.resumes and before.interrupts))
    own = canonical(before.values.get("todo_settings") or {})
    if goes_on and (unheard := [key for key in job.typed if key in own]):
        raise usage(
            f"The thread sets {', '.join(unheard)} itself, and its run has not ended: leave the option out."
        )


def greeting(job: Job, before: StateSnapshot) -> list[Line]:
    """Which thread this is, and what becomes of what it was in the midst of."""
    which = "Continuing thread" if before.values else "Thread"
    begun = job.manner.watched and at_a_terminal()  # it was said before the imports
    lines = [] if begun else [Line("note", f"{which} {job.thread} ({one_line(job.recipe.title)})")]
    lines += [Line("note", told) for told in unasked(job.recipe)]
    if job.recipe.switched_on:
        lines.append(Line("note", SWITCHED_ON))
    if job.resumes:
        own = newer(job.typed, (held := before.values.get("todo_settings") or {})) or held
        has = what_it_has(counted(before), job.recipe, own, job.typed)
        lines += [Line("note", has)] if has else []
    if job.message is None or not unfinished(before):
        return lines
    if not before.interrupts:
        told = "Its last run had not finished; the message begins anew, and nothing runs again."
        lines.append(Line("note", told))
    elif not job.resumes:
        told = "It waited for an answer; the message takes its place, and nothing runs again."
        lines.append(Line("note", told))
    return lines


# -- the end ---------------------------------------------------------------------------------------------


def ended(job: Job, agent: Graph, outcome: Outcome, view: View, outside: Outside) -> int:
    """Say how it ended; where a request or a tool is still at work, leave the process at once."""
    snapshot = outcome.snapshot
    for line in last_lines(
        snapshot, job.thread, job.place, view.screen.summary, whole=isinstance(view, Live)
    ):
        view.say(line)
    own = snapshot.values.get("todo_settings") or {}
    if told := to_raise(counted(snapshot), job.recipe, own, job.thread, job.place):
        view.say(Line("way", told))
    page: Line | None = None
    if job.recipe.demo and outcome.stopped is None:
        from wakeloop.cli.pictured import of_the_demo

        page = of_the_demo(job, agent)
        view.say(page)
    put_out(job, snapshot, view, None)
    code = exit_code(counted(snapshot), outcome.stopped)
    if page is not None and code == SETTLED:
        if why := unwritten(snapshot.values.get("messages") or ()):
            told = f"The report could not be written: {one_line(why.removeprefix('Error: '))}"
            view.say(Line("error", told))
        code = FAILED if why or page.kind == "error" else code
    if outcome.abandoned:
        outside.close()
        leave(code)
    return code


def failed(job: Job, agent: Graph, error: Exception, view: View, begun: Store | None) -> int:
    """Say what went wrong, in a sentence, and how to go on; a first try without any answer is not kept."""
    if isinstance(error, BrokenPipeError):
        if begun is not None:
            forgotten(job.thread, agent, begun)
        raise error
    sentence = sentence_of(error)
    message = ["your message"] if isinstance(error, InputError) else []  # a refused input is not tried again
    snapshot = None if job.manner.output is Output.TEXT else agent.get_state(config_of(job))
    way = f"To try again: {again(job.thread, job.place, *message)}"
    if begun is not None and forgotten(job.thread, agent, begun):
        way = "No thread was kept: nothing was answered. Give the same command again."
    tell(f"wakeloop: {sentence}\n{way}", sys.stderr)
    if snapshot is not None:
        with suppress(OSError):  # the output may be what is full
            put_out(job, snapshot, view, sentence)
    return code_of(error)


def forgotten(thread: str, agent: Graph, store: Store) -> bool:
    """Take away a thread that was begun in vain: no model has said anything in it."""
    if at_work():
        return False
    with suppress(Exception):  # such as a database that is full, or gone
        values = agent.get_state({"configurable": {"thread_id": thread}}).values
        own = values.get("todos") or values.get("todo_settings")
        if not own and all(one.type != "ai" for one in values.get("messages") or ()):
            store.forget(thread)
            return True
    return False


def put_out(job: Job, snapshot: StateSnapshot, view: View, error: str | None) -> None:
    """Write the final state on stdout, as one JSON object; or the answer alone, where nothing else was."""
    if job.manner.watched:
        return
    screen = view.screen
    whole = as_object(job.thread, snapshot, usage=tokens(screen.read, screen.written), error=error)
    if job.manner.output is Output.TEXT:
        if answer := whole["answer"].strip():
            Plain(screen, sys.stdout).say(Line("model", answer))
    else:
        result = {"type": "result"} if job.manner.output is Output.STREAM_JSON else {}
        print(as_json({**result, **whole}), flush=True)  # noqa: T201


def leave(code: int) -> NoReturn:
    """End the process without waiting for its threads; every step that ended is in the database."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
