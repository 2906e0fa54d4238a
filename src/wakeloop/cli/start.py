"""What run, resume and demo want of a thread."""

import re
import secrets
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from wakeloop.cli.configured import configured, typed
from wakeloop.cli.failures import CommandError, usage
from wakeloop.cli.given_list import items_in
from wakeloop.cli.job import Job
from wakeloop.cli.manner import Manner
from wakeloop.cli.recipe import Recipe, folder
from wakeloop.cli.store import Known, Place, Store, reading
from wakeloop.display.clean import one_line
from wakeloop.display.width import tell
from wakeloop.text.characters import is_seen

MARK = "\ufeff"  # of the byte order
CUT_SHORT = re.compile(r"(t|demo)-[0-9a-f]{1,7}")  # of `new_id`
MOST_NAMED = 5  # threads in a sentence
AS_LINES = Manner()
THREAD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,99}")


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


def at_a_terminal() -> bool:
    """Whether a person sees both outputs: what was begun is told already."""
    return sys.stderr.isatty() and sys.stdout.isatty()


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


def continued(place: Place, thread: str | None) -> tuple[str, Known | None]:
    """The id of `--thread`, or a new one, and the thread if it is there."""
    if thread is None:
        return new_id(), None
    with reading(place) as store:
        return old_or_new(store, thread)


def old_or_new(store: Store, thread: str) -> tuple[str, Known | None]:
    """The thread of an id that may also be a new one's: only one that was minted may be cut short."""
    refuse_odd(thread)
    known = store.find(thread) or (named(store, thread) if CUT_SHORT.fullmatch(thread) else None)
    return (known.id if known else thread), known


def looked_up(place: Place, thread: str | None) -> Known:
    """Find a thread, without making a database where there is none."""
    with reading(place) as store:
        return last(store) if thread is None else must_be(store, thread)


def last(store: Store) -> Known:
    """The thread that changed last; a demo that is over is none that a person goes on with."""
    known = store.threads()
    if found := next((one for one in known if not is_shown(store, one)), None):
        return found
    if not known:
        return must_be(store, None)
    raise usage(
        f"There is no thread in {str(store.place.path)!r} yet but the demo's; wakeloop run begins one."
    )


def is_shown(store: Store, known: Known) -> bool:
    """Tell whether a thread is a demo that is over: nothing runs, waits or is open there."""
    if known.recipe is None or not known.recipe.demo:
        return False
    from wakeloop.cli.stored import stored
    from wakeloop.thread.standing import counted

    with suppress(CommandError):
        session = counted(stored(store.saver, known.id))
        return session["state"] not in ("running", "waiting") and not session["open"]
    return True


def must_be(store: Store, thread: str | None) -> Known:
    """Find a thread by its id, by how the id begins, or the last one; refuse one that is not there."""
    where = f"in {str(store.place.path)!r}"
    if thread is None:
        if known := next(iter(store.threads()), None):
            return known
        raise usage(f"There is no thread {where} yet; wakeloop run begins one.")
    if known := store.find(thread) or named(store, thread):
        return known
    name = repr(thread) if is_seen(thread) else ascii(thread)
    raise usage(f"There is no thread {name} {where}; wakeloop threads lists them.")


def named(store: Store, beginning: str) -> Known | None:
    """The one thread whose id begins so; refuse where there are several."""
    found = [known for known in store.threads() if beginning and known.id.startswith(beginning)]
    if len(found) > 1:
        ids = ", ".join(one_line(known.id) for known in found[:MOST_NAMED])
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        raise usage(f"{len(found)} threads begin with {beginning!r}: {ids}{more}; write more of the id.")
    return next(iter(found), None)


def refuse_odd(thread: str) -> None:
    """Refuse an id that would be hard to type or to show."""
    if not THREAD_ID.fullmatch(thread):
        raise usage("A thread's id is of letters, digits and . _ : @ -, and begins with a letter or digit.")


def new_id(prefix: str = "t") -> str:
    """Mint a thread's id, short enough to type."""
    return f"{prefix}-{secrets.token_hex(4)}"
