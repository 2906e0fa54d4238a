"""Plays a job: build, hold the thread, run."""

import signal
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.graph import StateGraph
from langgraph.types import Command, StateSnapshot

from wakeloop.cli.agent import build_recipe_graph
from wakeloop.cli.budget_hints import describe_budget, merge_typed_settings
from wakeloop.cli.failures import usage_error
from wakeloop.cli.finish_run import finish_run, print_result, report_failure
from wakeloop.cli.outcome import again, exit_code
from wakeloop.cli.output_formats import at_a_terminal
from wakeloop.cli.outside import Outside, unasked
from wakeloop.cli.questions import make_question_handler
from wakeloop.cli.reader import reader
from wakeloop.cli.run import Graph, Outcome, View, execute
from wakeloop.cli.run_spec import RunSpec
from wakeloop.cli.store import reading, writing
from wakeloop.cli.stored import stored
from wakeloop.cli.views import view_of
from wakeloop.display.clean import one_line
from wakeloop.display.screen import Line
from wakeloop.display.words import ending
from wakeloop.loop.ledger import read_notes
from wakeloop.settings import canonical
from wakeloop.thread.standing import counted, unfinished

SWITCHED_ON = (
    "auto_continue is switched on; loki leaves it off unless a level of configuration says otherwise."
)


def play(job: RunSpec) -> int:
    """Run a job and report; returns the exit code."""
    if job.resumes and job.message is None and (code := left_alone(job)) is not None:
        return code
    with Outside(job.stop) as outside:
        # built before anything is written: what cannot be built leaves no trace
        graph = build_recipe_graph(job.recipe, outside, ask=job.ask, stop=job.stop)
        return held(job, graph, outside)


def left_alone(job: RunSpec) -> int | None:
    """Say that nothing is left to go on with, and leave the thread as it is; None where there is."""
    with reading(job.place) as store:
        stored(store.saver, job.thread)  # one that is damaged is named
        before = reader(store.saver).get_state(job.config)
        if store.is_held(job.thread) or not at_rest(before):
            return None
    session, view = counted(before), view_of(job, before)
    view.say(Line("end", ending(session)))
    way = f"With a message it goes on: {again(job.thread, job.place, 'your message')}"
    unkept = " What was set beside is not kept: set it with the message." if job.typed_settings else ""
    view.say(Line("way", f"{nothing_left(session)} {way}{unkept}"))
    print_result(job, before, view, None)
    return exit_code(session)


def held(job: RunSpec, graph: StateGraph[Any, Any, Any, Any], outside: Outside) -> int:
    """Hold the thread, run it, and report."""
    with writing(job.place) as store, store.held(job.thread) as hold, hold.mark_running():
        stored(store.saver, job.thread)
        agent = graph.compile(checkpointer=store.saver, name="wakeloop")
        before = agent.get_state(job.config)
        refuse_unheard(job, before)
        new = store.find(job.thread) is None
        store.remember(job.thread, job.recipe, job.request)
        view = view_of(job, before)
        try:
            for line in greeting(job, before):
                view.say(line)
            outcome = carried_on(job, agent, before, view)
        except KeyboardInterrupt:
            outcome = Outcome(agent.get_state(job.config), signal.SIGINT)
        except Exception as error:  # noqa: BLE001 - whatever it is, the person gets a sentence
            return report_failure(job, agent, error, view, store if new else None)
        return finish_run(job, agent, outcome, view, outside)


def carried_on(job: RunSpec, agent: Graph, before: StateSnapshot, view: View) -> Outcome:
    """Give the thread its input and run it; a question that waits is asked first."""
    ask = make_question_handler(view.say)
    given = input_of(job, before)
    if given is None and before.interrupts:
        answers = ask(before.interrupts)
        if answers is None:
            return Outcome(before)
        given = Command(resume=answers)
    return execute(agent, given, job.config, view, ask, job.stop)


def input_of(job: RunSpec, before: StateSnapshot) -> Any:
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
    if messages and getattr(messages[-1], "id", None) != read_notes(values).get("tail"):
        return False  # nobody has answered it
    return bool(values.get("waiting_on")) or not (counted(before)["open"] or values.get("owed_replies"))


def nothing_left(session: Mapping[str, Any]) -> str:
    """Why there is nothing to go on with."""
    waits = session["state"] == "waiting"
    why = "what it waits for has not come" if waits else "nothing is open"
    return f"There is nothing to go on with: the last run has ended, and {why}."


def own_of(job: RunSpec, before: StateSnapshot) -> dict[str, Any]:
    """The thread's own values as an input, where what is typed now takes the place of one."""
    own = merge_typed_settings(job.typed_settings, before.values.get("todo_settings") or {})
    return {"todo_settings": own} if own else {}


def refuse_unheard(job: RunSpec, before: StateSnapshot) -> None:
    """Refuse a setting that a run which is gone on with would not hear."""
    goes_on = unfinished(before) and (job.message is None or (job.resumes and before.interrupts))
    own = canonical(before.values.get("todo_settings") or {})
    if goes_on and (unheard := [key for key in job.typed_settings if key in own]):
        raise usage_error(
            f"The thread sets {', '.join(unheard)} itself, and its run has not ended: leave the option out."
        )


def greeting(job: RunSpec, before: StateSnapshot) -> list[Line]:
    """Which thread this is, and what becomes of what it was in the midst of."""
    which = "Continuing thread" if before.values else "Thread"
    begun = job.output.shows_progress and at_a_terminal()  # it was said before the imports
    lines = [] if begun else [Line("note", f"{which} {job.thread} ({one_line(job.recipe.title)})")]
    lines += [Line("note", told) for told in unasked(job.recipe)]
    if job.recipe.switched_on:
        lines.append(Line("note", SWITCHED_ON))
    if job.resumes:
        own = (
            merge_typed_settings(job.typed_settings, (held := before.values.get("todo_settings") or {}))
            or held
        )
        has = describe_budget(counted(before), job.recipe, own, job.typed_settings)
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
