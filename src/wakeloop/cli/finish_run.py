"""Report how a run ended, print its result, exit."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from langgraph.types import StateSnapshot

from wakeloop.cli.budget_hints import format_raise_hint
from wakeloop.cli.execution import Outcome, View, is_run_alive
from wakeloop.cli.external_tools import ExternalTools
from wakeloop.cli.failures import FAILED, error_exit_code, format_error, is_model_error
from wakeloop.cli.final_state import (
    closing_lines,
    exit_code,
    final_state,
    resume_command,
    to_json_line,
    usage_counts,
)
from wakeloop.cli.output_formats import OutputFormat
from wakeloop.cli.run_spec import RunSpec
from wakeloop.cli.store import Store
from wakeloop.demo.job import compare_with_plain_loop, explain_missing_report
from wakeloop.display.live_view import LiveView
from wakeloop.display.plain_view import PlainView
from wakeloop.display.screen import Line
from wakeloop.display.terminal_output import write_text
from wakeloop.display.terminal_text import clean_line
from wakeloop.errors import InputError
from wakeloop.loop.gates import DONE
from wakeloop.thread.edits import Graph
from wakeloop.thread.thread_status import has_only_talked, read_session


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
        from wakeloop.cli.report import write_demo_report  # what makes pages takes a moment to import

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
