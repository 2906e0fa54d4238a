"""What run, resume and demo want of a thread."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from wakeloop.cli.configured import configured, typed
from wakeloop.cli.failures import usage
from wakeloop.cli.given_list import items_in
from wakeloop.cli.job import Job
from wakeloop.cli.lookup import continued, looked_up, new_id
from wakeloop.cli.manner import Manner
from wakeloop.cli.recipe import Recipe, folder
from wakeloop.cli.store import Known, Place
from wakeloop.cli.typed import typed_text
from wakeloop.display.clean import one_line
from wakeloop.display.width import tell

MARK = "\ufeff"  # of the byte order
AS_LINES = Manner()


def start(
    request: str,
    given: Mapping[str, Any],
    place: Place,
    thread: str | None,
    todos: Path | None = None,
    *,
    manner: Manner,
    ask: bool,
) -> int:
    """Run a request on a new thread, or as the next message of one that exists; `todos` is a list for it."""
    check_text(request, "The request is empty: say what is to be done.")
    items = None if todos is None else items_in(todos)
    name, known = continued(place, thread)
    recipe = configured(known.recipe if known else None, given)
    words = typed(given)
    return played(
        Job(place, name, recipe, request, request, manner=manner, ask=ask, typed=words, todos=items)
    )


def resume(
    thread: str | None,
    message: str | None,
    given: Mapping[str, Any],
    place: Place,
    *,
    manner: Manner,
    ask: bool,
) -> int:
    """Go on with a thread, the last one where none is named.

    It answers what the thread asked, finishes its run, or sends it a message or an empty kick.
    """
    if message is not None:
        check_text(message, "The message is empty: leave it out to go on without one.")
    known = looked_up(place, thread)
    recipe = configured(known.recipe, given)
    return played(
        Job(
            place,
            known.id,
            recipe,
            known.request,
            message,
            resumes=True,
            manner=manner,
            ask=ask,
            typed=typed(given),
        )
    )


def meant(
    thread: str | None, given: Mapping[str, Any], place: Place, *, last: bool
) -> tuple[str, Known | None, Recipe]:
    """The thread that a chat begins with: a new one, one by its id, or the last one."""
    if last and thread is not None:
        raise usage("--continue takes the last thread: leave --thread out, or --continue.")
    if last:
        known: Known | None
        name, known = (there := looked_up(place, None)).id, there
    else:
        name, known = continued(place, thread)
    recipe = configured(known.recipe if known else None, given)
    begun(recipe, name)
    return name, known, recipe


def rehearse(root: Path, place: Place, given: Mapping[str, Any], delay: float, *, manner: Manner) -> int:
    """Run the demo: the offline model audits the files below `root`."""
    recipe = configured(Recipe(root=folder(root, "name another folder"), demo=True, delay=delay), given)
    name = new_id("demo")
    begun(recipe, name, manner)
    from wakeloop.demo.audit import audit_files
    from wakeloop.demo.job import request_text

    where = Path(recipe.root)
    if not audit_files(where):
        raise usage(f"There is no Python, Markdown or notebook file in {str(where)!r}: name another folder.")
    request = request_text(where)
    return played(Job(place, name, recipe, request, request, manner=manner))


def played(job: Job) -> int:
    """Play a job; what that needs is imported now, so that wrong usage is refused at once."""
    if not job.recipe.demo:
        begun(job.recipe, job.thread, job.manner)
    try:
        from wakeloop.cli.play import play
    except KeyboardInterrupt:
        tell("Stopped before the run began: nothing is stored.", sys.stderr)
        raise
    return play(job)


def begun(recipe: Recipe, thread: str, manner: Manner = AS_LINES) -> None:
    """Tell a person at a terminal what is begun: what it needs takes a moment to import."""
    if manner.watched and sys.stderr.isatty():
        tell(f"Starting {one_line(recipe.title)} on thread {thread} …", sys.stderr)


def check_text(text: str, empty: str) -> None:
    """Refuse a text that is empty, or that no server and no database takes."""
    if not text.strip():
        raise usage(empty)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise usage("The text is not UTF-8: type it again, or give it on stdin.") from None


def piped(source: TextIO | None = None) -> str:
    """Read all of stdin; a byte order mark at its head is none of the text."""
    return typed_text(source or sys.stdin).removeprefix(MARK)
