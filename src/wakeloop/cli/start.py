"""What run, resume and demo want of a thread."""

import re
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from wakeloop.cli.configured import configured, typed
from wakeloop.cli.failures import usage
from wakeloop.cli.given_list import items_in
from wakeloop.cli.job import Job
from wakeloop.cli.recipe import Recipe, folder
from wakeloop.cli.store import Known, Place, reading
from wakeloop.text.characters import is_seen

MARK = "\ufeff"  # of the byte order
THREAD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,99}")


def start(
    request: str,
    given: Mapping[str, Any],
    place: Place,
    thread: str | None,
    todos: Path | None = None,
    *,
    as_json: bool,
    ask: bool,
) -> int:
    """Run a request on a new thread, or as the next message of one that exists; `todos` is a list for it."""
    check_text(request, "The request is empty: say what is to be done.")
    items = None if todos is None else items_in(todos)
    if thread is not None:
        refuse_odd(thread)
    known = None if thread is None else look_up(place, thread)
    recipe = configured(known.recipe if known else None, given)
    words = typed(given)
    name = thread or new_id()
    return played(
        Job(place, name, recipe, request, request, as_json=as_json, ask=ask, typed=words, todos=items)
    )


def resume(
    thread: str, message: str | None, given: Mapping[str, Any], place: Place, *, as_json: bool, ask: bool
) -> int:
    """Go on with a thread: answer what it asked, finish its run, or send it a message or an empty kick."""
    if message is not None:
        check_text(message, "The message is empty: leave it out to go on without one.")
    known = must_be(look_up(place, thread), thread, place)
    recipe = configured(known.recipe, given)
    return played(
        Job(
            place,
            thread,
            recipe,
            known.request,
            message,
            resumes=True,
            as_json=as_json,
            ask=ask,
            typed=typed(given),
        )
    )


def rehearse(root: Path, place: Place, given: Mapping[str, Any], delay: float, *, as_json: bool) -> int:
    """Run the demo: the offline model audits the files below `root`."""
    from wakeloop.demo.audit import audit_files
    from wakeloop.demo.job import request_text

    where = Path(folder(root, "name another folder"))
    if not audit_files(where):
        raise usage(f"There is no Python, Markdown or notebook file in {str(where)!r}: name another folder.")
    recipe = configured(Recipe(root=str(where), demo=True, delay=delay), given)
    request = request_text(where)
    return played(Job(place, new_id("demo"), recipe, request, request, as_json=as_json))


def played(job: Job) -> int:
    """Play a job; what that needs is imported now, so that wrong usage is refused at once."""
    from wakeloop.cli.play import play

    return play(job)


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
    return (source or sys.stdin).read().removeprefix(MARK)


def look_up(place: Place, thread: str) -> Known | None:
    """Find a thread, without making a database where there is none."""
    with reading(place) as store:
        return store.find(thread)


def must_be(known: Known | None, thread: str, place: Place) -> Known:
    """Refuse a thread that is not there."""
    if known is None:
        name = repr(thread) if is_seen(thread) else ascii(thread)
        raise usage(f"There is no thread {name} in {str(place.path)!r}; wakeloop threads lists them.")
    return known


def refuse_odd(thread: str) -> None:
    """Refuse an id that would be hard to type or to show."""
    if not THREAD_ID.fullmatch(thread):
        raise usage("A thread's id is of letters, digits and . _ : @ -, and begins with a letter or digit.")


def new_id(prefix: str = "t") -> str:
    """Mint a thread's id, short enough to type."""
    return f"{prefix}-{secrets.token_hex(4)}"
