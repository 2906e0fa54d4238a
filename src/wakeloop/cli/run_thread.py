"""Run a thread: build, lock, run, report its end."""

import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from langchain_core.messages import HumanMessage
from langgraph.graph import StateGraph
from langgraph.types import Command, StateSnapshot

from wakeloop.checks.run_inputs import is_package_request
from wakeloop.cli.agent import build_agent_graph
from wakeloop.cli.execution import Outcome, View, choose_view, count_down, execute, is_run_alive
from wakeloop.cli.external_tools import ExternalTools, unused_mcp_notes
from wakeloop.cli.failures import FAILED, SETTLED, error_exit_code, format_error, is_model_error, usage_error
from wakeloop.cli.final_state import (
    closing_lines,
    exit_code,
    final_state,
    format_raise_hint,
    resume_command,
    to_json_line,
    usage_counts,
)
from wakeloop.cli.offline_graph import build_offline_graph
from wakeloop.cli.questions import ask_questions, build_input, find_questions
from wakeloop.cli.spec_builder import RunSpec
from wakeloop.cli.store import Store, open_to_read, open_to_write
from wakeloop.cli.stored_state import read_state
from wakeloop.cli.streams import OutputFormat, at_a_terminal, keep_stdout_for_data
from wakeloop.demo.audit import INTRODUCTION, compare_with_plain_loop, explain_missing_report
from wakeloop.display.formatting import format_ending
from wakeloop.display.live_view import LiveView
from wakeloop.display.screen import Line, PlainView
from wakeloop.display.terminal_output import clean_line, write_text
from wakeloop.errors import InputError
from wakeloop.loop.gates import DONE
from wakeloop.loop.goal import is_unmet
from wakeloop.loop.ledger import read_notes
from wakeloop.loop.waits import ends_by_kick
from wakeloop.settings import resolve_aliases
from wakeloop.thread.edits import Graph
from wakeloop.thread.outside import find_hold, release_thread
from wakeloop.thread.thread_status import has_only_talked, is_unfinished, read_session

AUTO_CONTINUE_NOTE = (
    "auto_continue is on. The preset loki leaves it off; set auto_continue=false to switch it off."
)


def run_thread(run: RunSpec) -> int:
    """Run a thread, report its end, and return the exit code."""
    if run.output.shows_progress:
        return build_and_run(run)
    with keep_stdout_for_data() as data:
        return build_and_run(replace(run, output=replace(run.output, data=data)))


def build_and_run(run: RunSpec) -> int:
    """Build the agent of a thread and run it; the exit code."""
    person = sys.stdin.isatty()
    has_input = run.message is not None or run.given.get("done_when")  # which is asked first
    if run.resumes and not has_input and (code := report_at_rest(run, person=person)) is not None:
        return code
    with ExternalTools(run.stop) as outside:
        # built before anything is written, so that an agent that cannot be built leaves no trace
        graph = build_agent_graph(
            run.spec,
            outside,
            ask=run.ask,
            stop=run.stop,
            person=person,
            asks_user=person or run.resumes,  # its question may wait already
        )
        return run_locked(run, graph, outside)


def report_at_rest(run: RunSpec, *, person: bool) -> int | None:
    """If a thread has nothing left to do, report that and return the exit code; otherwise return None.

    Where a `person` is at the terminal, a question that waits is put to them.
    """
    with open_to_read(run.database) as store:
        read_state(store.saver, run.thread)  # raises if the thread is damaged
        before = build_offline_graph(store.saver).get_state(run.config)
        moves = not is_at_rest(before) or find_hold(before.values) or (person and find_questions(before))
        if store.is_held(run.thread) or moves:
            return None
    session, view = read_session(before), choose_view(run, before)
    good = exit_code(session) == SETTLED
    view.say(Line("good" if good else "end", format_ending(session, before.values.get("messages") or ())))
    advice = f"To give it a message: {resume_command(run.thread, run.database, 'your message')}"
    unsaved = (
        " The settings you gave were not saved; give them with the message." if run.typed_settings else ""
    )
    view.say(Line("way", f"{explain_at_rest(session)} {advice}{unsaved}"))
    print_result(run, before, view, None)
    return exit_code(session)


def run_locked(run: RunSpec, graph: StateGraph[Any, Any, Any, Any], outside: ExternalTools) -> int:
    """Lock the thread, run it, and report its end."""
    with open_to_write(run.database) as store, store.hold(run.thread) as hold, hold.mark_running():
        read_state(store.saver, run.thread)
        agent = graph.compile(**store.patient_storage(run.stop), name="wakeloop")
        if run.resumes:
            release_thread(agent, run.config)
        before = agent.get_state(run.config)
        refuse_to_drop_question(run, before)
        refuse_ignored_options(run, before)
        new = store.find(run.thread) is None
        store.remember(run.thread, run.spec, run.request)
        view = choose_view(run, before)
        try:
            for line in opening_lines(run, before):
                view.say(line)
            outcome = execute_job(run, agent, before, view)
        except KeyboardInterrupt:
            outcome = Outcome(agent.get_state(run.config), signal.SIGINT)
        except Exception as error:  # noqa: BLE001 - users get a sentence, whatever it is
            return report_failure(run, agent, error, view, store if new else None)
        return finish_run(run, agent, outcome, view, outside)


def execute_job(run: RunSpec, agent: Graph, before: StateSnapshot, view: View) -> Outcome:
    """Ask a pending question first, then run the thread with its input."""
    ask = partial(ask_questions, say=view.say)
    given = graph_input(run, before)
    questions = find_questions(before) if run.message is None and run.resumes else ()
    if questions:
        answers = ask(questions)
        if answers is None:
            return Outcome(before)
        given = build_input(answers)
    return execute(agent, given, run.config, view, ask, run.stop, partial(count_down, longest=run.wait))


def graph_input(run: RunSpec, before: StateSnapshot) -> Any:
    """Return the input of the graph.

    It is a message, an answer, None to finish an unfinished run, or an empty input that continues the list.
    """
    if run.message is not None:
        if run.resumes and before.interrupts:
            return Command(resume={before.interrupts[0].id: run.message})
        listed = {} if run.todos is None else {"todos": list(run.todos)}
        return {"messages": [HumanMessage(run.message)], **listed, **input_settings(run, before)}
    if is_unfinished(before):
        return None
    if not before.values and run.request:  # the process died before the first step was stored
        return {"messages": [HumanMessage(run.request)]}
    return {"messages": [], **input_settings(run, before)}


def is_at_rest(before: StateSnapshot) -> bool:
    """Whether an empty input would find nothing to do and would only reset all counters."""
    values = before.values
    if not values or is_unfinished(before) or values.get("todo_inbox"):
        return False
    messages = values.get("messages") or []
    if messages and getattr(messages[-1], "id", None) != read_notes(values).get("tail"):
        return False  # the last message has no answer yet
    waits = values.get("waiting_on") or ()
    if waits:
        return not any(ends_by_kick(one, time.time()) for one in waits)
    is_open = read_session(before)["open"] or is_unmet(read_notes(values))
    return not (is_open or values.get("owed_replies"))


def explain_at_rest(session: Mapping[str, Any]) -> str:
    """Return a sentence that says why there is nothing to continue."""
    waits = session["state"] == "waiting"
    reason = "the event it waits for has not arrived" if waits else "no item is open"
    if waits and session.get("question"):
        reason = "it waits for your answer"
    return f"Nothing to resume: the last run has ended and {reason}."


def input_settings(run: RunSpec, before: StateSnapshot) -> dict[str, Any]:
    """Return the thread's overrides as an input, if options typed now change one of them."""
    own = resolve_aliases(before.values.get("todo_settings") or {})
    over = {key: value for key, value in run.typed_settings.items() if key in own}
    return {"todo_settings": {**own, **over}} if over else {}


def refuse_to_drop_question(run: RunSpec, before: StateSnapshot) -> None:
    """Refuse a message that is not an answer while the thread waits for one (rule 27)."""
    asked = any(is_package_request(interrupt.value) for interrupt in before.interrupts)
    if asked and run.message is not None and not run.resumes:
        raise usage_error(
            "The thread waits for your answer, and this message would drop the question. To answer: "
            f"{resume_command(run.thread, run.database, 'your answer')}; to reject: "
            f"{resume_command(run.thread, run.database, 'no')}"
        )


def refuse_ignored_options(run: RunSpec, before: StateSnapshot) -> None:
    """Refuse options that an unfinished run would ignore, because the thread overrides them."""
    continues = is_unfinished(before) and (run.message is None or (run.resumes and before.interrupts))
    own = resolve_aliases(before.values.get("todo_settings") or {})
    if continues and (ignored := [key for key in run.typed_settings if key in own]):
        raise usage_error(
            f"The unfinished run keeps this thread's own {', '.join(ignored)}. Leave the option out."
        )


def opening_lines(run: RunSpec, before: StateSnapshot) -> list[Line]:
    """Return the first lines of a run: the thread, the notes, and what happens to unfinished work."""
    which = "Continuing thread" if before.values else "Thread"
    notes: list[str] = []
    if not (run.output.shows_progress and at_a_terminal()):  # there, `announce_start` has said it
        notes.append(f"{which} {run.thread} ({clean_line(run.spec.model_title)})")
    if run.spec.demo and not run.resumes:
        notes += INTRODUCTION.splitlines()
    notes += unused_mcp_notes(run.spec)
    if run.spec.switched_on:
        notes.append(AUTO_CONTINUE_NOTE)
    if run.message is not None and is_unfinished(before) and not (run.resumes and before.interrupts):
        notes.append("The last run did not finish. Your message starts a new one; nothing is repeated.")
    return [Line("note", note) for note in notes]


# -- report how a run ended, print its result, exit ------------------------------------------------------


def finish_run(run: RunSpec, agent: Graph, outcome: Outcome, view: View, outside: ExternalTools) -> int:
    """Print how the run ended and return the exit code.

    Exits the process at once if a request or a tool is still at work: nothing can cancel those.
    """
    snapshot = outcome.snapshot
    whole = isinstance(view, LiveView)
    for line in closing_lines(snapshot, run.thread, run.database, view.screen.summary, whole=whole):
        view.say(line)
    own = snapshot.values.get("todo_settings") or {}
    if hint := format_raise_hint(read_session(snapshot), run.spec, own, run.thread, run.database):
        view.say(Line("way", hint))
    if has_only_talked(read_session(snapshot), snapshot.values.get("messages") or ()):
        view.say(Line("note", f"To try the model: {run.spec.doctor_command}"))
    page: Line | None = None
    if run.spec.demo and outcome.stopped is None:
        from wakeloop.cli.offline_graph import write_demo_report  # what makes pages takes a moment to import

        page = write_demo_report(run, agent)
        session = read_session(snapshot)
        if session["reason"] == "settled":
            requests = session["spent"]["requests"]
            view.say(Line("good", compare_with_plain_loop(Path(run.spec.root), session, requests)))
        view.say(page)
    code = exit_code(read_session(snapshot), outcome.stopped)
    lost = None
    if not run.database.path.exists():  # the open file still took every step
        lost = f"The database {str(run.database.path)!r} was removed during the run: nothing is stored."
        view.say(Line("error", lost))
        code = FAILED if outcome.stopped is None else code
    print_result(run, snapshot, view, lost)
    if page is not None and read_session(snapshot)["reason"] in DONE:
        if why := explain_missing_report(snapshot.values.get("messages") or ()):
            reason = clean_line(why.removeprefix("Error: "))
            view.say(Line("error", f"The report could not be written: {reason}"))
        code = FAILED if why or page.kind == "error" else code
    if outcome.abandoned:
        outside.close()
        exit_now(code)
    return code


def report_failure(run: RunSpec, agent: Graph, error: Exception, view: View, begun: Store | None) -> int:
    """Print what went wrong and how to continue; return the exit code.

    `begun` is the store if this run started the thread: a thread without any reply is then deleted.
    """
    if isinstance(error, BrokenPipeError):
        if begun is not None:
            forget_unanswered(run.thread, agent, begun)
        raise error
    sentence = format_error(error)
    message = ["your message"] if isinstance(error, InputError) else []  # a refused input would fail again
    snapshot = None
    if run.output.format is not OutputFormat.TEXT:
        snapshot = agent.get_state(run.config)
    way = f"To try again: {resume_command(run.thread, run.database, *message)}"
    if begun is not None and forget_unanswered(run.thread, agent, begun):
        way = "No thread was created, since nothing was answered. Once that is solved, run the command again."
    diagnosis = [f"To diagnose it: {run.spec.doctor_command}"] if is_model_error(error) else []
    write_text("\n".join([f"wakeloop: {sentence}", way, *diagnosis]), sys.stderr)
    if snapshot is not None:
        with suppress(OSError):  # the output may be on the disk that is full
            print_result(run, snapshot, view, " ".join([sentence, *diagnosis]))
    return error_exit_code(error)


def forget_unanswered(thread: str, agent: Graph, store: Store) -> bool:
    """Delete a thread in which no model has replied yet; return whether it was deleted."""
    if is_run_alive():
        return False
    with suppress(Exception):  # such as a database that is full, or gone
        values = agent.get_state({"configurable": {"thread_id": thread}}).values
        own = values.get("todos") or values.get("todo_settings")
        if not own and all(message.type != "ai" for message in values.get("messages") or ()):
            store.forget(thread)
            return True
    return False


def print_result(run: RunSpec, snapshot: StateSnapshot, view: View, error: str | None) -> None:
    """Print the final state on stdout as one JSON object, or the answer alone after a quiet run."""
    if run.output.shows_progress:
        return
    screen = view.screen
    result = final_state(run.thread, snapshot, usage=usage_counts(screen.read, screen.written), error=error)
    if run.output.format is OutputFormat.TEXT:
        if answer := result["answer"].strip():
            PlainView(screen, run.output.data or sys.stdout).say(Line("model", answer))
        return
    if run.output.format is OutputFormat.STREAM_JSON:
        result = {"type": "result", **result}
    print(to_json_line(result), file=run.output.data, flush=True)


def exit_now(code: int) -> NoReturn:
    """End the process without waiting for its threads; every finished step is in the database."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
