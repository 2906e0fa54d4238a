"""What run, resume and demo want of a thread."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from wakeloop.cli.failures import usage_error
from wakeloop.cli.output_formats import OutputOptions
from wakeloop.cli.recipe import Recipe, folder
from wakeloop.cli.recipe_builder import build_recipe, collect_typed_settings
from wakeloop.cli.run_spec import RunSpec
from wakeloop.cli.store import Known, Place
from wakeloop.cli.thread_lookup import find_thread, new_thread_id, resolve_thread_option
from wakeloop.cli.todo_file import read_todo_file
from wakeloop.cli.typed import typed_text
from wakeloop.display.clean import one_line
from wakeloop.display.width import tell

MARK = "\ufeff"  # of the byte order
AS_LINES = OutputOptions()


def start(
    request: str,
    given: Mapping[str, Any],
    place: Place,
    thread: str | None,
    todos: Path | None = None,
    *,
    output: OutputOptions,
    ask: bool,
) -> int:
    """Run a request on a new thread, or as the next message of one that exists; `todos` is a list for it."""
    check_text(request, "The request is empty: say what is to be done.")
    items = None if todos is None else read_todo_file(todos)
    name, known = resolve_thread_option(place, thread)
    recipe = build_recipe(known.recipe if known else None, given)
    words = collect_typed_settings(given)
    return played(
        RunSpec(
            place, name, recipe, request, request, output=output, ask=ask, typed_settings=words, todos=items
        )
    )


def resume(
    thread: str | None,
    message: str | None,
    given: Mapping[str, Any],
    place: Place,
    *,
    output: OutputOptions,
    ask: bool,
) -> int:
    """Go on with a thread, the last one where none is named.

    It answers what the thread asked, finishes its run, or sends it a message or an empty kick.
    """
    if message is not None:
        check_text(message, "The message is empty: leave it out to go on without one.")
    known = find_thread(place, thread)
    recipe = build_recipe(known.recipe, given)
    return played(
        RunSpec(
            place,
            known.id,
            recipe,
            known.request,
            message,
            resumes=True,
            output=output,
            ask=ask,
            typed_settings=collect_typed_settings(given),
        )
    )


def meant(
    thread: str | None, given: Mapping[str, Any], place: Place, *, last: bool
) -> tuple[str, Known | None, Recipe]:
    """The thread that a chat begins with: a new one, one by its id, or the last one."""
    if last and thread is not None:
        raise usage_error("--continue takes the last thread: leave --thread out, or --continue.")
    if last:
        known: Known | None
        name, known = (there := find_thread(place, None)).id, there
    else:
        name, known = resolve_thread_option(place, thread)
    recipe = build_recipe(known.recipe if known else None, given)
    begun(recipe, name)
    return name, known, recipe


def rehearse(
    root: Path, place: Place, given: Mapping[str, Any], delay: float, *, output: OutputOptions
) -> int:
    """Run the demo: the offline model audits the files below `root`."""
    recipe = build_recipe(Recipe(root=folder(root, "name another folder"), demo=True, delay=delay), given)
    name = new_thread_id("demo")
    begun(recipe, name, output)
    from wakeloop.demo.audit import audit_files
    from wakeloop.demo.job import request_text

    where = Path(recipe.root)
    if not audit_files(where):
        raise usage_error(
            f"There is no Python, Markdown or notebook file in {str(where)!r}: name another folder."
        )
    request = request_text(where)
    return played(RunSpec(place, name, recipe, request, request, output=output))


def played(job: RunSpec) -> int:
    """Play a job; what that needs is imported now, so that wrong usage is refused at once."""
    if not job.recipe.demo:
        begun(job.recipe, job.thread, job.output)
    try:
        from wakeloop.cli.play import play
    except KeyboardInterrupt:
        tell("Stopped before the run began: nothing is stored.", sys.stderr)
        raise
    return play(job)


def begun(recipe: Recipe, thread: str, output: OutputOptions = AS_LINES) -> None:
    """Tell a person at a terminal what is begun: what it needs takes a moment to import."""
    if output.shows_progress and sys.stderr.isatty():
        tell(f"Starting {one_line(recipe.title)} on thread {thread} …", sys.stderr)


def check_text(text: str, empty: str) -> None:
    """Refuse a text that is empty, or that no server and no database takes."""
    if not text.strip():
        raise usage_error(empty)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise usage_error("The text is not UTF-8: type it again, or give it on stdin.") from None


def piped(source: TextIO | None = None) -> str:
    """Read all of stdin; a byte order mark at its head is none of the text."""
    return typed_text(source or sys.stdin).removeprefix(MARK)
