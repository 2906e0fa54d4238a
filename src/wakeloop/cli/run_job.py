"""Plays a job: build, hold the thread, run."""

import signal
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.graph import StateGraph
from langgraph.types import Command, StateSnapshot

from wakeloop.cli.agent import build_agent_graph
from wakeloop.cli.budget_hints import describe_budget, merge_typed_settings
from wakeloop.cli.execution import Graph, Outcome, View, execute
from wakeloop.cli.external_tools import ExternalTools, unused_mcp_notes
from wakeloop.cli.failures import usage_error
from wakeloop.cli.final_state import exit_code, resume_command
from wakeloop.cli.finish_run import finish_run, print_result, report_failure
from wakeloop.cli.offline_graph import build_offline_graph
from wakeloop.cli.output_formats import at_a_terminal
from wakeloop.cli.questions import make_question_handler
from wakeloop.cli.run_spec import RunSpec
from wakeloop.cli.store import open_to_read, open_to_write
from wakeloop.cli.stored_state import read_state
from wakeloop.cli.views import choose_view
from wakeloop.display.formatting import format_ending
from wakeloop.display.screen import Line
from wakeloop.display.terminal_text import clean_line
from wakeloop.loop.ledger import read_notes
from wakeloop.settings import resolve_aliases
from wakeloop.thread.thread_status import is_unfinished, read_session

AUTO_CONTINUE_NOTE = (
    "auto_continue is switched on; loki leaves it off unless a level of configuration says otherwise."
)


def run_job(job: RunSpec) -> int:
    """Run a job and report; returns the exit code."""
    if job.resumes and job.message is None and (code := report_at_rest(job)) is not None:
        return code
    with ExternalTools(job.stop) as outside:
        # built before anything is written: what cannot be built leaves no trace
        graph = build_agent_graph(job.spec, outside, ask=job.ask, stop=job.stop)
        return run_locked(job, graph, outside)


def report_at_rest(job: RunSpec) -> int | None:
    """Say that nothing is left to go on with, and leave the thread as it is; None where there is."""
    with open_to_read(job.database) as store:
        read_state(store.saver, job.thread)  # one that is damaged is named
        before = build_offline_graph(store.saver).get_state(job.config)
        if store.is_held(job.thread) or not is_at_rest(before):
            return None
    session, view = read_session(before), choose_view(job, before)
    view.say(Line("end", format_ending(session)))
    way = f"With a message it goes on: {resume_command(job.thread, job.database, 'your message')}"
    unkept = " What was set beside is not kept: set it with the message." if job.typed_settings else ""
    view.say(Line("way", f"{explain_at_rest(session)} {way}{unkept}"))
    print_result(job, before, view, None)
    return exit_code(session)


def run_locked(job: RunSpec, graph: StateGraph[Any, Any, Any, Any], outside: ExternalTools) -> int:
    """Hold the thread, run it, and report."""
    with open_to_write(job.database) as store, store.hold(job.thread) as hold, hold.mark_running():
        read_state(store.saver, job.thread)
        agent = graph.compile(checkpointer=store.saver, name="wakeloop")
        before = agent.get_state(job.config)
        refuse_ignored_options(job, before)
        new = store.find(job.thread) is None
        store.remember(job.thread, job.spec, job.request)
        view = choose_view(job, before)
        try:
            for line in opening_lines(job, before):
                view.say(line)
            outcome = execute_job(job, agent, before, view)
        except KeyboardInterrupt:
            outcome = Outcome(agent.get_state(job.config), signal.SIGINT)
        except Exception as error:  # noqa: BLE001 - whatever it is, the person gets a sentence
            return report_failure(job, agent, error, view, store if new else None)
        return finish_run(job, agent, outcome, view, outside)


def execute_job(job: RunSpec, agent: Graph, before: StateSnapshot, view: View) -> Outcome:
    """Give the thread its input and run it; a question that waits is asked first."""
    ask = make_question_handler(view.say)
    given = graph_input(job, before)
    if given is None and before.interrupts:
        answers = ask(before.interrupts)
        if answers is None:
            return Outcome(before)
        given = Command(resume=answers)
    return execute(agent, given, job.config, view, ask, job.stop)


def graph_input(job: RunSpec, before: StateSnapshot) -> Any:
    """What the graph is given: a message, an answer, nothing to an unfinished run, or an empty kick."""
    if job.message is not None:
        if job.resumes and before.interrupts:
            return Command(resume={before.interrupts[0].id: job.message})
        listed = {} if job.todos is None else {"todos": list(job.todos)}
        return {"messages": [HumanMessage(job.message)], **listed, **input_settings(job, before)}
    if is_unfinished(before):
        return None
    if not before.values and job.request:  # it died before its first step was stored
        return {"messages": [HumanMessage(job.request)]}
    return {"messages": [], **input_settings(job, before)}


def is_at_rest(before: StateSnapshot) -> bool:
    """Tell whether an empty kick would find nothing to do: it would only begin all counts anew."""
    values = before.values
    if not values or is_unfinished(before) or values.get("todo_inbox"):
        return False
    messages = values.get("messages") or []
    if messages and getattr(messages[-1], "id", None) != read_notes(values).get("tail"):
        return False  # nobody has answered it
    return bool(values.get("waiting_on")) or not (read_session(before)["open"] or values.get("owed_replies"))


def explain_at_rest(session: Mapping[str, Any]) -> str:
    """Why there is nothing to go on with."""
    waits = session["state"] == "waiting"
    why = "what it waits for has not come" if waits else "nothing is open"
    return f"There is nothing to go on with: the last run has ended, and {why}."


def input_settings(job: RunSpec, before: StateSnapshot) -> dict[str, Any]:
    """The thread's own values as an input, where what is typed now takes the place of one."""
    own = merge_typed_settings(job.typed_settings, before.values.get("todo_settings") or {})
    return {"todo_settings": own} if own else {}


def refuse_ignored_options(job: RunSpec, before: StateSnapshot) -> None:
    """Refuse a setting that a run which is gone on with would not hear."""
    goes_on = is_unfinished(before) and (job.message is None or (job.resumes and before.interrupts))
    own = resolve_aliases(before.values.get("todo_settings") or {})
    if goes_on and (unheard := [key for key in job.typed_settings if key in own]):
        raise usage_error(
            f"The thread sets {', '.join(unheard)} itself, and its run has not ended: leave the option out."
        )


def opening_lines(job: RunSpec, before: StateSnapshot) -> list[Line]:
    """Which thread this is, and what becomes of what it was in the midst of."""
    which = "Continuing thread" if before.values else "Thread"
    begun = job.output.shows_progress and at_a_terminal()  # it was said before the imports
    lines = [] if begun else [Line("note", f"{which} {job.thread} ({clean_line(job.spec.model_title)})")]
    lines += [Line("note", told) for told in unused_mcp_notes(job.spec)]
    if job.spec.switched_on:
        lines.append(Line("note", AUTO_CONTINUE_NOTE))
    if job.resumes:
        own = (
            merge_typed_settings(job.typed_settings, (held := before.values.get("todo_settings") or {}))
            or held
        )
        has = describe_budget(read_session(before), job.spec, own, job.typed_settings)
        lines += [Line("note", has)] if has else []
    if job.message is None or not is_unfinished(before):
        return lines
    if not before.interrupts:
        told = "Its last run had not finished; the message begins anew, and nothing runs again."
        lines.append(Line("note", told))
    elif not job.resumes:
        told = "It waited for an answer; the message takes its place, and nothing runs again."
        lines.append(Line("note", told))
    return lines
