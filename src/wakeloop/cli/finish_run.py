"""Ends a played job: says how, puts out the state, leaves."""

import os
import sys
from contextlib import suppress
from typing import NoReturn

from langgraph.types import StateSnapshot

from wakeloop.cli.budget_hints import format_raise_hint
from wakeloop.cli.execution import Graph, Outcome, View, is_run_alive
from wakeloop.cli.external_tools import ExternalTools
from wakeloop.cli.failures import FAILED, SETTLED, error_exit_code, format_error, is_model_error
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
from wakeloop.demo.job import unwritten
from wakeloop.display.clean import one_line
from wakeloop.display.live import Live
from wakeloop.display.plain import Plain
from wakeloop.display.screen import Line
from wakeloop.display.width import tell
from wakeloop.errors import InputError
from wakeloop.thread.standing import counted


def finish_run(job: RunSpec, agent: Graph, outcome: Outcome, view: View, outside: ExternalTools) -> int:
    """Say how it ended; where a request or a tool is still at work, leave the process at once."""
    snapshot = outcome.snapshot
    for line in closing_lines(
        snapshot, job.thread, job.place, view.screen.summary, whole=isinstance(view, Live)
    ):
        view.say(line)
    own = snapshot.values.get("todo_settings") or {}
    if told := format_raise_hint(counted(snapshot), job.recipe, own, job.thread, job.place):
        view.say(Line("way", told))
    page: Line | None = None
    if job.recipe.demo and outcome.stopped is None:
        from wakeloop.cli.report import write_demo_report  # what makes pages takes a moment to import

        page = write_demo_report(job, agent)
        view.say(page)
    print_result(job, snapshot, view, None)
    code = exit_code(counted(snapshot), outcome.stopped)
    if page is not None and code == SETTLED:
        if why := unwritten(snapshot.values.get("messages") or ()):
            told = f"The report could not be written: {one_line(why.removeprefix('Error: '))}"
            view.say(Line("error", told))
        code = FAILED if why or page.kind == "error" else code
    if outcome.abandoned:
        outside.close()
        exit_now(code)
    return code


def report_failure(job: RunSpec, agent: Graph, error: Exception, view: View, begun: Store | None) -> int:
    """Say what went wrong, in a sentence, and how to go on; a first try without any answer is not kept."""
    if isinstance(error, BrokenPipeError):
        if begun is not None:
            forget_unanswered(job.thread, agent, begun)
        raise error
    sentence = format_error(error)
    message = ["your message"] if isinstance(error, InputError) else []  # a refused input is not tried again
    snapshot = None if job.output.format is OutputFormat.TEXT else agent.get_state(job.config)
    way = f"To try again: {resume_command(job.thread, job.place, *message)}"
    if begun is not None and forget_unanswered(job.thread, agent, begun):
        way = "No thread was kept: nothing was answered. Give the same command again."
    look = [f"To look into it: {job.recipe.doctor_command}"] if is_model_error(error) else []
    tell("\n".join([f"wakeloop: {sentence}", way, *look]), sys.stderr)
    if snapshot is not None:
        with suppress(OSError):  # the output may be what is full
            print_result(job, snapshot, view, " ".join([sentence, *look]))
    return error_exit_code(error)


def forget_unanswered(thread: str, agent: Graph, store: Store) -> bool:
    """Take away a thread that was begun in vain: no model has said anything in it."""
    if is_run_alive():
        return False
    with suppress(Exception):  # such as a database that is full, or gone
        values = agent.get_state({"configurable": {"thread_id": thread}}).values
        own = values.get("todos") or values.get("todo_settings")
        if not own and all(one.type != "ai" for one in values.get("messages") or ()):
            store.forget(thread)
            return True
    return False


def print_result(job: RunSpec, snapshot: StateSnapshot, view: View, error: str | None) -> None:
    """Write the final state on stdout, as one JSON object; or the answer alone, where nothing else was."""
    if job.output.shows_progress:
        return
    screen = view.screen
    whole = final_state(job.thread, snapshot, usage=usage_counts(screen.read, screen.written), error=error)
    if job.output.format is OutputFormat.TEXT:
        if answer := whole["answer"].strip():
            Plain(screen, sys.stdout).say(Line("model", answer))
    else:
        result = {"type": "result"} if job.output.format is OutputFormat.STREAM_JSON else {}
        print(to_json_line({**result, **whole}), flush=True)  # noqa: T201


def exit_now(code: int) -> NoReturn:
    """End the process without waiting for its threads; every step that ended is in the database."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
