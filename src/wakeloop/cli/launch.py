"""What run, resume and demo want of a thread."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from wakeloop.cli.agent_spec import AgentSpec, resolve_folder
from wakeloop.cli.failures import usage_error
from wakeloop.cli.output_formats import OutputOptions
from wakeloop.cli.run_spec import RunSpec
from wakeloop.cli.spec_builder import build_spec, collect_typed_settings
from wakeloop.cli.store import DatabaseFile, ThreadRecord
from wakeloop.cli.terminal_input import read_all
from wakeloop.cli.thread_lookup import find_thread, new_thread_id, resolve_thread_option
from wakeloop.cli.todo_file import read_todo_file
from wakeloop.display.terminal_output import write_text
from wakeloop.display.terminal_text import clean_line

BYTE_ORDER_MARK = "\ufeff"  # of the byte order
TEXT_OUTPUT = OutputOptions()


def run_request(
    request: str,
    given: Mapping[str, Any],
    database: DatabaseFile,
    thread: str | None,
    todos: Path | None = None,
    *,
    output: OutputOptions,
    ask: bool,
) -> int:
    """Run a request on a new thread, or as the next message of one that exists; `todos` is a list for it."""
    check_text(request, "The request is empty: say what is to be done.")
    items = None if todos is None else read_todo_file(todos)
    name, known = resolve_thread_option(database, thread)
    spec = build_spec(known.spec if known else None, given)
    words = collect_typed_settings(given)
    return launch_job(
        RunSpec(
            database, name, spec, request, request, output=output, ask=ask, typed_settings=words, todos=items
        )
    )


def resume_thread(
    thread: str | None,
    message: str | None,
    given: Mapping[str, Any],
    database: DatabaseFile,
    *,
    output: OutputOptions,
    ask: bool,
) -> int:
    """Go on with a thread, the last one where none is named.

    It answers what the thread asked, finishes its run, or sends it a message or an empty kick.
    """
    if message is not None:
        check_text(message, "The message is empty: leave it out to go on without one.")
    known = find_thread(database, thread)
    spec = build_spec(known.spec, given)
    return launch_job(
        RunSpec(
            database,
            known.id,
            spec,
            known.request,
            message,
            resumes=True,
            output=output,
            ask=ask,
            typed_settings=collect_typed_settings(given),
        )
    )


def prepare_chat(
    thread: str | None, given: Mapping[str, Any], database: DatabaseFile, *, last: bool
) -> tuple[str, ThreadRecord | None, AgentSpec]:
    """The thread that a chat begins with: a new one, one by its id, or the last one."""
    if last and thread is not None:
        raise usage_error("--continue takes the last thread: leave --thread out, or --continue.")
    if last:
        known: ThreadRecord | None
        name, known = (there := find_thread(database, None)).id, there
    else:
        name, known = resolve_thread_option(database, thread)
    spec = build_spec(known.spec if known else None, given)
    announce_start(spec, name)
    return name, known, spec


def run_demo(
    root: Path, database: DatabaseFile, given: Mapping[str, Any], delay: float, *, output: OutputOptions
) -> int:
    """Run the demo: the offline model audits the files below `root`."""
    spec = build_spec(
        AgentSpec(root=resolve_folder(root, "name another folder"), demo=True, delay=delay), given
    )
    name = new_thread_id("demo")
    announce_start(spec, name, output)
    from wakeloop.demo.audit import audit_files
    from wakeloop.demo.job import request_text

    where = Path(spec.root)
    if not audit_files(where):
        raise usage_error(
            f"There is no Python, Markdown or notebook file in {str(where)!r}: name another folder."
        )
    request = request_text(where)
    return launch_job(RunSpec(database, name, spec, request, request, output=output))


def launch_job(job: RunSpec) -> int:
    """Play a job; what that needs is imported now, so that wrong usage is refused at once."""
    if not job.spec.demo:
        announce_start(job.spec, job.thread, job.output)
    try:
        from wakeloop.cli.run_job import run_job
    except KeyboardInterrupt:
        write_text("Stopped before the run began: nothing is stored.", sys.stderr)
        raise
    return run_job(job)


def announce_start(spec: AgentSpec, thread: str, output: OutputOptions = TEXT_OUTPUT) -> None:
    """Tell a person at a terminal what is begun: what it needs takes a moment to import."""
    if output.shows_progress and sys.stderr.isatty():
        write_text(f"Starting {clean_line(spec.model_title)} on thread {thread} …", sys.stderr)


def check_text(text: str, empty: str) -> None:
    """Refuse a text that is empty, or that no server and no database takes."""
    if not text.strip():
        raise usage_error(empty)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise usage_error("The text is not UTF-8: type it again, or give it on stdin.") from None


def read_stdin(source: TextIO | None = None) -> str:
    """Read all of stdin; a byte order mark at its head is none of the text."""
    return read_all(source or sys.stdin).removeprefix(BYTE_ORDER_MARK)
